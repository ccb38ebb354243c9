"""Profiles: every number says what it is and where it comes from."""

import re
from pathlib import Path

import pytest

from recovery.errors import InventoryError
from recovery.inventory import merge_expectations, read_profile
from recovery.model.node import Node

SHIPPED = sorted((Path(__file__).parents[2] / "inventories" / "profiles").glob("*.yaml"))
HEAD = "profile: p\nmatch: [NVIDIA X]\n"
GOOD = (
    HEAD
    + """\
about: a test
expect:
  expected_gpus: {value: 8, kind: spec, source: board}
  expected_gpu_link: {value: NV18, kind: spec, source: topo, note: through the switch}
busbw:
  - {collective: all_reduce, nodes: 2, gpus: 8, payload: 4G, algorithm: ring, value: 335,
     kind: floor, source: ours}
  - {collective: alltoall, nodes: 1, gpus: 8, value: 320, kind: spec, source: slide}
"""
)
EXPECT = "expect:\n  expected_gpus: {value: 8, kind: spec, source: board}\n"


def test_expectations_are_flat_and_their_sources_beside_them():
    profile = read_profile(GOOD, "p.yaml")

    assert (profile.name, profile.about, profile.match) == ("p", "a test", ("NVIDIA X",))
    assert profile.expectations == {"expected_gpus": 8, "expected_gpu_link": "NV18"}
    assert profile.sources["expected_gpus"] == ("spec", "board")


def test_a_bandwidth_row_has_all_that_it_compares_by():
    ring, plain = read_profile(GOOD, "p.yaml").busbw

    assert ring == {
        "collective": "all_reduce", "nodes": 2, "gpus": 8, "payload": "4G",
        "payload_bytes": 4 * 1024**3, "algorithm": "ring", "value": 335, "kind": "floor",
        "source": "ours",
    }  # fmt: skip
    assert (plain["payload"], plain["payload_bytes"], plain["algorithm"]) == (None, None, "")


def test_variables_of_the_node_win_over_the_profile():
    profile = read_profile(GOOD, "p.yaml")
    node = Node("n1", variables={"expected_gpus": 4, "temp_max_c": 80})

    merged = merge_expectations(profile, node)

    assert merged["expected_gpus"] == 4
    assert merged["expected_gpu_link"] == "NV18"
    assert merged["temp_max_c"] == 80
    assert merged["busbw"] == list(profile.busbw)


def test_without_a_profile_only_the_variables_are_expected():
    assert merge_expectations(None, Node("n1", variables={"a": 1})) == {"a": 1, "busbw": []}


BAD_ROW = "busbw:\n  - {collective: all_reduce, nodes: 1, gpus: 8, value: 1, kind: spec, source: s}"


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("- a\n", "p.yaml:1:1: keys expected, not ['a']", "use profile, about"),
        ("", "p.yaml:1:1: keys expected, not None", "use profile"),
        ("match: [x]\n" + EXPECT, "p.yaml:1:1: no profile", "write `profile: a name`"),
        ("profile: p\n" + EXPECT, "p.yaml:1:1: no product names to match", "nvidia-smi -L"),
        ("profile: p\nmatch: x\n" + EXPECT, "p.yaml:2:1: no product names", "match: ["),
        (HEAD + "expct: {}\n", "p.yaml:3:1: no key 'expct' here (did you mean \"expect\"?)", "of:"),
        (HEAD, "p.yaml:1:1: no expectations", "write `expect:`"),
        (HEAD + "expect:\n", "p.yaml:3:1: no expectations", "write `expect:`"),
        (HEAD + "expect:\n  gpus: 8\n", "p.yaml:4:3: keys expected, not 8", "use value, kind"),
        (
            HEAD + "expect:\n  Gpus: {value: 8, kind: spec, source: s}\n",
            "p.yaml:4:3: 'Gpus' is not a name",
            "temp_max_c",
        ),
        (
            HEAD + "expect:\n  gpus: {kind: spec, source: s}\n",
            "p.yaml:4:3: no value for 'gpus'",
            "write `value:`",
        ),
        (
            HEAD + "expect:\n  gpus: {value: 8, source: s}\n",
            "p.yaml:4:3: no kind",
            "floor, measured, spec",
        ),
        (
            HEAD + "expect:\n  gpus: {value: 8, kind: flor, source: s}\n",
            "p.yaml:4:20: no kind 'flor' (did you mean \"floor\"?)",
            "floor, measured, spec",
        ),
        (
            HEAD + "expect:\n  gpus: {value: 8, kind: spec}\n",
            "p.yaml:4:3: no source for 'gpus'",
            "where the number comes from",
        ),
        (
            HEAD + "expect:\n  gpus: {value: 8, kind: spec, source: s, sorce: t}\n",
            "p.yaml:4:43: no key 'sorce' here (did you mean \"source\"?)",
            "one of",
        ),
        (HEAD + EXPECT + "busbw: 3\n", "p.yaml:5:1: busbw must be a list", "begin a row"),
        (
            HEAD + EXPECT + BAD_ROW.replace("all_reduce", "allreduce"),
            "p.yaml:6:6: no collective 'allreduce' (did you mean \"all_reduce\"?)",
            "one of: all_reduce",
        ),
        (
            HEAD + EXPECT + BAD_ROW.replace("value: 1", "value: fast"),
            "no bandwidth: 'fast'",
            "GB/s",
        ),
        (HEAD + EXPECT + BAD_ROW.replace("value: 1", "value: 0"), "no bandwidth: 0", "GB/s"),
        (HEAD + EXPECT + BAD_ROW.replace("nodes: 1", "nodes: 0"), "nodes cannot be 0", "from 1"),
        (HEAD + EXPECT + BAD_ROW.replace("gpus: 8", "gpus: x"), "gpus cannot be 'x'", "from 1"),
        (HEAD + EXPECT + BAD_ROW.replace("nodes: 1, ", ""), "nodes cannot be None", "from 1"),
        (
            HEAD + EXPECT + BAD_ROW.replace("value: 1", "payload: big, value: 1"),
            "not a size: 'big'",
            "8G or 512M",
        ),
        (HEAD + EXPECT + BAD_ROW.replace(", source: s", ""), "p.yaml:6:5: no source", "comes from"),
        (HEAD + EXPECT + BAD_ROW.replace("kind: spec, ", ""), "p.yaml:6:5: no kind", "floor"),
    ],
)
def test_a_number_that_does_not_say_what_it_is_is_refused(text, message, remedy):
    with pytest.raises(InventoryError) as error:
        read_profile(text, "p.yaml")

    assert message in error.value.message
    assert remedy in error.value.remedy


@pytest.fixture(params=SHIPPED, ids=lambda path: path.stem)
def shipped(request):
    return request.param


def test_five_kinds_of_machine_are_shipped():
    assert [path.stem for path in SHIPPED] == [
        "a100-sxm8", "b200-sxm8", "h100-sxm8", "h200-sxm8", "l40s-pcie",
    ]  # fmt: skip


def test_every_shipped_number_says_its_kind_and_source(shipped):
    profile = read_profile(shipped.read_text(), shipped.name)

    assert profile.name == shipped.stem
    for name in profile.expectations:
        kind, source = profile.sources[name]
        assert kind in ("floor", "measured", "spec")
        assert len(source) > 10
    for row in profile.busbw:
        assert row["kind"] in ("floor", "measured", "spec")
        assert row["source"]


def test_no_number_stands_outside_of_an_entry_with_a_source(shipped):
    profile = read_profile(shipped.read_text(), shipped.name)
    values = re.findall(r"\bvalue:", re.sub(r"#.*", "", shipped.read_text()))

    assert len(values) == len(profile.expectations) + len(profile.busbw)


def test_each_test_has_one_shipped_floor_at_a_payload(shipped):
    shape = ("collective", "nodes", "gpus", "payload", "algorithm")
    rows = read_profile(shipped.read_text(), shipped.name).busbw
    floors = [tuple(row[key] for key in shape) for row in rows if row["kind"] == "floor"]

    assert len(floors) == len(set(floors))


def test_no_shipped_floor_is_above_what_was_measured_at_the_same_test(shipped):
    rows = read_profile(shipped.read_text(), shipped.name).busbw
    shape = ("collective", "nodes", "gpus", "algorithm")
    for floor in (row for row in rows if row["kind"] == "floor"):
        for row in rows:
            same = all(row[key] == floor[key] for key in shape)
            as_big = (row["payload_bytes"] or 0) >= (floor["payload_bytes"] or 0)
            if same and row["kind"] == "measured" and as_big:
                assert floor["value"] <= row["value"]


@pytest.mark.parametrize(
    "name",
    ["expected_gpus", "expected_gpu_name", "memory_mib", "expected_pcie_gen", "expected_pcie_width",
     "temp_warn_c", "temp_max_c", "power_limit_w", "h2d_gb_per_s"],
)  # fmt: skip
def test_every_shipped_profile_answers_the_common_questions(shipped, name):
    assert name in read_profile(shipped.read_text(), shipped.name).expectations


def test_only_cards_without_nvlink_have_no_gpu_link(shipped):
    expectations = read_profile(shipped.read_text(), shipped.name).expectations

    assert ("expected_gpu_link" in expectations) == ("sxm" in shipped.stem)
    assert ("expected_links" in expectations) == ("sxm" in shipped.stem)
