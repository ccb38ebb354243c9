"""How long it takes to ask many nodes, beside the tools people use: `python -m tests.bench.fanout`.

    python -m tests.bench.fanout [--nodes 64] [--rounds 3] [--only W2] [--clients recover,clush]
    python -m tests.bench.fanout --quick        # 16 nodes, one round, W1 and W2

The nodes are real sshd on loopback addresses of this machine, so servers and clients share its
cores; *machine limit* is (server CPU + client CPU) / cores: no client that does this work this way
can be faster here. Clients take turns in each round; medians are shown. A peer is taken from PATH,
or from the folder in $RECOVER_BENCH_PEERS (the ``bin`` of an environment), and left out when it is
not there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench._clients import CLIENTS, PATH, ROOT, Client, Job
from tests.bench._farm import SSHD, Farm, address

LIMIT_S = 900.0
N_CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Workload:
    """What is asked of the nodes."""

    name: str
    about: str
    commands: tuple[str, ...]
    n_nodes: int = 0  # 0: as many as were asked for
    limit_s: float = 60.0
    mute: bool = False


WORKLOADS = (
    Workload("W1", "connect and `true`", ("true",)),
    Workload("W2", "eight gated commands", tuple(f"echo step{n}" for n in range(8))),
    Workload("W3", "1 MiB of output a node", ('cat "$HOME/output"',)),
    Workload("W4", "`sleep 2` on 256 nodes", ("sleep 2",), n_nodes=256),
    Workload("W5", "one node mute, limit 5 s", ("true",), limit_s=5.0, mute=True),
)


@dataclass(frozen=True)
class Measured:
    """One client once."""

    wall_s: float
    client_cpu_s: float
    server_cpu_s: float
    peak_mb: float
    good: bool

    @property
    def machine_limit_s(self) -> float:
        """The least time in which this machine can do this work."""
        return (self.client_cpu_s + self.server_cpu_s) / N_CORES


@contextmanager
def farm_of(n_nodes: int) -> Iterator[Farm]:
    """A farm, ended at the end."""
    with tempfile.TemporaryDirectory(prefix="fanout") as folder:
        farm = Farm(Path(folder), n_nodes)
        try:
            farm.start()
            (farm.home / "output").write_bytes((b"x" * 63 + b"\n") * (1 << 14))
            farm.hush()
            yield farm
        finally:
            farm.close()


def measure(client: Client, workload: Workload, farm: Farm, n_nodes: int) -> Measured:
    """Runs one client once on one workload."""
    nodes = tuple(address(n) for n in range(n_nodes))
    if workload.mute:
        nodes = (farm.mute_address, *nodes[1:])
    with tempfile.TemporaryDirectory(prefix="fo") as folder:
        may_fail = int(workload.mute)
        job = Job(farm, Path(folder), nodes, workload.commands, workload.limit_s, may_fail)
        argv = [sys.executable, "-m", "tests.bench._meter", str(LIMIT_S), *client.prepare(job)]
        before = farm.cpu_s()
        done = subprocess.run(
            argv, cwd=ROOT, env={**os.environ, "PATH": PATH}, capture_output=True, check=False
        )
        farm.settle()
        server_cpu_s = farm.cpu_s() - before
    found = json.loads(done.stdout)
    good = found["status"] == 0
    if not good:
        print(f"{client.name} {workload.name}: status {found['status']}", file=sys.stderr)
        print(done.stderr.decode(errors="replace")[-400:], file=sys.stderr)
    return Measured(found["wall_s"], found["cpu_s"], server_cpu_s, found["peak_mb"], good)


def rounds(
    clients: tuple[Client, ...], workload: Workload, farm: Farm, *, n_nodes: int, n_rounds: int
) -> dict[str, list[Measured]]:
    """All clients in turn, in the other direction every second time."""
    found: dict[str, list[Measured]] = {client.name: [] for client in clients}
    for number in range(n_rounds):
        for client in clients if number % 2 == 0 else reversed(clients):
            found[client.name].append(measure(client, workload, farm, n_nodes))
            one = found[client.name][-1]
            print(f"  {workload.name} {client.name}: {one.wall_s:.2f} s", file=sys.stderr)
    return found


def table(workload: Workload, n_nodes: int, found: dict[str, list[Measured]]) -> str:
    """Medians as Markdown."""
    rows = [
        f"\n**{workload.name}: {workload.about}, {n_nodes} nodes**\n",
        "| client | wall s | x of the first | client CPU s | server CPU s | machine limit s "
        "| wall / limit | peak MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    first = 0.0
    for name, all_measured in found.items():
        middle = {
            key: statistics.median(getattr(m, key) for m in all_measured)
            for key in ("wall_s", "client_cpu_s", "server_cpu_s", "machine_limit_s", "peak_mb")
        }
        first = first or middle["wall_s"]
        bad = "" if all(m.good for m in all_measured) else " (failed)"
        limit_s = middle["machine_limit_s"]
        rows.append(
            f"| {name}{bad} | {middle['wall_s']:.2f} | {middle['wall_s'] / first:.2f} "
            f"| {middle['client_cpu_s']:.2f} | {middle['server_cpu_s']:.2f} | {limit_s:.2f} "
            f"| {middle['wall_s'] / limit_s:.2f} | {middle['peak_mb']:.0f} |"
        )
    return "\n".join(rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="workloads: W1,W2")
    parser.add_argument("--clients", default="", help="beginnings of names: recover,asyncssh")
    parser.add_argument("--quick", action="store_true", help="16 nodes, one round, W1 and W2")
    asked = parser.parse_args()
    if asked.quick:
        asked.nodes, asked.rounds, asked.only = 16, 1, asked.only or "W1,W2"
    return asked


def main() -> None:
    asked = _arguments()
    if not Path(SSHD).exists():
        sys.exit(f"needs {SSHD} (apt-get install openssh-server)")
    wanted = tuple(c for c in CLIENTS if c.name.startswith(tuple(asked.clients.split(","))))
    reasons = {c.name: c.missing() for c in wanted}
    if left_out := [reason for reason in reasons.values() if reason]:
        print(f"left out: {', '.join(left_out)}", file=sys.stderr)
    clients = tuple(c for c in wanted if not reasons[c.name])
    chosen = [w for w in WORKLOADS if not asked.only or w.name in asked.only.split(",")]
    print(f"{N_CORES} cores; medians of {asked.rounds}")
    with farm_of(max(w.n_nodes or asked.nodes for w in chosen)) as farm:
        for workload in chosen:
            n_nodes = workload.n_nodes or asked.nodes
            found = rounds(clients, workload, farm, n_nodes=n_nodes, n_rounds=asked.rounds)
            print(table(workload, n_nodes, found), flush=True)


if __name__ == "__main__":
    main()
