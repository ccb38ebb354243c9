from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recovery.checkpoints.choose import Choice, Policy, choose
from recovery.checkpoints.inspection import Inspection
from recovery.checkpoints.verdicts import aside, hold, node_verdict, step_verdict
from recovery.model.verdict import Finding, Level
from tests.checkpoints import damage
from tests.checkpoints.clusters import cluster, inspection_of, on_share, without_step


def tear(tree: Path) -> None:
    os.truncate(damage.victim(tree), 100)


def judged(
    inspections: Mapping[str, Inspection], node: str, policy: Policy | None = None
) -> tuple[Finding, ...]:
    policy = policy or Policy()
    choice = choose(inspections, policy)
    return node_verdict(node, inspections[node], choice, policy, set_aside="").findings


def one(findings: tuple[Finding, ...], code: str) -> Finding:
    (found,) = [f for f in findings if f.code == f"checkpoint.{code}"]
    return found


def test_a_sound_node_passes_with_the_step(tmp_path: Path) -> None:
    (finding,) = judged(cluster(tmp_path, 2), "n1")

    assert (finding.level, finding.finding) == (Level.PASS, "step 300 is sound here")


def test_a_torn_step_is_moved_out_of_the_directory_by_the_shown_command(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 2, hurt={"n2": tear})

    finding = one(judged(inspections, "n2"), "c06")

    assert finding.level is Level.WARN
    assert "mv -n" in finding.remedy
    assert "checkpoint-300" in finding.remedy


def test_setting_aside_leaves_the_directory_that_the_trainer_searches() -> None:
    assert aside("/a b/ckpt/step-3", "") == (
        "mkdir -p '/a b/ckpt.aside' && mv -n '/a b/ckpt/step-3' '/a b/ckpt.aside'/"
    )


def test_the_sound_step_is_held_by_links_outside_the_directory_that_is_pruned() -> None:
    assert hold("/ckpt/step-3") == "mkdir -p /ckpt.hold && cp -al /ckpt/step-3 /ckpt.hold/"


def test_a_node_behind_is_told_so(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 2, hurt={"n1": without_step(300)})

    assert one(judged(inspections, "n1"), "behind").finding.startswith(
        "the newest sound step here is 200"
    )


def test_a_node_without_the_path_fails(tmp_path: Path) -> None:
    inspections = {**cluster(tmp_path, 2), "n9": inspection_of(tmp_path / "nowhere")}

    finding = one(judged(inspections, "n9"), "path-missing")

    assert finding.level is Level.FAIL
    assert "findmnt" in finding.remedy


def test_a_node_without_any_checkpoint_fails(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    inspections = {**cluster(tmp_path, 2), "n9": inspection_of(tmp_path / "empty")}

    assert one(judged(inspections, "n9"), "none-here").level is Level.FAIL


def test_a_full_file_system_fails_before_the_launch(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 1)
    place = replace(inspections["n1"].places[0], free_bytes=1000)
    inspections["n1"] = replace(inspections["n1"], places=(place,))

    assert one(judged(inspections, "n1"), "space").level is Level.FAIL


def test_a_read_only_file_system_fails(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 1)
    place = replace(inspections["n1"].places[0], read_only=True)
    inspections["n1"] = replace(inspections["n1"], places=(place,))

    assert one(judged(inspections, "n1"), "read-only").level is Level.FAIL


def test_clock_skew_only_warns(tmp_path: Path) -> None:
    policy = Policy(clock_offset_s={"n1": -3.6e8})

    findings = judged(cluster(tmp_path, 1), "n1", policy)

    assert one(findings, "clock").level is Level.WARN
    assert max(f.level for f in findings) is Level.WARN


def test_a_pointer_to_another_step_than_the_chosen_one_is_repaired_exactly(tmp_path: Path) -> None:
    hurt = {"n2": without_step(300)}
    inspections = cluster(tmp_path, 2, layout="megatron_legacy", hurt=hurt)

    finding = one(judged(inspections, "n1"), "c04")

    path = tmp_path / "n1/latest_checkpointed_iteration.txt"
    assert finding.remedy == f"printf %s 200 > {path}"


def test_a_pointer_on_a_share_is_told_by_one_node(tmp_path: Path) -> None:
    fresh = cluster(tmp_path, 1, layout="deepspeed")["n1"]
    pointer = replace(fresh.pointers[0], path="/ckpt/latest", text="", step=None, problem="empty")
    shared = on_share({n: replace(fresh, pointers=(pointer,)) for n in ("n1", "n2")})

    assert one(judged(shared, "n1"), "c04").remedy == "printf %s global_step300 > /ckpt/latest"
    assert not [f for f in judged(shared, "n2") if f.code == "checkpoint.c04"]


def test_a_shell_inspection_says_that_it_is_weak(tmp_path: Path) -> None:
    inspections = {"n1": replace(cluster(tmp_path, 1)["n1"], power="shell")}

    assert one(judged(inspections, "n1"), "weak").level is Level.WARN


def test_the_step_verdict_says_why_not_a_newer_one(tmp_path: Path) -> None:
    choice = choose(cluster(tmp_path, 3, hurt={"n2": tear}), Policy())

    worst = step_verdict(choice, Policy()).worst

    assert worst.level is Level.WARN
    assert worst.finding.startswith("step 300 is not used: torn on 1 of 3 nodes (n2): optimizer.pt")
    assert worst.finding.endswith("; step 200 is")


def test_the_step_verdict_of_a_sound_cluster_passes_with_its_facts(tmp_path: Path) -> None:
    choice = choose(cluster(tmp_path, 3), Policy())

    assert step_verdict(choice, Policy()).worst.finding == (
        "step 300 is complete on 3 nodes, loss 2.7, LR 0.00021, epoch 0.3"
    )


def test_no_common_step_fails_with_the_nearest(tmp_path: Path) -> None:
    def keep_only(step: int) -> object:
        return lambda tree: [without_step(s)(tree) for s in (100, 200, 300) if s != step]

    hurt = {"n1": keep_only(100), "n2": keep_only(200)}
    choice = choose(cluster(tmp_path, 2, hurt=hurt), Policy())  # type: ignore[arg-type]

    verdict = step_verdict(choice, Policy())

    assert verdict.level is Level.FAIL
    assert verdict.worst.finding == (
        "no step is complete on every node; nearest: step 200, missing on 1 of 2 nodes (n1)"
    )


def test_no_checkpoint_at_all_fails() -> None:
    assert step_verdict(Choice(step=None), Policy()).level is Level.FAIL


def test_a_young_save_is_to_be_read_in_full(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 1)
    written = inspections["n1"].checkpoints[-1].newest_s or 0
    policy = Policy(outage_at_s=written + 10)

    worst = step_verdict(choose(inspections, policy), policy).worst

    assert "10 s before the outage" in worst.finding
    assert "deep: true" in worst.remedy


def test_save_times_far_apart_warn_and_decide_nothing(tmp_path: Path) -> None:
    inspections = cluster(tmp_path, 2)
    policy = Policy(clock_offset_s={"n2": 5000.0})

    choice = choose(inspections, policy)

    assert choice.step == 300
    assert step_verdict(choice, policy).worst.code == "checkpoint.c26"
