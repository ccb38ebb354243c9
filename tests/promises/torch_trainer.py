"""A small training with real torch: gloo, Adam, schedule, dropout, shuffled data, checkpoints.

    python torch_trainer.py FOLDER ITERATIONS EVERY [RESUME_STEP]

One rank a node; each node saves all it needs to resume on its own disk, in the Trainer's layout, in
place and without fsync, as most frameworks do. `STOP_IN_SAVE=N` stops for good in the middle of
save N, so that a power loss finds it there.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import Any

torch: Any = importlib.import_module("torch")
dist: Any = importlib.import_module("torch.distributed")
nn: Any = torch.nn

LETTERS, CONTEXT, WIDTH = 12, 3, 24
BATCH, SAMPLES, PEAK, WARM_UP, TOTAL = 64, 4096, 0.02, 10, 400


def corpus() -> Any:
    """Rows of letters in which the next letter follows a rule, as a rule."""
    rng = torch.Generator().manual_seed(20)
    noise = torch.rand(SAMPLES + CONTEXT, generator=rng)
    other = torch.randint(LETTERS, (SAMPLES + CONTEXT,), generator=rng)
    line = [0, 1, 2]
    for n in range(SAMPLES):
        by_rule = (3 * line[-1] + 5 * line[-2] + line[-3] + 1) % LETTERS
        line.append(by_rule if noise[n] < 0.7 else int(other[n]))
    return torch.tensor([line[n : n + CONTEXT + 1] for n in range(SAMPLES)])


def rate(step: int) -> float:
    """Linear warm-up, then a cosine, as a share of the peak."""
    part = max(0, step - WARM_UP) / (TOTAL - WARM_UP)
    return min(1.0, (step + 1) / WARM_UP) * (0.1 + 0.45 * (1 + math.cos(math.pi * part)))


class Job:
    """One rank of the training."""

    def __init__(self, folder: Path, *, rank: int = 0, size: int = 1) -> None:
        torch.manual_seed(7)
        torch.set_num_threads(1)
        self.folder, self.rank, self.size, self.step = folder, rank, size, 0
        self.model = nn.Sequential(
            nn.Embedding(LETTERS, WIDTH), nn.Flatten(), nn.Linear(CONTEXT * WIDTH, 2 * WIDTH),
            nn.Tanh(), nn.Dropout(0.1), nn.Linear(2 * WIDTH, LETTERS),
        )  # fmt: skip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=PEAK)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        self.data, self.order_seed = corpus(), 1
        torch.manual_seed(100 + rank)
        self.history: list[dict[str, float]] = []

    def batch(self) -> Any:
        """This rank's samples of this iteration: each epoch has an order of its own."""
        a_step = BATCH * self.size
        epoch, at = divmod(self.step, SAMPLES // a_step)
        rng = torch.Generator().manual_seed(1000 * self.order_seed + epoch)
        order = torch.randperm(SAMPLES, generator=rng)[at * a_step :][:a_step]
        return self.data[order[self.rank :: self.size]]

    def iterate(self) -> str:
        """Trains one iteration; returns its log line."""
        rows = self.batch()
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(rows[:, :CONTEXT]), rows[:, CONTEXT])
        loss.backward()
        mean = loss.detach().clone()
        if self.size > 1:
            for tensor in (mean, *(p.grad for p in self.model.parameters())):
                dist.all_reduce(tensor)
                tensor /= self.size
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        used = self.schedule.get_last_lr()[0]
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        self.history.append({"step": self.step, "loss": float(mean), "learning_rate": used})
        return f"step={self.step} loss={mean:.7f} lr={used:.6e} grad_norm={norm:.6f}"

    def save(self, *, stop: bool = False) -> None:
        """Saves; ``stop`` writes half of the optimizer's file and never goes on."""
        sync_older(self.folder)
        place = self.folder / f"checkpoint-{self.step}"
        place.mkdir(parents=True, exist_ok=True)
        torch.save(self.model.state_dict(), place / "pytorch_model.bin")
        torch.save(self.optimizer.state_dict(), place / "optimizer.pt")
        if stop:
            half = (place / "optimizer.pt").stat().st_size // 2
            os.truncate(place / "optimizer.pt", half)
            say(f"saving {place.name}: half of it is written")
            signal.pause()
        torch.save(self.schedule.state_dict(), place / "scheduler.pt")
        torch.save({"cpu": torch.get_rng_state()}, place / f"rng_state_{self.rank}.pth")
        state = {"global_step": self.step, "order": self.order_seed, "log_history": self.history}
        (place / "trainer_state.json").write_text(json.dumps(state))

    def load(self, step: int, *, leave_out: str = "") -> None:
        """Goes on from a checkpoint, all of it or all but one thing."""
        place = self.folder / f"checkpoint-{step}"
        files = {
            "model": ("pytorch_model.bin", self.model.load_state_dict),
            "optimizer": ("optimizer.pt", self.optimizer.load_state_dict),
            "scheduler": ("scheduler.pt", self.schedule.load_state_dict),
            "rng": (f"rng_state_{self.rank}.pth", lambda kept: torch.set_rng_state(kept["cpu"])),
        }
        for name, (file, take) in files.items():
            if name != leave_out:
                take(torch.load(place / file, weights_only=True))
        state = json.loads((place / "trainer_state.json").read_text())
        self.step, self.history = state["global_step"], state["log_history"]
        self.order_seed = 2 if leave_out == "data order" else state["order"]
        if leave_out == "scheduler":  # what it set the rate to is in the optimizer's state too
            for group in self.optimizer.param_groups:
                group["lr"] = PEAK * rate(0)

    def go_on_as(self, step: int) -> None:
        """Takes what is loaded for that of a later iteration."""
        while self.step < step:
            self.step += 1
            self.schedule.last_epoch += 1


def say(line: str) -> None:
    """A whole line into the job's log, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def sync_older(folder: Path) -> None:
    """What the kernel does by itself half a minute after a save."""
    folder.mkdir(parents=True, exist_ok=True)
    disk = os.open(folder, os.O_RDONLY)
    ctypes.CDLL(None).syncfs(disk)
    os.close(disk)


def main() -> None:
    """Trains as the environment of the launcher says."""
    folder, iterations, every = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    job = Job(folder, rank=rank, size=size)
    if len(sys.argv) > 4:
        job.load(int(sys.argv[4]), leave_out=os.environ.get("LEAVE_OUT", ""))
        say(f"rank {rank}: resumed from iteration {job.step}")
    while job.step < iterations:
        line = job.iterate()
        if rank == 0:
            say(line)
        if job.step % every == 0:
            job.save(stop=job.step == int(os.environ.get("STOP_IN_SAVE", "0")))
    say("training is done")


if __name__ == "__main__":
    main()
