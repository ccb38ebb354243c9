"""A golden run: what stays, what must not grow, and the band that it teaches."""

from recovery.engine.golden import ALIKE, differences, kept_facts
from recovery.model.verdict import Level


def node(**checks):
    return {name.replace("__", "."): facts for name, facts in checks.items()}


def temps(*values):
    return {"temps_c": {f"GPU{i}": v for i, v in enumerate(values)}}


def words(golden, now):
    return [d.finding.finding for d in differences(golden, now)]


def test_the_same_run_has_no_difference():
    run = {"a": node(gpu__count={"gpus": {"": 8}}, gpu__thermal=temps(31.0, 35.0))}

    assert differences(run, run) == ()


def test_a_counter_that_grew_is_told_and_one_that_was_reset_is_not():
    before = {"a": node(gpu__remap={"remapped_uncorrectable": {"GPU2": 1}})}
    grown = {"a": node(gpu__remap={"remapped_uncorrectable": {"GPU2": 3}})}

    assert words(before, grown) == ["GPU2 remapped_uncorrectable grew from 1 to 3"]
    assert words(grown, before) == []


def test_a_counter_that_was_not_listed_counts_from_zero():
    before = {"a": node(gpu__ecc={"aggregate_dram_uncorrectable": {}})}
    now = {"a": node(gpu__ecc={"aggregate_dram_uncorrectable": {"GPU1": 2}})}

    assert [d.finding.level for d in differences(before, now)] == [Level.FAIL]
    assert words(before, now) == ["GPU1 aggregate_dram_uncorrectable grew from 0 to 2"]


def test_a_replaced_gpu_is_named_with_both_serials():
    before = {"a": node(gpu__identity={"gpu_identity": {"GPU0": "165", "GPU1": "166"}})}
    now = {"a": node(gpu__identity={"gpu_identity": {"GPU0": "165", "GPU1": "199"}})}

    assert words(before, now) == ["GPU1 gpu_identity is 199, was 166"]


def test_what_is_gone_and_what_is_new_differ():
    before = {"a": node(fs__mounts={"mounts": {"/": "ext4", "/lustre": "lustre"}})}
    now = {"a": node(fs__mounts={"mounts": {"/": "ext4", "/data": "xfs"}})}

    assert words(before, now) == [
        "/lustre mounts is absent, was lustre",
        "/data mounts is xfs, was absent",
    ]


def test_a_shared_setting_is_called_by_its_own_name():
    before = {"a": node(kernel__version={ALIKE: {"kernel": "6.8"}})}
    now = {"a": node(kernel__version={ALIKE: {"kernel": "5.15"}})}

    assert words(before, now) == ["kernel is 5.15, was 6.8"]


def test_a_bandwidth_below_the_learned_band_is_told():
    golden = {n: node(gpu__bandwidth={"h2d_gb_per_s": {"": 55.0}}) for n in "abcd"}
    now = {n: node(gpu__bandwidth={"h2d_gb_per_s": {"": 55.0}}) for n in "abc"}
    now["d"] = node(gpu__bandwidth={"h2d_gb_per_s": {"": 26.0}})

    found = differences(golden, now)

    assert [(d.node, d.finding.level) for d in found] == [("d", Level.WARN)]
    assert "is 26, the golden run had 52.25 at least" in found[0].finding.finding


def test_a_faster_or_cooler_part_is_no_difference():
    golden = {"a": node(gpu__bandwidth={"h2d_gb_per_s": {"": 50.0}}, gpu__thermal=temps(40.0))}
    now = {"a": node(gpu__bandwidth={"h2d_gb_per_s": {"": 60.0}}, gpu__thermal=temps(20.0))}

    assert differences(golden, now) == ()


def test_a_gpu_much_warmer_than_all_were_is_told():
    golden = {"a": node(gpu__thermal=temps(31.0, 32.0, 33.0, 32.0))}
    now = {"a": node(gpu__thermal=temps(31.0, 32.0, 33.0, 48.0))}

    assert words(golden, now) == ["GPU3 temps_c is 48, the golden run had 42 at most"]


def test_what_is_not_answered_any_more_is_unknown():
    before = {"a": node(gpu__count={"gpus": {"": 8}}, gpu__pcie={"pcie_width": {"GPU0": 16}})}
    now = {"a": node(gpu__pcie={})}

    found = differences(before, now)

    assert {d.finding.level for d in found} == {Level.UNKNOWN}
    assert [d.check for d in found] == ["gpu.count", "gpu.pcie"]


def test_nodes_that_only_one_run_has_are_named():
    facts = node(gpu__count={"gpus": {"": 8}})

    assert words({"a": facts, "b": facts}, {"a": facts, "c": facts}) == [
        "the node is not in this run",
        "the node is not in the baseline",
    ]


def test_only_what_lasts_is_kept():
    kept = kept_facts(
        "gpu.power", {"power_w": {"GPU0": 71.0}, "power_limits_w": {"GPU0": 700.0}}, {}
    )

    assert kept == {"power_limits_w": {"GPU0": 700.0}}
    assert kept_facts("clock.sync", {"clock_offset_s": 0.1}, {"time service": "chrony"}) == {
        ALIKE: {"time service": "chrony"}
    }
