"""Slurm's launch tree keeps the promises of a transport, on a real Slurm of three nodes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recovery.model.node import Node
from recovery.model.output import Command, Ending, Output
from recovery.model.ports import Transport
from recovery.transports.srun import SRUN
from recovery.transports.srun.task import Stream, labelled, lost_node, refused_node, task_line
from tests.launchers.realslurm import RealSlurm, real_slurm, why_no_slurm
from tests.transports.conftest import LEASH
from tests.transports.servers import Place, processes_with, until
from tests.transports.test_orphans import CONTROLLER_PROGRAM, SHAPES, Started, _numbers

WHY_NOT = why_no_slurm()
real = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "can")]
NAMES = ("n1", "n2")
PATIENT_S = 100.0


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSlurm]:
    with real_slurm(tmp_path_factory.mktemp("slurm"), 3) as running:
        yield running


@pytest.fixture
def srun(slurm: RealSlurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Transport]:
    monkeypatch.setenv("SLURM_CONF", slurm.conf)
    opened = SRUN.open({"leash": LEASH, "state_dir": "", "width": 8})
    yield opened
    opened.stop(1)
    opened.close()


def asked(srun: Transport, command: Command, names: tuple[str, ...] = NAMES) -> dict[str, Output]:
    with ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(lambda n: srun.run(Node(n), command), names), strict=True))


class TestOnARealSlurm:
    pytestmark = real

    def test_streams_status_and_bytes_arrive_apart_from_each_node(self, srun: Transport) -> None:
        line = r"printf '\351\000\r\n12: x'; head -c 200000 /dev/zero; echo err >&2; exit 7"

        outputs = asked(srun, Command(line, timeout_s=PATIENT_S))

        for output in outputs.values():
            assert output.ending is Ending.FINISHED, output.reason
            assert output.stdout == b"\xe9\0\r\n12: x" + bytes(200_000)
            assert (output.stderr, output.exit_status) == (b"err\n", 7)

    def test_environment_and_input_arrive_and_slurms_variables_do_not(
        self, srun: Transport
    ) -> None:
        line = 'cat; echo "$WORD"; env | grep -c "^SLURM_[^C]"; pwd'
        content = bytes(range(256)) * 2000
        command = Command(line, timeout_s=PATIENT_S, env={"WORD": "a 'b' $c"}, stdin=content)

        outputs = asked(srun, command)

        home = str(Path("~").expanduser())
        for output in outputs.values():
            assert output.stdout == content + f"a 'b' $c\n0\n{home}\n".encode(), output.reason

    def test_nothing_is_left_after_the_limit(self, srun: Transport) -> None:
        word = str(next(_numbers))
        line = f"setsid sleep 999.{word} & sleep 999.{word}; true"

        outputs = asked(srun, Command(line, timeout_s=10, grace_s=20))

        assert {(o.ending, o.trouble) for o in outputs.values()} == {(Ending.TIMEOUT, "")}
        assert processes_with(word) == []

    def test_nothing_of_any_shape_is_left_after_stop(self, srun: Transport) -> None:
        place = Place(Node("n1"), lambda: None, Path(), Path())
        started = Started(place, srun, timeout_s=PATIENT_S)
        assert until(started.all_run), processes_with(started.word)

        srun.stop(30)

        outputs = started.ended()
        assert processes_with(started.word) == []
        assert {o.ending for o in outputs.values()} == {Ending.LOST}
        assert {o.trouble for o in outputs.values()} == {""}
        assert srun.run(Node("n1"), Command("true")).ending is Ending.NEVER_STARTED

    def test_nothing_is_left_after_kill_9_of_the_controller(
        self, slurm: RealSlurm, srun: Transport, tmp_path: Path
    ) -> None:
        word = str(next(_numbers))
        leash = tmp_path / "leash.sh"
        leash.write_text(LEASH)
        lines = [SHAPES[shape].format(n=word) for shape in ("own setsid", "ignores TERM")]
        wanted = repr(("srun", None, None, None, {}, *lines))
        program = subprocess.Popen(
            [sys.executable, "-c", CONTROLLER_PROGRAM, str(leash)], stdin=subprocess.PIPE, text=True
        )
        assert program.stdin is not None
        with program.stdin as stdin:
            stdin.write(wanted)
        assert until(lambda: len(processes_with(f"999.{word}")) >= 3), processes_with(word)

        program.kill()
        program.wait()

        assert until(lambda: not processes_with(f"999.{word}")), processes_with(word)

    def test_a_node_without_power_is_never_started_and_the_others_run_once(
        self, slurm: RealSlurm, srun: Transport, tmp_path: Path
    ) -> None:
        slurm.power_off("n3")
        command = Command(f"echo began >>{tmp_path}/$PPID.log; echo done", timeout_s=PATIENT_S)

        outputs = asked(srun, command, ("n1", "n2", "n3"))

        assert outputs["n3"].ending is Ending.NEVER_STARTED
        assert "Slurm cannot launch on it" in outputs["n3"].reason
        assert [outputs[n].stdout for n in NAMES] == [b"done\n"] * 2
        began = "".join(p.read_text() for p in tmp_path.glob("*.log"))
        assert began == "began\n" * 2


def test_a_user_that_srun_cannot_be_is_never_started() -> None:
    srun = SRUN.open({"leash": LEASH, "width": 1})

    output = srun.run(Node("n1", user="somebody-else"), Command("true"))

    assert output.ending is Ending.NEVER_STARTED
    assert output.reason == "srun runs commands as yourself, not as somebody-else"


def test_without_srun_the_reason_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    output = SRUN.open({"leash": LEASH, "width": 1}).run(Node("n1"), Command("true"))

    assert output.ending is Ending.NEVER_STARTED
    assert output.reason == "cannot start srun: No such file or directory"


def test_options_that_cannot_be_split_are_never_started() -> None:
    node = Node("n1", variables={"srun_options": "--comment='half"})

    output = SRUN.open({"leash": LEASH, "width": 1}).run(node, Command("true"))

    assert output.reason == "srun_options: No closing quotation"


def test_a_labelled_line_is_told_from_sruns_own_words() -> None:
    assert labelled(b" 3: 12: x") == (3, b"12: x")
    assert labelled(b"srun: error: n2: task 1: Killed") is None


def test_sruns_words_name_the_node() -> None:
    failed = "srun: error: Task launch for StepId=7.0 failed on node n3: Communication failure"

    assert refused_node(failed) == ("n3", "Communication failure")
    assert lost_node("srun: error: Node failure on n2") == "n2"
    assert (refused_node("srun: x"), lost_node("srun: x")) == (None, "")


def test_a_stream_is_put_together_over_pieces_and_ends_at_its_mark() -> None:
    stream = Stream("ab12")
    for line in (b"aGVs", b"bG8=", b".", b"CnJlY292ZXItbGVhc2g6YWIxMiBlbmQgMyAK", b"."):
        stream.add(line)

    assert stream.take() == (b"hello", 0)
    assert stream.end is not None
    assert stream.end[1] == b"3"


def test_with_sudo_the_leash_itself_runs_below_it() -> None:
    assert "exec sudo -n /bin/sh" in task_line(sudo=True)
    assert "sudo" not in task_line(sudo=False)
