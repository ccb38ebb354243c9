"""The exact lines that start one test: alone, by mpirun, by srun, by torch; and what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from shlex import join, quote

# A dead node must not hold mpirun's own ssh for minutes, and nobody is there to type a password.
_NO_QUEUE = "--immediate=15"  # a node that is down or busy must not look like a hang of the test
_SSH = "-o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o BatchMode=yes"

_WITHOUT_ENV = r's/"env":\[.*\],"\(nccl_version\|config\)":/"\1":/p'
_PRINT_JSON = f"""{{ sed -n {quote(_WITHOUT_ENV)} "$d/j" 2> /dev/null; echo; }}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One test to start. ``hosts`` are the names by which the launcher reaches the nodes.

    ``gpus`` is a node's number of them; ``folder`` holds the nccl-tests where they are not on the
    PATH; ``env`` are NCCL variables, an empty value takes one out; ``python`` may have torch.
    ``writes_json`` where the build knows ``-J``.
    """

    collective: str
    size: str
    gpus: int
    hosts: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    python: str = "python3"
    writes_json: bool = False

    @property
    def program(self) -> str:
        """The nccl-tests program of the collective."""
        name = f"{self.collective}_perf"
        return f"{self.folder.rstrip('/')}/{name}" if self.folder else name

    @property
    def algorithm(self) -> str:
        """The algorithm that the test forces, as profiles call it; empty where NCCL chooses."""
        return self.env.get("NCCL_ALGO", "").rpartition(":")[2].lower()

    @property
    def variables(self) -> dict[str, str]:
        """The environment, without what was taken out."""
        return {name: value for name, value in self.env.items() if value}


def on_pairs(launch: Launch) -> Launch:
    """The test of two nodes, with the ring forced where NCCL would choose a tree.

    Left alone, NCCL runs all_reduce over two nodes as NVLSTree, which loads each NIC to 65 %:
    one that lost a third of its speed would not show.
    """
    if launch.collective != "all_reduce" or len(launch.hosts) != 2 or "NCCL_ALGO" in launch.env:
        return launch
    return replace(launch, env={**launch.env, "NCCL_ALGO": "Ring"})


def on_rail(launch: Launch, rail: int, hca: str, n_rails: int) -> Launch:
    """The test of one NIC of each node, with the GPU next to it."""
    gpu = rail * launch.gpus // max(n_rails, 1)
    one = {"NCCL_IB_HCA": hca, "CUDA_VISIBLE_DEVICES": str(gpu)}
    return replace(launch, gpus=1, env={**launch.env, **one})


def pooled(launch: Launch, size: int) -> Launch:
    """All groups of ``size`` nodes in one launch, one communicator each, side by side.

    ``hosts`` name the nodes group by group. What it measures is the slowest rank of all groups
    (``-a 3``), so that it says whether any group is slow, and not which.

    Source: README of nccl-tests, NCCL_TESTS_SPLIT.
    """
    return replace(launch, env={**launch.env, "NCCL_TESTS_SPLIT": f"DIV {size * launch.gpus}"})


def alone_line(launch: Launch) -> str:
    """The build without MPI on one node, all its GPUs in one process."""
    return _with_folder(launch, join((launch.program, *_sizes(launch), "-g", str(launch.gpus))))


def mpirun_line(launch: Launch, *, carries_keys: bool = False) -> str:
    """Open MPI from the first node, one rank a GPU.

    With ``carries_keys`` the host keys of the nodes come on standard input (`known_hosts`), so
    that the nodes need not know each other; their own known_hosts are still looked at.
    """
    hosts = ",".join(f"{host}:{launch.gpus}" for host in launch.hosts)
    ssh = f'"{_SSH} -o GlobalKnownHostsFile=$d/k"' if carries_keys else quote(_SSH)
    start = "mpirun --allow-run-as-root --tag-output --mca plm_rsh_args"
    ranks = ("-np", str(launch.gpus * len(launch.hosts)), "-H", hosts)
    passed = (
        word for name, value in launch.variables.items() for word in ("-x", f"{name}={value}")
    )
    rest = join((*ranks, *passed, launch.program, *_sizes(launch), "-g", "1"))
    return _with_folder(launch, f"{start} {ssh} {rest}", carries_keys=carries_keys)


def _with_folder(launch: Launch, line: str, *, carries_keys: bool = False) -> str:
    """The line with a folder of its own, where it needs one: for host keys, for the JSON file.

    The file is printed below the text, without the node's whole environment (secrets too), and
    only after a good end: a torn one says less than the text.
    """
    if not (carries_keys or launch.writes_json):
        return line
    keys = ' && cat > "$d/k"' if carries_keys else ""
    told = ' -J "$d/j"' if launch.writes_json else ""
    begun = f"d=$(mktemp -d) && trap 'rm -rf \"$d\"' EXIT{keys} && {line}{told} < /dev/null"
    return f"{begun} && {_PRINT_JSON}" if launch.writes_json else begun


def srun_line(launch: Launch) -> str:
    """Slurm's own launcher from the first node; the nodes must be in an allocation or idle."""
    n_nodes, names = len(launch.hosts), ",".join(launch.hosts)
    shape = (f"--nodes={n_nodes}", f"--nodelist={names}", f"--ntasks-per-node={launch.gpus}")
    slurm = ("srun", "--mpi=pmix", "--overlap", "--kill-on-bad-exit=1", _NO_QUEUE, *shape)
    exported = ",".join(("ALL", *(f"{n}={v}" for n, v in launch.variables.items() if "," not in v)))
    line = join((*slurm, f"--export={exported}", launch.program, *_sizes(launch), "-g", "1"))
    return _with_folder(launch, line)


def torch_line(launch: Launch, node_rank: int, address: str, port: int, timeout_s: float) -> str:
    """One node's part of a torch test; the program comes on standard input."""
    options = {
        "collective": launch.collective,
        "size": launch.size,
        "gpus": launch.gpus,
        "nodes": len(launch.hosts),
        "node-rank": node_rank,
        "address": address,
        "port": port,
        "timeout": f"{timeout_s:.0f}",
    }
    words = (word for name, value in options.items() for word in (f"--{name}", str(value)))
    return join((launch.python, "-", *words))


def _sizes(launch: Launch) -> tuple[str, ...]:
    slowest = ("-a", "3") if "NCCL_TESTS_SPLIT" in launch.env else ()
    return ("-b", launch.size, "-e", launch.size, "-f", "2", *slowest)


def known_hosts(keys: Iterable[tuple[Iterable[str], Iterable[str]]]) -> bytes:
    """A known_hosts file from each node's names and its public host keys as /etc/ssh has them."""
    lines = []
    for names, public in keys:
        for key in public:
            kind_and_key = " ".join(key.split()[:2])
            lines.append(f"{','.join(dict.fromkeys(filter(None, names)))} {kind_and_key}\n")
    return "".join(lines).encode()
