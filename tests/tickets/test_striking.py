"""What is private is struck, what a vendor needs stays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.tickets import Private, Striker

PRIVATE = Private(
    node="node03",
    others=("node01", "node02", "head1", "10.9.9.9"),
    own_addresses=("10.1.0.3",),
    users=("ada",),
    secrets=("hunter22",),
)


def struck(text):
    return Striker(PRIVATE).strike(text)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("the password is hunter22.", "the password is [secret]."),
        ("BMC_PASSWORD=s3cr3t!x next", "BMC_PASSWORD=[secret] next"),
        ('{"api_key": "abc def"}', '{"api_key": [secret]}'),
        ("ipmitool --password calvin sel", "ipmitool --password [secret] sel"),
        ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer [secret]"),
        ("HF hf_abcdefghijklmnopqrstuv0123 x", "HF [secret] x"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[secret]"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
        ("http://bob:pw@proxy:3128/x", "http://[secret]@host-5:3128/x"),
        ("mail to grace.h@lab.example.org now", "mail to [mail] now"),
        ("/home/grace/venv/bin/python by grace", "/home/user-2/venv/bin/python by user-2"),
        ("Accepted publickey for linus from 10.0.0.7 port 22",
         "Accepted publickey for user-2 from address-1 port 22"),
        ("sudo:    linus : TTY=pts/0 ; PWD=/home/linus",
         "sudo:    user-2 : TTY=pts/0 ; PWD=/home/user-2"),
        ("CRON[1]: (linus) CMD (true)", "CRON[1]: (user-2) CMD (true)"),
        ("uid=1000(linus) gid=1000(linus)", "uid=1000(user-2) gid=1000(user-2)"),
        ("run by ada on head1", "run by user-1 on host-3"),
        ("node01 and node02 are fine", "host-1 and host-2 are fine"),
        ("NODE01 answers", "host-1 answers"),
        ("node01.corp.example.com: up", "host-1: up"),
        ("node03.corp.example.com and db7.corp.example.com", "node03 and host-5"),
        ("from 192.168.4.2 to 192.168.4.3, 192.168.4.2", "from address-1 to address-2, address-1"),
        ("2001:db8::5 asks", "address-1 asks"),
        ("2001:0db8:0:0:0:0:0:0005 asks", "address-1 asks"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nrest",
         "[private key]\nrest"),
        ("-----BEGIN PRIVATE KEY-----\nabc cut", "[private key]"),
        ("linus@login7:~$", "user-2@host-5:~$"),
        ("node01-ib0 dmesg_node02.txt node01_node02", "host-1-ib0 dmesg_host-2.txt host-1_host-2"),
        ("node01:9100 (node02)", "host-1:9100 (host-2)"),
        ("ip-10-2-3-4 joined", "host-5 joined"),
    ],
)  # fmt: skip
def test_what_is_private_is_struck(text, clean):
    assert struck(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "Serial Number : 1651850706903, UUID GPU-16e997a3-9e12-5d2b-ac31-8c6b9cd146cd",
        "VBIOS Version : 96.00.89.00.01, Image Version : G520.0200.00.05, driver 550.90.07",
        "NVRM: Xid (PCI:0000:18:00): 79, pid=4711, name=python, GPU has fallen off the bus.",
        "2026-12-01T04:22:21.963592+00:00 node03 kernel: mlx5_core 0000:0f:00.0: Port: 1 Link DOWN",
        "GPU 00000000:0F:00.0",
        "node_guid 9803:9b03:0012:a4f6 gid fe80:0000:0000:0000:9a03:9b03:0012:a4f6",
        "link/ether b8:3f:d2:00:11:22 lo 127.0.0.1 ::1 mask 255.255.255.0 own 10.1.0.3",
        "started by the step for one node: by all, for each user of it",
        "node03-ib0 node010 node0 xnode01 node03:9100 2026-12-01 no-de01",
        "Started getty@tty1.service, user@1000.service, nvme0n1",
        "root : the run was made as root by systemd for slurm",
        "Out of memory: Killed process 4711 (python) total-vm:1kB, UID:1000",
        "SEL 1a | 12/01/26 | 03:12:40 | Power Supply PSU1 | AC lost | Asserted",
    ],
)
def test_what_a_vendor_needs_stays(text):
    assert struck(text) == text


def test_a_name_that_stood_in_one_text_is_known_in_the_next():
    striker = Striker(PRIVATE)
    striker.strike("/home/linus/job.sh")

    assert striker.strike("linus has it open") == "user-2 has it open"
    assert striker.counts == {"user names": 2}


def test_keys_of_values_stay_and_their_texts_are_struck():
    striker = Striker(Private(node="n", users=("step",)))

    assert striker.strike_values({"step": ["step 1", 2, None]}) == {"step": ["user-1 1", 2, None]}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.text(max_size=80))
def test_a_known_secret_never_passes(before, after):
    assert "hunter22" not in struck(f"{before}hunter22{after}")


PARTS = ("node01", "head1", "10.2.3.4", "/home/kim/x", "Bearer", "abcdefgh12", "=", ":", "@", "\n")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=20))
def test_no_mixture_lets_a_host_an_address_or_a_home_pass(parts):
    clean = struck(" ".join(parts))

    for private in ("node01", "head1", "10.2.3.4", "kim"):
        assert private not in clean
