"""Events of a run of N nodes, as the engine would journal them, with every kind of thing in it."""

from recovery.model.events import (
    GateDecided,
    NodeFinished,
    Noted,
    Quarantined,
    RunFinished,
    RunStarted,
    Saved,
    StepFinished,
    StepStarted,
)
from recovery.model.kind import Kept, NodeResult
from recovery.model.verdict import failed, passed, single, unknown, warned

TOPOLOGY = (
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\t0-55\t0\t\tN/A\nGPU1\tNV18\t X \t0-55\t0\t\tN/A\n\nLegend:\n\n"
    "  X    = Self\n  SYS  = Connection traversing PCIe\n  NODE = x\n  PHB  = x\n  PXB  = x\n"
    "  PIX  = x\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
)
EVIL = "\x1b[31m<script>alert(1)</script>\x00 & | `x`"


class Shelf:
    """Evidence in memory."""

    def __init__(self):
        self.kept = {}

    def put(self, content):
        digest = f"{len(self.kept):064x}"
        self.kept[digest] = content
        return digest

    def get(self, digest):
        return self.kept[digest]


def names(n_nodes):
    return tuple(f"node{i:03d}" for i in range(1, n_nodes + 1))


def events_of(n_nodes, shelf, words="GPU 3 fell off the bus"):
    nodes = names(n_nodes)
    digest = shelf.put(TOPOLOGY.encode())
    kept = (Kept("nvidia-smi topo -m", digest, len(TOPOLOGY)),)

    def result(node, finding):
        return NodeResult(node=node, verdict=single(finding), kept=kept, duration_s=0.5)

    yield RunStarted(
        at=0.0,
        run="20261201-000000-c-ab12",
        cluster="c",
        runbook="power-loss",
        digest="d" * 64,
        nodes=nodes,
        seed=1,
        version="0",
        owner="ada@head",
    )
    yield StepStarted(at=1.0, step="check-1", verb="check", attempt=1, nodes=nodes, deadline_s=60)
    for i, node in enumerate(nodes):
        finding = passed("8 GPUs")
        if i == 1:
            finding = failed(words, remedy="drain it", component="GPU3", code="gpu.lost")
        if i == 2:
            finding = unknown("no answer", remedy="look at its BMC")
        if i == 3:
            finding = warned("hot", remedy="look at the fans")
        yield NodeFinished(at=2.0, step="check-1", attempt=1, result=result(node, finding))
    yield GateDecided(
        at=2.5,
        step="check-1",
        decision="open-without",
        passed=n_nodes - 2,
        needed=4,
        total=n_nodes,
        without=nodes[1:3],
    )
    yield Quarantined(at=2.6, step="check-1", nodes=nodes[1:2], reason=words, remedy="drain it")
    yield StepFinished(at=3.0, step="check-1", outcome="done")
    yield StepStarted(at=3.0, step="mesh-1", verb="mesh", attempt=1, nodes=nodes, deadline_s=60)
    for a, b in zip(nodes[::2], nodes[1::2], strict=False):
        yield Noted(
            at=4.0,
            step="mesh-1",
            message=f"{a} {b}",
            kind="mesh.test",
            facts={
                "round": 1,
                "level": "pairs",
                "group": [a, b],
                "busbw_gb_per_s": 371.5,
                "ok": True,
                "finding": "",
            },
        )
    yield StepFinished(at=5.0, step="mesh-1", outcome="done")
    yield StepStarted(
        at=5.0, step="verify-1", verb="verify", attempt=1, nodes=nodes[:1], deadline_s=60
    )
    yield NodeFinished(
        at=6.0, step="verify-1", attempt=1, result=result(nodes[0], passed("resumed"))
    )
    curve = {
        "before": [[i, 3 - i / 100] for i in range(60)],
        "after": [[i, 3 - i / 100] for i in range(50, 90)],
    }
    yield Saved(at=6.0, step="verify-1", name="step", value=120)
    yield StepFinished(at=7.0, step="verify-1", outcome="done", values={"curves": {"loss": curve}})
    yield RunFinished(at=8.0, outcome="done", exit_code=0, reason="all steps done")
