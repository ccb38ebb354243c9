"""A ticket's archive: whole, the same each time, and nothing in it that should stay at home."""

import gzip
import hashlib
import io
import json
import tarfile

import pytest

from recovery.engine.history import story_of
from recovery.errors import InputError, StoreError
from recovery.model.events import NodeFinished, Quarantined, RunStarted, StepFinished, StepStarted
from recovery.model.kind import Kept, NodeResult
from recovery.model.verdict import Verdict, failed, passed, warned
from recovery.tickets import Private, packed, ticket_of
from tests.reports.stories import Shelf

QUERY = (
    "index, name, uuid, serial, pci.bus_id, vbios_version\n"
    "0, NVIDIA H100 80GB HBM3, GPU-16e997a3-9e12-5d2b-ac31-8c6b9cd146cd, 1651850706903, "
    "00000000:0F:00.0, 96.00.89.00.01\n## end\n"
)
COMMAND = (
    "nvidia-smi --query-gpu=index,name,uuid,serial,pci.bus_id,vbios_version --format=csv;"
    " s=$?; echo '## end'; exit $s"
)
PRIVATE = Private(node="n1", others=("n2",), users=("ada",), secrets=("hunter22",))


def story(shelf, pieces, verb="check"):
    yield RunStarted(at=1000.0, run="run-1", cluster="c", runbook="power-loss", digest="d" * 64,
                     nodes=("n1", "n2"), seed=1, version="0", owner="ada@head")  # fmt: skip
    yield StepStarted(at=1, step="s-1", verb=verb, attempt=1, nodes=("n1", "n2"), deadline_s=9)
    kept = tuple(Kept(name, shelf.put(content), len(content)) for name, content in pieces)
    found = Verdict(
        (failed("a card is gone, says n2", remedy="drain", component="GPU3"), passed("fine"))
    )
    values = {"facts": {"driver.match": {"driver": "550.90.07"}}}
    result = NodeResult(node="n1", verdict=found, kept=kept, values=values)
    yield NodeFinished(at=2, step="s-1", attempt=1, result=result)
    other = Verdict((warned("hot", remedy="cool"),))
    yield NodeFinished(at=2, step="s-1", attempt=1, result=NodeResult(node="n2", verdict=other))
    yield Quarantined(at=3, step="s-1", nodes=("n1",), reason="a card is gone", remedy="drain")
    yield StepFinished(at=3, step="s-1", outcome="done")


def opened(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = archive.getmembers()
        return {m.name.partition("/")[2]: archive.extractfile(m).read() for m in members}, members


def made(pieces, *, verb="check", also=(), shelf=None):
    shelf = shelf or Shelf()
    ticket = ticket_of(story_of(story(shelf, pieces, verb)), "n1", also=also)
    return packed(ticket, shelf.get, PRIVATE, version="0")


def test_what_a_node_said_and_was_is_in_it():
    files, _ = opened(made([("bmc-sel", b"AC lost"), (COMMAND, QUERY.encode())]))

    assert files["evidence/s-1/bmc-sel.txt"] == b"AC lost"
    identity = json.loads(files["identity.json"])
    assert identity["gpus"][0]["serial"] == "1651850706903"
    assert identity["gpus"][0]["vbios"] == "96.00.89.00.01"
    assert identity["read_by_checks"] == {"driver.match": {"driver": "550.90.07"}}
    assert json.loads(files["verdicts.json"])[0]["findings"][0]["component"] == "GPU3"
    readme = files["README.txt"].decode()
    assert "FAIL    s-1: a card is gone, says host-1" in readme
    assert "serial 1651850706903" in readme
    assert "set aside by s-1: a card is gone" in readme


IDENTITY = """\
sys_vendor: Supermicro
product_name: SYS-821GE
product_serial: S512345X
board_serial: To be filled by O.E.M.
FRU Device Description : Builtin FRU Device (ID 0)
 Chassis Type          : Rack Mount Chassis
 Chassis Serial        : C8010FK
 Product Serial        : OTHER
Device ID                 : 32
Firmware Revision         : 1.05
"""  # re-created after ipmitool 1.8.19 and the kernel's class/dmi/id


def test_the_machine_has_its_serials_and_its_bmcs_firmware():
    files, _ = opened(made([("identity", IDENTITY.encode())]))

    assert json.loads(files["identity.json"])["machine"] == {
        "vendor": "Supermicro",
        "product": "SYS-821GE",
        "serial": "S512345X",
        "chassis serial": "C8010FK",
        "BMC firmware": "1.05",
    }
    assert "Machine: vendor Supermicro, product SYS-821GE, serial S512345X" in (
        files["README.txt"].decode()
    )


def test_a_machine_of_which_nobody_told_says_so():
    files, _ = opened(made([("identity", b"Device ID : 32\nboard_serial: N/A\n")]))

    assert json.loads(files["identity.json"])["machine"] == {}
    assert "Machine: nobody told" in files["README.txt"].decode()


def test_every_file_has_its_digest_in_the_manifest():
    files, _ = opened(made([("dmesg", b"one"), ("bmc-sel", b"two")]))

    manifest = json.loads(files.pop("manifest.json"))
    listed = {row["path"]: (row["sha256"], row["bytes"]) for row in manifest["files"]}
    assert listed == {p: (hashlib.sha256(c).hexdigest(), len(c)) for p, c in files.items()}


def test_the_same_ticket_is_the_same_bytes():
    assert made([("dmesg", b"one")]) == made([("dmesg", b"one")])


def test_private_words_are_struck_in_plain_and_packed_evidence_alike():
    text = b"hunter22 by ada on n2, /home/kim/x"
    files, _ = opened(made([("dmesg", text), ("nvidia-bug-report", gzip.compress(b"log " + text))]))

    clean = b"[secret] by user-1 on host-1, /home/user-2/x"
    assert files["evidence/s-1/dmesg.txt"] == clean
    assert gzip.decompress(files["evidence/s-1/nvidia-bug-report.log.gz"]) == b"log " + clean
    assert json.loads(files["manifest.json"])["struck"]["secrets"] == 2
    assert "2 secrets" in files["README.txt"].decode()


def test_a_packed_file_that_is_cut_is_kept_as_far_as_it_goes():
    whole = gzip.compress(b"".join(b"line %d\n" % i for i in range(5000)))

    files, _ = opened(made([("nvidia-bug-report", whole[: len(whole) // 2])]))

    text = gzip.decompress(files["evidence/s-1/nvidia-bug-report.log.gz"]).decode()
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("[the packed file ends here, or is too large]\n")


@pytest.mark.parametrize("content", [b"\x1f\x8bnonsense", b"\x1f\x8b"])
def test_a_packed_file_that_is_broken_says_so(content):
    files, _ = opened(made([("nvidia-bug-report", content)]))

    text = gzip.decompress(files["evidence/s-1/nvidia-bug-report.log.gz"])
    assert text.lstrip().startswith(b"[")


def test_what_cannot_be_searched_is_left_out_and_said():
    files, _ = opened(made([("core", b"\x7fELF\0\0hunter22")]))

    manifest = json.loads(files["manifest.json"])
    assert [(row["name"], row["why"][:12]) for row in manifest["left_out"]] == [
        ("core", "neither text")
    ]
    assert not any(b"hunter22" in content for content in files.values())


@pytest.mark.parametrize("verb", ["launch", "verify", "checkpoint"])
def test_evidence_of_the_training_stays_at_home(verb):
    files, _ = opened(made([("output", b"loss 3")], verb=verb))

    assert not any(b"loss 3" in content for content in files.values())
    assert "of the training" in files["manifest.json"].decode()


def test_left_out_evidence_goes_when_it_is_named():
    files, _ = opened(made([("train.log", b"NCCL error")], also=("train.log",)))

    assert files["evidence/s-1/train.log.txt"] == b"NCCL error"


def test_evidence_that_is_gone_is_said():
    class Gone(Shelf):
        def get(self, digest):
            raise StoreError(f"evidence {digest[:4]} is not there", remedy="x")

    files, _ = opened(made([("dmesg", b"x")], shelf=Gone()))

    assert "is not there" in files["manifest.json"].decode()


@pytest.mark.parametrize("name", ["../../etc/passwd", "/abs", "a\x00b\n", "..", "é" * 300, ""])
def test_no_name_leads_out_of_the_archive(name):
    _, members = opened(made([(name, b"x"), (name + " ", b"y")]))

    names = [m.name for m in members]
    assert len(set(names)) == len(names)
    assert all(n.startswith("ticket-n1/") and ".." not in n and n.isascii() for n in names)
    assert all(m.isfile() for m in members)


def test_the_same_content_goes_once():
    class ByContent(Shelf):
        def put(self, content):
            digest = hashlib.sha256(content).hexdigest()
            self.kept[digest] = content
            return digest

    pieces = [("nvidia-smi -q", b"same"), ("nvidia-smi-q", b"same")]
    files, _ = opened(made(pieces, shelf=ByContent()))

    assert sum(content == b"same" for content in files.values()) == 1
    assert "the same as another piece" in files["manifest.json"].decode()


def test_a_node_that_the_run_does_not_have_is_our_input():
    with pytest.raises(InputError, match=r"nothing about 'n11' \(did you mean \"n1\"\?\)"):
        ticket_of(story_of(story(Shelf(), [])), "n11")


def test_evidence_that_is_not_there_cannot_be_asked_for():
    with pytest.raises(InputError, match="no evidence is called 'core'"):
        ticket_of(story_of(story(Shelf(), [("dmesg", b"x")])), "n1", also=("core",))
