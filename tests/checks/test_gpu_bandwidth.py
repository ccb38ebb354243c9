"""The slowest GPU of a node against those of the other nodes of the run."""

from recovery.checks.gpu_bandwidth import GPU_BANDWIDTH
from recovery.checks.gpu_burn import GPU_BURN, Burn
from recovery.model.verdict import Level
from recovery.reading.nvbandwidth import Bandwidths

CASE = "host_to_device_memcpy_ce"


def copies(*gb_per_s):
    values = {f"GPU{i}": v for i, v in enumerate(gb_per_s)}
    return Bandwidths({CASE: values}, frozenset({CASE}), ())


def test_a_node_far_below_the_others_warns():
    nodes = {name: copies(55.0, 55.2) for name in "abc"} | {"d": copies(55.0, 26.0)}

    found = GPU_BANDWIDTH.compare(nodes, 2 / 3)

    assert list(found) == ["d"]
    assert found["d"].level is Level.WARN
    assert "26.0 GB/s" in found["d"].worst.finding


def test_alike_nodes_and_few_nodes_are_not_compared():
    assert GPU_BANDWIDTH.compare({n: copies(55.0, 54.8) for n in "abcd"}, 2 / 3) == {}
    assert GPU_BANDWIDTH.compare({"a": copies(55.0), "b": copies(20.0)}, 2 / 3) == {}


def test_a_node_that_multiplies_slowly_warns():
    nodes = {name: Burn({"GPU0": 740_000.0}, ()) for name in "abc"}
    nodes |= {"d": Burn({"GPU0": 510_000.0}, ()), "silent": Burn({}, ("error",))}

    found = GPU_BURN.compare(nodes, 2 / 3)

    assert list(found) == ["d"]
    assert "510.0 Tflop/s" in found["d"].worst.finding
