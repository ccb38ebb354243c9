"""The first error of a crashed training."""

from __future__ import annotations

import pytest

from recovery.checks.train_first_error import FIRST_ERROR
from recovery.engine.judging import judge_one
from recovery.model.output import Printed


def ask(text: str, status: int | None = 1, **context: object):
    printed = Printed(text, exit_status=status, command="torchrun train.py")
    return judge_one(FIRST_ERROR, printed, context)


def kind(text: str) -> str:
    return ask(text).facts["first_error"]["kind"]


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("illegal_address", "RuntimeError: CUDA error: an illegal memory access was encountered"),
        ("cuda_oom", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `x`"),
        ("ecc_uncorrectable", "CUDA error: uncorrectable ECC error encountered"),
        ("cuda_error", "RuntimeError: CUDA error: unspecified launch failure"),
        ("gpu_lost", "RuntimeError: No CUDA GPUs are available: GPU is lost"),
        ("no_space", "OSError: [Errno 28] No space left on device: '/ckpt/x'"),
        ("stale_file", "OSError: [Errno 116] Stale file handle"),
        ("io_error", "OSError: [Errno 30] Read-only file system: '/data'"),
        ("shm_exhausted", "This might be caused by insufficient shared memory (shm)."),
        ("checkpoint_corrupt", "SafetensorError: Error while deserializing header: "
                               "MetadataIncompleteBuffer"),
        ("checkpoint_corrupt", "RuntimeError: unexpected EOF, expected 1234 more bytes."),
        ("checkpoint_mismatch", "RuntimeError: Error(s) in loading state_dict for GPT:"),
        ("dataloader_exited", "DataLoader worker (pid(s) 12, 13) exited unexpectedly"),
        ("nan_loss", "ValueError: found NaN in local grad norm in backward pass"),
        ("segfault", "Fatal Python error: Segmentation fault"),
        ("nccl_error", "RuntimeError: NCCL Error 2: unhandled system error"),
        ("node_failure", "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-29T06:00:07 "
                         "DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***"),
        ("oom_killed", "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0."),
    ],
)  # fmt: skip
def test_a_line_has_its_kind(wanted: str, line: str):
    assert kind(f"[rank3]: {line}\n") == wanted


@pytest.mark.parametrize("why", ["TIME LIMIT", "PREEMPTION"])
def test_a_scheduler_that_ends_a_job_is_no_crash(why: str):
    line = (
        f"slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-11-29T06:00:07 DUE TO {why} ***\n"
    )

    assert ask(line + "srun: error: n2: task 1: Terminated\n", 143).verdict.level.word == "pass"


def test_a_python_exception_is_named_by_its_class_and_message():
    text = (
        "[rank2]: Traceback (most recent call last):\n[rank2]:   File 'a.py', line 3\n"
        "[rank2]: KeyError: 'input_ids'\n"
        "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.\n"
    )

    found = ask(text).verdict

    assert "rank 2: KeyError: 'input_ids'" in found.worst.finding
    assert "1 later errors follow" in found.worst.finding


def test_words_of_an_exception_outside_a_traceback_are_no_error():
    assert (
        ask("iteration 1/ 10 | lm loss: 1.0 |\nUserWarning: TypeError: is fine\n", 0).facts[
            "first_error"
        ]
        is None
    )


def test_the_earliest_stamp_is_the_root_whatever_the_order_of_lines():
    late = "[rank1]:[E1129 17:50:33.0 x.cpp:1] [Rank 1] CUDA error: unspecified launch failure\n"
    early = "[rank7]:[E1129 17:40:33.0 x.cpp:1] [Rank 7] CUDA error: unspecified launch failure\n"

    assert ask(late + early).facts["first_error"]["rank"] == 7


def test_a_communicator_that_was_aborted_is_the_cause_of_nothing_else():
    aborted = "[rank0]: DistBackendError: NCCL communicator was aborted on rank 0.\n"
    oom = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n"

    assert kind(aborted + oom) == "cuda_oom"
    assert kind(aborted) == "nccl_aborted"


def timeout(rank: int, seq: int, op: str = "ALLREDUCE") -> str:
    return (
        f"[rank{rank}]:[E1129 17:50:33.0 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=1, "
        "Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
    )


def test_a_hang_names_the_ranks_that_said_nothing():
    judged = ask(timeout(1, 9) + timeout(2, 9), world_size=4)

    assert judged.facts["silent_ranks"] == [0, 3]
    assert "silent: 0, 3" in judged.verdict.worst.finding


def test_a_hang_names_the_rank_that_is_behind():
    found = ask(timeout(4, 98) + timeout(5, 99) + timeout(6, 99), world_size=8).verdict

    assert "rank 4 is behind" in found.worst.finding


def test_a_local_rank_and_the_shape_of_the_job_name_the_node():
    text = "[default4]:[rank12]: CUDA error: uncorrectable ECC error encountered\n"

    judged = ask(text, gpus_per_node=8, hosts=["node-017", "node-018"])

    assert judged.facts["first_error"]["host"] == "node-018"
    assert "GPU 4 of node-018" in judged.verdict.worst.finding


def test_an_error_before_a_resume_is_history():
    step = "iteration {}/ 50 | learning rate: 1.0E-04 | lm loss: 2.0E+00 |\n"
    text = (
        step.format(10) + step.format(20) + "[rank1]: CUDA error: unspecified launch failure\n"
        " successfully loaded checkpoint from /ckpt [ t 1/4 ] at iteration 10\n" + step.format(20)
    )

    judged = ask(text, 0)

    assert judged.verdict.level.word == "pass"
    assert (judged.facts["repeated"], judged.facts["lost_steps"]) == ([20], 10)


def test_a_resume_without_progress_does_not_excuse_the_error():
    text = (
        "[rank1]: RuntimeError: CUDA error: unspecified launch failure\n"
        " successfully loaded checkpoint from /ckpt [ t 1/4 ] at iteration 10\n"
    )

    assert ask(text, 0).verdict.level.word == "fail"


def test_a_loss_that_is_no_number_fails():
    assert ask("iteration 10/ 50 | lm loss: nan | grad norm: nan |\n", 0).verdict.worst.code == (
        "train.first-error.nan-loss"
    )


def test_a_learning_rate_that_jumped_after_the_resume_is_a_warning():
    text = (
        "iteration 20/ 50 | learning rate: 1.2E-04 | lm loss: 1.0 |\n"
        "iteration 30/ 50 | learning rate: 1.2E-04 | lm loss: 1.0 |\n"
        " successfully loaded checkpoint from /ckpt [ t 1/4 ] at iteration 20\n"
        "iteration 30/ 50 | learning rate: 6.0E-06 | lm loss: 1.0 |\n"
    )

    assert ask(text, 0).verdict.worst.code == "train.first-error.lr"


def test_a_failed_job_whose_log_names_no_error_is_unknown():
    assert ask("iteration 10/ 50 | lm loss: 1.0 |\n", 1).verdict.level.word == "unknown"


def test_a_log_without_an_end_never_passes():
    text = "iteration 10/ 50 | lm loss: 1.0 |\n"

    assert ask(text, None).verdict.level.word == "warn"
    assert ask(f"{text}Training completed\n", None).verdict.level.word == "pass"


def test_a_worker_that_the_agent_saw_die_is_named_by_its_signal():
    line = (
        "E1129 06:31:14.4 41207 torch/x.py:874] failed (exitcode: -9) local_rank: 2 (pid: 412) of\n"
    )

    found = ask(line).verdict

    assert "SIGKILL" in found.worst.finding


def test_an_ib_completion_error_names_node_and_hca():
    line = (
        "node-017:4321:4400 [3] NCCL WARN NET/IB : Got completion from peer 10.0.0.5<51234> with "
        "status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_3\n"
    )

    first = ask(line).facts["first_error"]

    assert (first["kind"], first["host"], first["hca"]) == ("ib_completion", "node-017", "mlx5_3")
