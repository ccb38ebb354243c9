"""Resume arguments, and launch lines that would start anew."""

import pytest

from recovery.checkpoints.relaunch import pitfalls, resume_argument

WHOLE = ("model", "optimizer", "scheduler")


@pytest.mark.parametrize(
    ("framework", "path", "argument"),
    [
        (
            "megatron-dist",
            "/c/iter_0000120/",
            "--load /c --ckpt-step 120 --exit-on-missing-checkpoint",
        ),
        ("hf-trainer", "/c d/checkpoint-120", "--resume_from_checkpoint '/c d/checkpoint-120'"),
        ("torchtitan", "/c/step-120", "--checkpoint.load_step 120"),
        ("torch", "/c/120.pt", ""),
        ("lightning", "", ""),
    ],
)
def test_the_resume_argument_is_the_frameworks_own(framework, path, argument):
    assert resume_argument(framework, path, 120) == argument


def words(line, framework, components=WHOLE):
    return [f.finding for f in pitfalls(line, framework, components)]


def test_megatron_without_the_exit_flag_starts_from_random_weights():
    assert words("python pretrain_gpt.py --load /c", "") == [
        "Megatron starts from random weights where it finds no checkpoint"
    ]
    assert words("pretrain_gpt.py --load /c --exit-on-missing-checkpoint", "megatron-dist") == []


def test_what_a_wrapper_does_cannot_be_seen_in_the_line():
    assert words("./train.sh 120", "megatron-legacy") == []
    assert words("pretrain_gpt.py $RESUME_ARGUMENT", "megatron-legacy") == []


def test_hf_trainer_must_be_told_to_resume():
    assert words("run_clm.py --lr 1", "hf-trainer") == [
        "HF Trainer starts anew unless it is told to resume"
    ]
    assert words("run_clm.py --resume_from_checkpoint x", "hf-trainer") == []
    assert words("run_clm.py $RESUME_PATH", "hf-trainer") == []


def test_hf_trainer_skips_the_optimizer_when_the_scheduler_is_absent():
    assert words("./train.sh", "hf-trainer", ("model", "optimizer")) == [
        "HF Trainer loads neither optimizer nor scheduler, without a word: "
        "no scheduler in this checkpoint"
    ]
