"""Scenarios: a whole mishap, played on the running lab in a few seconds."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from recovery.lab.errors import LabError
from recovery.lab.farm import Farm
from recovery.lab.layout import Layout
from recovery.registry import did_you_mean

_INTERVAL = 20  # iterations between checkpoints
_TORN_AT = 60  # the save during which the power fails
_TIME_LIMIT_S = 300.0
_POLL_S = 0.01
MASTER_PORT_OFFSET = 899


def play(name: str, farm: Farm, layout: Layout) -> str:
    """Plays the scenario; returns one sentence about what is broken now.

    Raises:
        LabError: no such scenario, or it could not be played.
    """
    if name not in SCENARIOS:
        hint = did_you_mean(name, tuple(SCENARIOS))
        raise LabError(f"no scenario {name!r}{hint}", remedy=f"one of: {', '.join(SCENARIOS)}")
    return SCENARIOS[name](farm, layout)


def training(farm: Farm, layout: Layout) -> str:
    """The job runs on every node."""
    start_training(farm, layout, pauses={})
    _wait(lambda: _saved_everywhere(farm, layout, _INTERVAL), "the first checkpoint")
    return "training runs on every node"


def power_loss(farm: Farm, layout: Layout) -> str:
    """Power fails in the middle of a save; two nodes come back broken."""
    lose_power_in_save(farm, layout)
    bad = break_two(farm)
    farm.power_on([])
    return f"power failed during the save of iteration {_TORN_AT}; {bad}"


def power_loss_clean(farm: Farm, layout: Layout) -> str:
    """Power fails in the middle of a save; every node comes back well."""
    lose_power_in_save(farm, layout)
    farm.power_on([])
    return f"power failed during the save of iteration {_TORN_AT}; every node is back"


def lose_power_in_save(farm: Farm, layout: Layout) -> None:
    """Trains until a save is under way, then takes all power.

    The pace of each node's save is set so that the moment finds all kinds: most nodes have saved,
    every fourth is in the middle of a file, and every fourth has not begun.
    """
    names = [state.name for state in farm.states()]
    torn = names[1::4] if len(names) > 1 else names
    behind = names[3::4]
    pauses = {**dict.fromkeys(torn, "slow"), **dict.fromkeys(behind, "late")}
    job = start_training(farm, layout, pauses=pauses)

    def in_save() -> bool:
        _refuse_dead_job(job, layout)
        whole = [n for n in names if n not in pauses]
        return all(_is_saved(layout, n, _TORN_AT) for n in whole) and all(
            _size(_folder(layout, n, _TORN_AT) / "optimizer.pt") > 0 for n in torn
        )

    _wait(in_save, f"the save of iteration {_TORN_AT}")
    farm.power_off([])
    for process in job:
        process.wait()
    _lose_unflushed(layout, names)


def break_two(farm: Farm) -> str:
    """Breaks a GPU on one node and the memory of another, as a power loss does."""
    names = [state.name for state in farm.states()]
    if len(names) < 4:
        return "too few nodes to break one"
    lost, struck = names[2], names[-3]
    farm.break_node("gpu-lost", lost, None)
    farm.break_node("ecc", struck, None)
    return f"{lost} lost a GPU, {struck} has memory errors"


def start_training(
    farm: Farm, layout: Layout, *, pauses: Mapping[str, str]
) -> list[subprocess.Popen[bytes]]:
    """Starts the job on all nodes as a launcher would; ``pauses``: node -> slow or late saves."""
    states = farm.states()
    master_port = str(master_port_of(states[0].port))
    job = []
    for rank, state in enumerate(states):
        environment = {
            **farm.environment(state.name),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": master_port,
            "WORLD_SIZE": str(len(states)),
            "RANK": str(rank),
            "LAB_SAVE_PACE": pauses.get(state.name, ""),
            "LAB_SAVE_PACE_AT": str(_TORN_AT),
        }
        line = f"exec lab-train --interval {_INTERVAL} --pause 0.005 >> log/job.out 2>&1"
        job.append(
            subprocess.Popen(
                ["/bin/sh", "-c", line],
                cwd=layout.home(state.name),
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
    return job


def master_port_of(first_port: int) -> int:
    """The port where rank 0 listens: beside the nodes' own."""
    return first_port + MASTER_PORT_OFFSET if first_port + MASTER_PORT_OFFSET < 65536 else 29500


def _refuse_dead_job(job: list[subprocess.Popen[bytes]], layout: Layout) -> None:
    if any(process.poll() is not None for process in job):
        raise LabError(
            "the training job ended by itself",
            remedy=f"read {layout.root}/nodes/*/home/log/job.out",
        )


def _wait(reached: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _TIME_LIMIT_S
    while not reached():
        if time.monotonic() > until:
            raise LabError(f"{what} was not seen in {_TIME_LIMIT_S:g} s", remedy="recover lab down")
        time.sleep(_POLL_S)


def _folder(layout: Layout, name: str, step: int) -> Path:
    return layout.home(name) / "ckpt" / f"checkpoint-{step}"


def _is_saved(layout: Layout, name: str, step: int) -> bool:
    """The job writes its log line about a save after the last byte."""
    log = layout.home(name) / "log" / "train.log"
    return log.exists() and f"saved checkpoint-{step}\n" in log.read_text(errors="replace")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _saved_everywhere(farm: Farm, layout: Layout, step: int) -> bool:
    return all(_is_saved(layout, s.name, step) for s in farm.states())


def _lose_unflushed(layout: Layout, names: list[str]) -> None:
    """What the page cache held is gone: on one node a file of the newest save is empty.

    Source: ext4 with delayed allocation leaves files of size 0 when the power fails before the
    data was flushed (30 s by default), though the names are there.
    """
    for name in names[6:7]:
        file = _folder(layout, name, _TORN_AT) / "model.safetensors"
        if file.exists():
            file.write_bytes(b"")


SCENARIOS: Mapping[str, Callable[[Farm, Layout], str]] = {
    "none": lambda _farm, _layout: "every node is well",
    "training": training,
    "power-loss": power_loss,
    "power-loss-clean": power_loss_clean,
}
