from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from recovery.checkpoints.choose import Policy, choose
from recovery.model.verdict import Level
from tests.checkpoints import damage, trees
from tests.checkpoints.clusters import cluster, dated, inspection_of, on_share, without_step

EVERYTHING = Policy()


def test_a_sound_cluster_resumes_from_the_newest_step(tmp_path: Path) -> None:
    choice = choose(cluster(tmp_path, 4), EVERYTHING)

    assert (choice.step, choice.newest, choice.refused) == (300, 300, ())
    assert choice.facts["loss"] == pytest.approx(2.7)
    assert choice.path.endswith("checkpoint-300")


def test_an_older_step_is_chosen_where_one_is_asked_for(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 3)
    newest = choose(inspections, EVERYTHING).step

    assert newest is not None
    found = choose(inspections, Policy(before=newest))
    assert found.step is not None
    assert found.step < newest
    assert found.refused == ()


def test_a_node_behind_by_a_step_pulls_all_back_to_its_step(tmp_path: Path) -> None:
    choice = choose(cluster(tmp_path, 4, hurt={"n3": without_step(300)}), EVERYTHING)

    assert choice.step == 200
    assert choice.lagging == {"n3": 200}
    assert choice.refused[0].reason == "missing on 1 of 4 nodes"


def test_a_step_torn_on_one_node_is_not_chosen(tmp_path: Path) -> None:
    hurt = {"n2": lambda tree: os.truncate(damage.victim(tree), 500)}

    choice = choose(cluster(tmp_path, 4, hurt=hurt), EVERYTHING)

    assert choice.step == 200
    assert choice.torn == {"n2": (300,)}
    assert "optimizer.pt" in choice.refused[0].by_node["n2"]


def test_a_node_that_was_renumbered_does_not_lend_a_newer_step(tmp_path: Path) -> None:
    def renumber(tree: Path) -> None:
        (tree / "checkpoint-300").rename(tree / "checkpoint-400")

    choice = choose(
        cluster(tmp_path, 3, hurt=dict.fromkeys(("n1", "n2", "n3"), renumber)), Policy()
    )

    assert choice.step == 200
    assert choice.newest == 400
    assert "inside it is step 300" in next(iter(choice.refused[0].by_node.values()))


def test_a_clock_in_2015_changes_no_decision(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 4, hurt={"n4": dated(1_420_070_400)})

    choice = choose(inspections, replace(EVERYTHING, clock_offset_s={"n4": -3.6e8}))

    assert choice.step == 300


def test_ranks_on_node_local_disks_are_judged_on_their_union(tmp_path: Path) -> None:
    hurt = {
        node: lambda tree, rank=rank: [p.unlink() for p in tree.rglob(f"*pp_rank_{rank}_*")]
        for node, rank in (("n1", 1), ("n2", 0))
    }

    choice = choose(cluster(tmp_path, 2, layout="deepspeed", hurt=hurt), EVERYTHING)

    assert choice.step == 300
    assert choice.shared == ()


def test_a_rank_that_is_on_no_node_makes_the_step_incomplete(tmp_path: Path) -> None:
    hurt = {
        "n1": lambda tree: [p.unlink() for p in tree.rglob("*pp_rank_1_*")],
        "n2": lambda tree: [p.unlink() for p in tree.rglob("*pp_rank_1_*")],
    }

    choice = choose(cluster(tmp_path, 2, layout="deepspeed", hurt=hurt), EVERYTHING)

    assert choice.step is None
    assert choice.refused[0].reason == "ranks 1 are on no node"


def test_shards_of_a_distributed_checkpoint_may_lie_on_other_nodes(tmp_path: Path) -> None:
    hurt = {
        "n1": lambda tree: [p.unlink() for p in tree.rglob("__1_0.distcp")],
        "n2": lambda tree: [p.unlink() for p in tree.rglob("__0_0.distcp")],
    }

    choice = choose(cluster(tmp_path, 2, layout="titan", hurt=hurt), EVERYTHING)

    assert choice.step == 300


def test_metadata_on_node_0_alone_is_no_complete_step(tmp_path: Path) -> None:
    hurt = {"n2": lambda tree: (tree / "step-300/.metadata").unlink()}

    choice = choose(cluster(tmp_path, 2, layout="titan", hurt=hurt), EVERYTHING)

    assert choice.step == 200
    assert "no .metadata" in choice.refused[0].by_node["n2"]


def test_one_shared_directory_is_recognised(tmp_path: Path) -> None:
    trees.write("hf", tmp_path)
    same = {node: inspection_of(tmp_path) for node in ("n1", "n2", "n3")}

    choice = choose(same, EVERYTHING)

    assert choice.shared == (frozenset({"n1", "n2", "n3"}),)
    assert choice.step == 300


def test_local_disks_that_look_alike_are_not_taken_for_a_share(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 2)
    twins = {
        node: replace(i, places=(replace(i.places[0], source="/dev/nvme0n1", inode=12),))
        for node, i in inspections.items()
    }

    assert choose(twins, EVERYTHING).shared == ()


def test_a_stale_view_of_a_share_is_not_trusted(tmp_path: Path) -> None:
    fresh = cluster(tmp_path, 1)["n1"]
    without_step(300)(tmp_path / "n1")
    stale = inspection_of(tmp_path / "n1")

    choice = choose(on_share({"n1": fresh, "n2": fresh, "n3": stale}), EVERYTHING)

    assert choice.step == 200
    assert choice.refused[0].by_node == {"n3": "not visible here: a stale view"}
    assert choice.refused[0].rule == "C28"


def test_a_stale_size_on_a_share_is_found_by_comparing_views(tmp_path: Path) -> None:
    fresh = cluster(tmp_path, 1)["n1"]
    newest = fresh.checkpoints[-1]
    stale = replace(fresh, checkpoints=(*fresh.checkpoints[:-1], replace(newest, seen="older")))

    choice = choose(on_share({"n1": fresh, "n2": stale, "n3": fresh}), EVERYTHING)

    assert choice.step == 200
    assert set(choice.refused[0].by_node) == {"n2"}


def test_a_replica_that_differs_from_the_majority_is_torn(tmp_path: Path) -> None:
    def lose_a_page(tree: Path) -> None:
        path = tree / "checkpoint-300/model.safetensors"
        raw = bytearray(path.read_bytes())
        raw[80_000:88_192] = bytes(8192)
        path.write_bytes(raw)
        for old in (100, 200):  # nothing to compare it with on its own node
            (tree / f"checkpoint-{old}/model.safetensors").write_bytes(raw)

    choice = choose(cluster(tmp_path, 3, hurt={"n2": lose_a_page}), EVERYTHING)

    assert 300 in choice.torn["n2"]
    assert choice.refused[0].rule == "C27"


def test_parts_of_two_saves_are_not_mixed(tmp_path: Path) -> None:
    hurt = {"n3": lambda tree: _resave(tree / "step-300")}

    choice = choose(cluster(tmp_path, 3, layout="titan", hurt=hurt), EVERYTHING)

    assert choice.step == 200
    assert "another save" in choice.refused[0].by_node["n3"]


def _resave(folder: Path) -> None:
    path = folder / ".metadata"
    path.write_bytes(path.read_bytes().replace(b"id-300", b"id-3xx"))


def test_a_missing_component_is_refused_by_policy(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 2, layout="titan")

    choice = choose(inspections, Policy(require=("model", "rng")))

    assert choice.step is None
    assert choice.refused[0].reason == "no rng in it"


def test_a_save_after_the_first_error_gives_way_to_the_one_before(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 2)
    first_error = inspections["n1"].checkpoints[1].newest_s
    assert first_error is not None

    choice = choose(inspections, Policy(distrust_from_s=first_error + 0.0001))

    assert choice.step == 200
    assert choice.refused[0].rule == "distrust"
    assert choice.distrusted is False


def test_a_distrusted_save_is_used_when_nothing_else_is_sound(tmp_path: Path) -> None:
    choice = choose(cluster(tmp_path, 2), Policy(distrust_from_s=1.0))

    assert choice.step == 300
    assert choice.distrusted is True


def test_a_save_shortly_before_the_outage_is_suspect(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 2)
    written = inspections["n1"].checkpoints[-1].newest_s
    assert written is not None

    young = choose(inspections, Policy(outage_at_s=written + 60))
    old = choose(inspections, Policy(outage_at_s=written + 600))

    assert young.step == old.step == 300
    assert young.young_s == pytest.approx(60)
    assert old.young_s is None


def test_a_node_with_no_checkpoint_takes_no_part(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 3)
    (tmp_path / "empty").mkdir()

    choice = choose({**inspections, "n4": inspection_of(tmp_path / "empty")}, EVERYTHING)

    assert choice.step == 300
    assert choice.without == ("n4",)


def test_nothing_complete_anywhere_is_no_step(tmp_path: Path) -> None:
    def tear(tree: Path) -> None:
        for path in tree.rglob("optimizer.pt"):
            os.truncate(path, 0)

    choice = choose(cluster(tmp_path, 2, hurt={"n1": tear, "n2": tear}), EVERYTHING)

    assert choice.step is None
    assert choice.undecided is False


def test_an_unjudged_newer_step_is_said_to_be_undecided(tmp_path: Path) -> None:
    inspection = cluster(tmp_path, 1)["n1"]
    newest = inspection.checkpoints[-1]
    unread = replace(newest, level=Level.UNKNOWN, problems=())
    inspections = {"n1": replace(inspection, checkpoints=(*inspection.checkpoints[:-1], unread))}

    choice = choose(inspections, EVERYTHING)

    assert (choice.step, choice.undecided) == (200, True)


def test_the_file_with_the_step_in_its_name_decides_before_an_alias(tmp_path: Path) -> None:
    def tear(tree: Path) -> None:
        os.truncate(damage.victim(tree), 100)

    choice = choose(cluster(tmp_path, 1, layout="lightning", hurt={"n1": tear}), EVERYTHING)

    assert choice.step == 200
