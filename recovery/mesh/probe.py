"""What a node has for the mesh, asked in one line before the first test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from shlex import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Tools by name with their paths, RDMA devices, public host keys, and the leaf LLDP names."""

    tools: Mapping[str, str] = field(default_factory=dict)
    mpi: str = ""
    hcas: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    leaf: str = ""
    json: tuple[str, ...] = ()  # tools that know -J
    digests: Mapping[str, str] = field(default_factory=dict)

    def has(self, tool: str) -> bool:
        """Claims that the node has this tool."""
        return tool in self.tools


def probe_line(programs: Iterable[str], python: str = "python3") -> str:
    """The line; it reads only, and says nothing about what is not there.

    That a build knows ``-J`` is seen by the words that it would say of its file (from v2.17 on).
    ``python`` is the one that may have torch.

    Source: sysfs-class-infiniband, ``mpirun --version`` of Open MPI 4 and 5, lldpctl(8).
    """
    named = " ".join(quote(name) for name in (*programs, "mpirun", "srun"))
    return "; ".join((
        f'for t in {named}; do p=$(command -v "$t") && echo "tool $t $p"; done',
        f'for t in {" ".join(map(quote, programs))}; do p=$(command -v "$t")'
        ' && echo "sum $t $(sha256sum < "$p")"; done',
        f'for t in {" ".join(map(quote, programs))}; do p=$(command -v "$t")'
        ' && grep -qs "Writing JSON output" "$p" && echo "json $t"; done',
        "mpirun --version 2>/dev/null | sed -n '1s/^/mpi /p'",
        f"{quote(python)} -c 'from importlib.util import find_spec as f;"
        ' f("torch") and print("tool torch -")\' 2>/dev/null',
        'for d in /sys/class/infiniband/*; do [ -e "$d" ] && echo "hca ${d##*/}"; done',
        "cat /etc/ssh/ssh_host_*_key.pub 2>/dev/null | sed 's/^/key /'",
        "lldpctl -f keyvalue 2>/dev/null | sed -n 's/^.*chassis.name=/leaf /p' | sort | uniq -c"
        " | sort -rn | sed -n '1s/^ *[0-9]* //p'",
        "true",
    ))  # fmt: skip


def read_probe(text: str) -> Probe:
    """What the line printed; lines of other kinds are not ours."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if rest:
            found.setdefault(kind, []).append(rest.strip())
    return Probe(
        tools=dict(_two(words) for words in found.get("tool", ())),
        mpi=(found.get("mpi") or [""])[0],
        hcas=tuple(found.get("hca", ())),
        keys=tuple(key for key in found.get("key", ()) if len(key.split()) >= 2),
        leaf=(found.get("leaf") or [""])[0],
        json=tuple(found.get("json", ())),
        digests={name: rest.split()[0] for name, rest in map(_two, found.get("sum", ())) if rest},
    )


def _two(words: str) -> tuple[str, str]:
    first, _, rest = words.partition(" ")
    return first, rest


@dataclass(frozen=True, slots=True)
class Odd:
    """A node that differs from most, and in what."""

    node: str
    finding: str
    remedy: str


def odd_ones(probes: Mapping[str, Probe]) -> tuple[Odd, ...]:
    """Nodes whose MPI or whose nccl-tests are not those of most others."""
    found = [*_odd(probes, {name: probe.mpi for name, probe in probes.items()}, "Open MPI")]
    for program in sorted({name for probe in probes.values() for name in probe.digests}):
        sums = {node: probe.digests.get(program, "")[:12] for node, probe in probes.items()}
        found += _odd(probes, sums, f"build of {program.rpartition('/')[2]}")
    return tuple(found)


def _odd(probes: Mapping[str, Probe], values: Mapping[str, str], what: str) -> Iterable[Odd]:
    counted = Counter(value for value in values.values() if value)
    if len(counted) < 2:
        return
    usual = counted.most_common(1)[0][0]
    for node in probes:
        if values[node] and values[node] != usual:
            yield Odd(
                node,
                f"another {what} than most nodes: {values[node]}, others {usual}",
                f"install the same {what} on all nodes",
            )


def strange_hcas(asked: str, present: Iterable[str]) -> tuple[str, ...]:
    """Names in NCCL_IB_HCA that fit no device of the node; none when nothing is known of it.

    Source: NCCL documentation of NCCL_IB_HCA: ``^`` excludes, ``=`` is exact, else a prefix.
    """
    devices = tuple(present)
    if not asked or not devices or asked.startswith("^"):
        return ()
    exact = asked.startswith("=")
    names = [word.partition(":")[0] for word in asked.lstrip("=").split(",") if word]
    return tuple(n for n in names if not any(d == n if exact else d.startswith(n) for d in devices))
