"""What a real run tells the outside: messages and metrics, and what it does when nobody listens."""

import importlib.util
import json

import pytest

from tests.app.receiver import receiving
from tests.lab_runs import LabRun

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(importlib.util.find_spec("apprise") is None, reason="needs apprise"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    run = LabRun(tmp_path_factory.mktemp("outward"))
    run.up("none", nodes=2)
    yield run
    run.down()


def with_variables(cluster, text):
    inventory = cluster.folder / "outward.yaml"
    own = cluster.folder.joinpath("lab/inventory.yaml").read_text()
    inventory.write_text(own.replace("  vars:\n", f"  vars:\n{text}", 1))
    return str(inventory)


def titles(server):
    return [json.loads(body)["title"].partition(": ")[2] for _, _, _, body in server.taken]


def test_people_are_told_from_start_to_end_and_metrics_are_written(cluster):
    with receiving() as server:
        lines = f"    notify: ['json://{server.place}/tok-12345']\n"
        lines += f"    metrics_textfile: {cluster.folder}\n"
        inventory = with_variables(cluster, lines)
        done = cluster.recover("preflight", inventory, "--depth", "quick")

    assert done.returncode == 0, done.stdout
    assert titles(server) == ["preflight started", "preflight done"]
    written = cluster.folder / "recover_outward_preflight.prom"
    assert 'recover_run_nodes{cluster="outward",runbook="preflight",state="pass"} 2' in (
        written.read_text()
    )
    kept = b"".join(p.read_bytes() for p in cluster.state.rglob("*") if p.is_file())
    assert b"tok-12345" not in kept
    assert "tok-12345" not in done.stdout + done.stderr


def test_an_approval_is_asked_for_where_people_are(cluster):
    (cluster.folder / "ask.yaml").write_text(
        'runbook: ask\nnodes: "@gpu"\nsteps:\n  - approve: "Go on?"\n    id: go\n'
    )
    with receiving() as server:
        inventory = with_variables(cluster, f"    notify: json://{server.place}\n")
        done = cluster.recover("run", inventory, "--runbook", "./ask.yaml")

    assert done.returncode == 3, done.stdout
    assert titles(server) == [
        "ask started",
        "approval wanted: go",
        "gate undecided: go",
        "ask undecided",
    ]
    last = json.loads(server.taken[-1][3])["message"]
    assert "--approve go" in last


def test_when_nobody_listens_the_run_goes_on_and_says_so(cluster):
    with receiving() as gone:
        place = gone.place
    lines = f"    notify: ['json://{place}/tok-12345']\n    metrics_textfile: /nowhere/x\n"
    lines += f"    metrics_pushgateway: http://{place}\n"

    done = cluster.recover("preflight", with_variables(cluster, lines), "--depth", "quick")

    assert done.returncode == 0, done.stdout
    for words in (
        "notify: address 1 of 1: the service did not take the message",
        "metrics not written: /nowhere/x: No such file or directory",
        f"metrics not pushed to {place}",
    ):
        assert words in done.stdout
    noted = [e["message"] for e in cluster.events() if e["event"] == "Noted" and e["step"] == ""]
    assert len(noted) == 4  # two messages, the file, the gateway
    assert "tok-12345" not in json.dumps(cluster.events())


def test_a_runbook_may_name_people_of_its_own_and_its_journal_does_not(cluster):
    with receiving() as server:
        (cluster.folder / "told.yaml").write_text(
            f'runbook: told\nnodes: "@gpu"\nvars: {{notify: "json://{server.place}/tok-98765"}}\n'
            "steps:\n  - run: 'true'\n    effect: read\n"
        )
        inventory = with_variables(cluster, "    word: fine\n")
        done = cluster.recover("run", inventory, "--runbook", "./told.yaml")
        again = cluster.recover("report", "last", "--format", "json", check=True)

    assert done.returncode == 0, done.stdout
    assert titles(server) == ["told started", "told done"]
    kept = b"".join(p.read_bytes() for p in cluster.state.rglob("*") if p.is_file())
    assert b"tok-98765" not in kept
    assert "tok-98765" not in done.stdout + done.stderr + again.stdout
