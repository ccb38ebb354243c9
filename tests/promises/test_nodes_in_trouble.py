"""What goes wrong with a node is that node's finding, named, within its limit; others go on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.testbed.bed import bed
from tests.testbed.controller import Controller
from tests.transports.servers import until

pytestmark = pytest.mark.root
ECHO = {"run": "echo here", "timeout": "8s", "gate": "any", "effect": "read"}


def started_at(operator: Controller, step: str) -> float:
    return min(e["at"] for e in operator.events("StepStarted") if e["step"] == step)


def finished_after(operator: Controller, step: str, node: str) -> float:
    """Seconds from the start of a step to a node's result."""
    times = [
        e["at"]
        for e in operator.events("NodeFinished")
        if e["step"] == step and e["result"]["node"] == node
    ]
    return times[-1] - started_at(operator, step)


def has_begun(operator: Controller, name: str, word: str) -> bool:
    return any(word in line for line in operator.bed[name].left().values())


def test_nodes_that_hang_do_not_hold_the_others_and_are_named(operator: Controller) -> None:
    operator.bed["n2"].sshd(signal.SIGSTOP)
    operator.bed["n3"].blackhole()
    operator.bed["n4"].refuse()

    done = operator.run(ECHO)

    findings = operator.findings("run-1")
    assert done.code == 0, done.said
    assert finished_after(operator, "run-1", "n1") < 8
    assert finished_after(operator, "run-1", "n4") < 8
    assert max(finished_after(operator, "run-1", n) for n in ("n2", "n3")) < 30
    assert findings["n2"] == "10.82.0.2:22: connected, but no login in time"
    assert findings["n3"] == "10.82.0.3:22: no answer in time"
    assert findings["n4"] == "10.82.0.4:22: connection refused"
    levels = {n: r["verdict"]["findings"][0]["level"] for n, r in operator.results().items()}
    assert levels == {"n1": "pass", "n2": "unknown", "n3": "unknown", "n4": "unknown"}


def test_a_server_that_shows_no_banner_is_named(operator: Controller) -> None:
    operator.bed["n2"].sshd(signal.SIGSTOP, listener_only=True)

    done = operator.run(ECHO)

    assert done.code == 0, done.said
    assert operator.findings()["n2"] == "10.82.0.2:22: connected, but no login in time"


def test_a_node_that_loses_its_power_is_lost_long_before_the_limit(operator: Controller) -> None:
    process = operator.start_run(
        {
            "run": "sleep $(test $(hostname) = n2 && echo 400 || echo 1)",
            "timeout": "300s",
            "gate": "3",
        }
    )
    assert until(lambda: has_begun(operator, "n2", "sleep 400"))

    operator.bed["n2"].off()
    done = operator.ended(process)

    assert done.code == 0, done.said
    assert finished_after(operator, "run-1", "n2") < 200
    assert operator.results()["n2"]["ending"] == "lost"
    assert "the connection was lost" in operator.findings()["n2"]


def test_a_node_that_reboots_in_a_step_is_recognised_by_its_boot(operator: Controller) -> None:
    host = operator.bed["n2"]
    process = operator.start_run({"run": "sleep 200", "timeout": "100s", "nodes": "n2"})
    # Uptimes of the bed are whole seconds: only a command that is older can be told from a boot.
    age = "ps -o etimes= -p $(pgrep -f '^sleep 200')"
    assert until(lambda: int(host.do(age, check=False) or 0) >= 2)

    host.do("reboot", check=False)
    done = operator.ended(process)

    assert done.code == 3, done.said
    assert f"boot id {host.boot_id()}" in operator.findings()["n2"]
    assert "the node rebooted meanwhile" in operator.findings()["n2"]


def test_a_reboot_is_proved_by_a_new_boot_id(operator: Controller) -> None:
    before = operator.bed["n2"].boot_id()

    done = operator.run({"reboot": "40s", "settle": "1s", "nodes": "n2"})

    assert done.code == 0, done.said
    assert operator.findings()["n2"].startswith("rebooted, up ")
    assert operator.bed["n2"].boot_id() != before


def test_a_process_that_kill_does_not_end_is_a_finding_with_its_pid(operator: Controller) -> None:
    host = operator.bed["n2"]
    host.freeze_data()

    done = operator.run(
        {"run": "touch /data/x", "timeout": "5s", "gate": "3", "on_fail": "continue"},
        {"run": "echo next", "nodes": "n1"},
    )

    assert done.code == 0, done.said
    (pid,) = [p for p, line in host.left().items() if line.startswith("touch")]
    inside = Path(f"/proc/{pid}/status").read_text().partition("NSpid:")[2].split()[1]
    assert operator.results("run-1")["n2"]["trouble"] == "unkillable"
    assert f"KILL did not end pid {inside}" in operator.findings("run-1")["n2"]
    host.thaw_data()
    assert until(lambda: not host.left()), host.left()


def test_a_lossy_and_a_slow_cable_cost_time_and_nothing_else(operator: Controller) -> None:
    operator.bed["n2"].lose(5)
    operator.bed["n3"].slow("512kbit")

    done = operator.run({"run": "head -c 100000 /dev/zero | tr '\\0' x", "timeout": "60s"})

    assert done.code == 0, done.said
    sizes = {r["kept"][0]["size_bytes"] for r in operator.results().values()}
    assert sizes == {100_000}


def test_a_node_without_a_writable_folder_says_so_and_nothing_is_run(operator: Controller) -> None:
    host = operator.bed["n2"]
    host.do(
        "mount -o remount,ro,bind / && mount -o remount,ro /tmp && mount -o remount,ro /dev/shm"
    )
    script = operator.folder / "work.sh"
    script.write_text("echo done\n")

    done = operator.run({"script": str(script), "gate": "3"}, {"run": "cat /etc/hostname"})
    host.off()

    assert done.code == 0, done.said
    assert "no writable folder for its input" in operator.findings("script-1")["n2"]
    assert operator.results("script-1")["n2"]["ending"] == "never-started"


def test_a_full_disk_on_a_node_is_the_commands_own_failure(operator: Controller) -> None:
    host = operator.bed["n2"]
    host.do("mount -t tmpfs -o size=64k small /mnt; cat /dev/zero >/mnt/full 2>&1", check=False)

    done = operator.run({"run": "cat /etc/passwd >>/mnt/log", "gate": "3"})
    host.do("umount /mnt")

    assert done.code == 0, done.said
    assert "No space left on device" in operator.findings()["n2"]


def test_a_changed_host_key_is_refused_until_one_explicit_command(operator: Controller) -> None:
    host = operator.bed["n2"]
    known = operator.folder / "known_hosts"
    known.write_text(operator.bed.known_hosts.read_text())
    operator.write_inventory({n: {} for n in operator.bed.hosts}, known_hosts=str(known))
    host.off()
    operator.bed.new_host_key(host)
    host.on()
    operator.bed.await_ssh("n2")

    refused = operator.run(ECHO)
    finding = operator.findings()["n2"]
    trusted = operator.recover("hosts", "trust", str(operator.inventory), "n2", "--yes")
    again = operator.run(ECHO)

    assert refused.code == 0, refused.said
    assert finding.count("SHA256:") == 2, finding
    assert trusted.code == 0, trusted.said
    assert again.code == 0
    assert operator.findings()["n2"] == "command: done"


def test_sudo_that_is_refused_is_a_finding_of_its_own(operator: Controller) -> None:
    nodes = {"n1": {"ansible_user": "ops"}, "n2": {"ansible_user": "guest"}}
    operator.write_inventory(nodes)

    done = operator.run({"run": "id -un", "sudo": True, "gate": "any"})

    results = operator.results()
    assert done.code == 0, done.said
    assert results["n1"]["values"]["stdout"] == "root\n"
    assert results["n2"]["trouble"] == "sudo"
    assert "NOPASSWD" in results["n2"]["verdict"]["findings"][0]["remedy"]


def test_a_node_behind_two_bastions_is_reached_and_dead_when_we_say_so(
    operator: Controller,
) -> None:
    far = operator.bed["n3"]
    far.refuse_from("10.82.0.254", "10.82.0.1")
    operator.write_inventory({"n3": {"bastion": "root@10.82.0.1,root@10.82.0.2"}})

    first = operator.run({"run": "echo $SSH_CONNECTION", "nodes": "n3"})
    said = operator.results()["n3"]["values"]["stdout"]
    second = operator.run({"run": "sleep 300", "timeout": "8s"})

    assert first.code == 0, first.said
    assert said.startswith("10.82.0.2 ")
    assert second.code == 3
    assert far.left() == {}


def test_a_node_that_loses_its_power_behind_a_bastion_ends_at_the_limit(
    operator: Controller,
) -> None:
    operator.write_inventory({"n3": {"bastion": "root@10.82.0.1"}})
    process = operator.start_run({"run": "sleep 300", "timeout": "10s"})
    assert until(lambda: has_begun(operator, "n3", "sleep 300"))

    operator.bed["n3"].off()
    done = operator.ended(process)

    assert done.code == 3, done.said
    assert finished_after(operator, "run-1", "n3") < 40
    assert "no word from the node" in operator.findings()["n3"]


def test_new_hosts_seen_at_the_same_time_are_all_written_down_and_nobody_is_asked(
    operator: Controller,
) -> None:
    known = operator.folder / "known_hosts"
    nodes = {f"{name}-{i}": {"host": name} for name in operator.bed.hosts for i in range(6)}
    operator.write_inventory(
        nodes, known_hosts=str(known), host_keys="accept-new", shared_addresses=True
    )

    unhurried = {**ECHO, "timeout": "60s"}

    first = operator.run(unhurried)
    operator.write_inventory(nodes, known_hosts=str(known), shared_addresses=True)
    second = operator.run({**unhurried, "gate": "all"})

    assert first.code == 0, first.said
    assert second.code == 0, second.said
    assert len(known.read_text().splitlines()) == len(operator.bed.hosts)


def test_jumps_that_lead_in_a_circle_are_a_finding(operator: Controller) -> None:
    config = operator.folder / "ssh_config"
    config.write_text(
        "Host 10.82.0.1\n ProxyJump 10.82.0.3\nHost 10.82.0.2 10.82.0.3\n ProxyJump 10.82.0.1\n"
    )
    operator.write_inventory({"n2": {}}, ssh_config=str(config))

    done = operator.run(ECHO)

    assert done.code == 3, done.said
    assert "lead in a circle" in operator.findings()["n2"]


def test_a_jump_of_none_in_the_client_configuration_is_no_host(operator: Controller) -> None:
    config = operator.folder / "ssh_config"
    config.write_text(
        "Host 10.82.0.1 10.82.0.2\n ProxyJump none\nHost *\n ProxyJump root@10.82.0.1\n"
    )
    operator.write_inventory({"n2": {}, "n3": {}}, ssh_config=str(config))

    done = operator.run({"run": "echo $SSH_CONNECTION", "effect": "read"})

    assert done.code == 0, done.said
    said = {node: r["values"]["stdout"].split()[0] for node, r in operator.results().items()}
    assert said == {"n2": "10.82.0.254", "n3": "10.82.0.1"}


def test_a_server_that_takes_few_logins_at_once_serves_many_nodes(testbed_here: None) -> None:
    with bed(1, max_startups="3:100:3") as one:
        operator = Controller(one, one.folder)
        operator.write_inventory(
            {f"m{i}": {"host": "n1"} for i in range(24)}, shared_addresses=True
        )

        done = operator.run({"run": "true", "timeout": "30s"})

    assert done.code == 0, done.said
