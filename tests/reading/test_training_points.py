"""Reading training logs: each framework's lines (ours, after its code) and their traps."""

from __future__ import annotations

import json
import math

import pytest

from recovery.errors import InputError, ParseError
from recovery.reading.training_point import Point
from recovery.reading.training_points import BY_EPOCH, read_points

MEGATRON = (
    " [2026-11-29 01:11:12.118204] iteration    {n}/   50000 | consumed samples:     {c} |"
    " elapsed time per iteration (ms): 4165.0 | learning rate: 1.199750E-04 |"
    " global batch size:  1024 |{loss} loss scale: 1.0 | grad norm: 0.210 |"
    " number of skipped iterations:   0 | number of nan iterations:   {nan} |\n"
)


def only(text: str, **how: str) -> Point:
    """The one point of a text of one line."""
    points = read_points(text if text.endswith("\n") else text + "\n", **how).all
    assert len(points) == 1
    return points[0]


def test_a_megatron_line_gives_all_its_fields() -> None:
    text = MEGATRON.format(n=12010, c=12298240, loss=" lm loss: 2.313800E+00 |", nan=0)

    assert only(text) == Point(
        iteration=12010,
        loss=2.3138,
        lr=1.19975e-4,
        grad_norm=0.21,
        consumed_samples=12298240,
        skipped=0,
        nan_iterations=0,
        loss_scale=1.0,
        global_batch=1024,
        ms_per_iteration=4165.0,
    )


def test_a_megatron_line_without_a_loss_is_an_iteration_without_a_loss() -> None:
    point = only(MEGATRON.format(n=12010, c=1, loss="", nan=3))

    assert (point.loss, point.nan_iterations) == (None, 3)


def test_a_nemo_line_counts_by_its_global_step() -> None:
    log = read_points(
        "Training epoch 0, iteration 1199/9999 | lr: 0.0002988 | global_step: 1199 |"
        " reduced_train_loss: 2.346 | consumed_samples: 307200\n"
    )

    assert log.format == "nemo"
    assert log.all[0].iteration == 1199
    assert (log.all[0].loss, log.all[0].consumed_samples) == (2.346, 307200)


def test_deepspeed_lines_join_the_loss_of_their_caller_and_count_skips_anew() -> None:
    log = read_points(
        "step=10, skipped=3, lr=[1.4e-06, 1.4e-06], mom=[(0.9, 0.95)]\n"
        "step: 10 loss: 2.5\n"
        "step=20, skipped=5, lr=[3.4e-06, 3.4e-06], mom=[(0.9, 0.95)]\n"
        "step: 20 loss: 2.4\n"
    )

    assert [(p.loss, p.lr, p.skipped) for p in log.all] == [(2.5, 1.4e-6, None), (2.4, 3.4e-6, 2)]


@pytest.mark.parametrize(
    ("text", "loss", "lr", "norm"),
    [
        ("\x1b[31mstep: 1200  \x1b[32mloss:  2.34  \x1b[0mgrad_norm:  0.81", 2.34, None, 0.81),
        ("Step 1200 | loss:2.34 lr:0.00029 tokens_per_second_per_gpu:8123", 2.34, 2.9e-4, None),
        ("step=1200 loss=2.34 lr=2.9e-04 grad_norm=0.81", 2.34, 2.9e-4, 0.81),
        ("global_step: 1200 train_loss: 2.34 learning_rate: 1e-3 gnorm: 2", 2.34, 1e-3, 2.0),
        ('{"step": 1200, "loss": 2.34, "lr": 1e-3}', 2.34, 1e-3, None),
        ("iter 1200: loss 2.3456, time 123.45ms, mfu 1.2%", 2.3456, None, None),
        ("[rank0]: step=1200 val_loss=9.0 loss=2.34", 2.34, None, None),
        ("Epoch 1:  5%|5  | 120/2400 [00:01<00:02]\rstep=1200 loss=2.34", 2.34, None, None),
        ("step=1,200 loss=2.34 lr=2.9e-04", 2.34, 2.9e-4, None),
        ("step=1200,loss=2.34,lr=2.9e-04", 2.34, 2.9e-4, None),
        ("step=1200 loss=tensor(2.34, device='cuda:0') lr=np.float64(1e-3)", 2.34, 1e-3, None),
        ("Step: 1200 | Train Loss: 2.34 | Learning Rate: 1e-3 | Grad Norm: 2", 2.34, 1e-3, 2.0),
        ("train_inner | epoch 001: 3 / 9 loss=2.34, num_updates=1200, gnorm=2", 2.34, None, 2.0),
        ("1|1200|Loss: 2.34:   1%|          | 1200/9000 [00:10<1:00, 1.2it/s]", 2.34, None, None),
        ("Epoch 2: 2%|2 | 200/500 [00:12<01:30, 5.1it/s, loss=2.34, lr=1e-3]", 2.34, 1e-3, None),
        ("Epoch 0: |  | 9/? [00:12<?, reduced_train_loss=2.34, global_step=1200.0]", 2.34, None,
         None),
        ("[Rank 0] step=1200, skipped=0, lr=[np.float64(1e-3)], mom=[]\nsteps: 1200 loss: 2.34",
         2.34, 1e-3, None),
    ],
)  # fmt: skip
def test_lines_of_many_kinds_say_the_same(
    text: str, loss: float, lr: float | None, norm: float | None
) -> None:
    assert only(text) == Point(iteration=1200, loss=loss, lr=lr, grad_norm=norm)


@pytest.mark.parametrize(
    "word", ["nan", "NaN", "NAN", "inf", "-inf", "INF", "-nan(ind)", "1.#QNAN", "tensor(nan)"]
)
def test_a_loss_that_is_no_number_is_read_as_such(word: str) -> None:
    loss = only(f"step=3 loss={word} lr=1e-3").loss

    assert loss is not None
    assert not math.isfinite(loss)


@pytest.mark.parametrize(
    "line",
    [
        "validate step: 1200  loss:  2.1",
        "step=1200 eval_loss=2.1",
        "step 1200: val loss 2.1",
        "{'eval_loss': 2.1, 'epoch': 0.5}",
        "{'train_runtime': 12.0, 'train_loss': 2.1, 'epoch': 1.0}",
        "step=1200",
        "loss=2.5",
        "",
    ],
)
def test_lines_about_something_else_are_no_iteration(line: str) -> None:
    with pytest.raises(ParseError, match="no line about a training iteration"):
        read_points(line + "\n")


def test_a_last_line_without_its_end_is_left_out() -> None:
    assert [p.iteration for p in read_points("step=1 loss=2.5\nstep=2 loss=2.").all] == [1]


def test_zero_bytes_of_a_torn_file_do_not_hide_the_lines() -> None:
    assert only("\x00\x00\x00step=1 loss=2.5\n").loss == 2.5


def test_an_iteration_that_goes_back_is_a_new_start() -> None:
    text = "".join(f"step={n} loss={n}.5\n" for n in (1, 2, 3, 4, 5, 6, 3, 4))

    log = read_points(text)

    assert [[p.iteration for p in start] for start in log.starts] == [[1, 2, 3, 4, 5, 6], [3, 4]]


def test_a_resume_that_goes_back_by_one_is_known_by_what_the_job_says() -> None:
    log = read_points(
        "step=1 loss=1.5\nstep=2 loss=1.4\nresuming from checkpoint-1\nstep=2 loss=1.3\n"
    )

    assert [len(start) for start in log.starts] == [2, 1]
    assert log.all[-1].loss == 1.3


def test_ranks_that_write_into_one_file_are_read_as_one() -> None:
    text = "".join(
        f"[rank{rank}]: step={n} loss={n + rank / 10}\n" for n in range(1, 6) for rank in (0, 1, 2)
    )

    log = read_points(text)

    assert [p.loss for p in log.all] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert log.notes


def test_equal_lines_of_ranks_without_a_name_count_once() -> None:
    log = read_points("step=1 loss=1.5\nstep=1 loss=1.5\nstep=2 loss=1.4\nstep=1 loss=1.5\n")

    assert [[p.iteration for p in start] for start in log.starts] == [[1, 2]]


def test_the_trainers_dictionaries_are_numbered_by_saves_and_resumes() -> None:
    log = read_points(
        "{'loss': '2.5', 'grad_norm': '0.81', 'learning_rate': '2e-04', 'epoch': '0.1'}\n"
        "Saving model checkpoint to /c/checkpoint-10\n"
        "{'loss': 2.4, 'learning_rate': 1.9e-04, 'epoch': 0.2}\n"
        "Saving model checkpoint to /c/checkpoint-20\n"
        "{'loss': 2.3, 'learning_rate': 1.8e-04, 'epoch': 0.3}\n"
        "  Continuing training from global step 20\n"
        "{'loss': 2.3, 'learning_rate': 1.8e-04, 'epoch': 0.3}\n"
    )

    assert [[p.iteration for p in start] for start in log.starts] == [[10, 20, 30], [30]]
    assert log.all[0].grad_norm == 0.81


STEPS = (10, 20, 30)


def _dictionary(step: int) -> str:
    return f"{{'loss': {step}.5, 'learning_rate': 2e-04, 'epoch': {step / 300}}}"


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"\r  1%|1 | {n}/90 [00:01<00:09]\r     \r{_dictionary(n)}\n" for n in STEPS),
        "".join(f"{_dictionary(n)}\n\r  1%|1 | {n}/90 [00:01<00:09]\n" for n in STEPS),
        "".join(
            f"\r  1%|1 | {n - 1}/90 [00:01]\r  1%|1 | {n}/90 [00:01]\n{_dictionary(n)}\n"
            for n in STEPS
        ),
    ],
)
def test_the_trainers_dictionaries_are_numbered_by_the_bars_around_them(text: str) -> None:
    log = read_points(text)

    assert [(p.iteration, p.loss) for p in log.all] == [(10, 10.5), (20, 20.5), (30, 30.5)]


def test_dictionaries_alone_are_numbered_by_their_epoch() -> None:
    log = read_points("".join(f"{_dictionary(n)}\n" for n in STEPS))

    assert log.format == BY_EPOCH
    assert [p.iteration for p in log.all] == [33333, 66667, 100000]
    assert "numbered by epoch" in log.notes[0]


def test_dictionaries_that_a_rounded_epoch_does_not_tell_apart_are_refused() -> None:
    with pytest.raises(ParseError, match="name no iteration"):
        read_points("".join(f"{{'loss': {n}.5, 'epoch': 0.01}}\n" for n in STEPS))


def test_a_bar_that_is_drawn_twice_counts_with_what_it_says_last() -> None:
    bar = "\rEpoch 0: 1%|1 | {}/90 [00:01<00:09, 1.2it/s, loss={}]"

    log = read_points("".join(bar.format(n, n - 1) + bar.format(n, n) for n in (1, 2, 3)) + "\n")

    assert [(p.iteration, p.loss) for p in log.all] == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_dictionaries_without_any_number_are_refused_with_a_way_out() -> None:
    with pytest.raises(ParseError, match="name no iteration") as caught:
        read_points("{'loss': 2.5, 'epoch': 0.1}\n")

    assert "trainer_state.json" in caught.value.remedy


def test_the_trainers_state_has_all_iterations() -> None:
    history = [
        {"step": 10, "loss": 2.5, "learning_rate": 2e-4, "grad_norm": 0.8, "epoch": 0.1},
        {"step": 10, "eval_loss": 2.6},
        {"step": 20, "loss": 2.4, "learning_rate": 1.9e-4, "grad_norm": None},
    ]

    log = read_points(json.dumps({"global_step": 20, "log_history": history}))

    assert [(p.iteration, p.loss, p.grad_norm) for p in log.all] == [
        (10, 2.5, 0.8),
        (20, 2.4, None),
    ]
    assert log.interval == 10


def test_a_state_that_was_cut_short_is_refused() -> None:
    with pytest.raises(ParseError, match=r"trainer_state\.json cannot be read"):
        read_points('{"log_history": [{"step": 10, "loss": 2.5')


def test_rows_of_one_step_in_lightnings_table_become_one() -> None:
    log = read_points(
        "epoch,lr-AdamW,step,train_loss\n,0.0002,0,\n0,,0,2.5\n,0.0001,1,\n0,,1,2.4\n"
    )

    assert [(p.iteration, p.loss, p.lr) for p in log.all] == [(0, 2.5, 2e-4), (1, 2.4, 1e-4)]


def test_a_users_expression_names_the_fields() -> None:
    regex = r"it\[(?P<iteration>\d+)\] L (?P<loss>\S+)( R (?P<lr>\S+))?"

    assert only("it[7] L 2.5", regex=regex) == Point(iteration=7, loss=2.5)


@pytest.mark.parametrize("regex", ["(", "loss (?P<loss>.*)", r"(?P<step>\d+)"])
def test_an_expression_that_cannot_serve_is_refused(regex: str) -> None:
    with pytest.raises(InputError):
        read_points("step=1 loss=2\n", regex=regex)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="no log format 'csv'"):
        read_points("step=1 loss=2\n", fmt="csv")
