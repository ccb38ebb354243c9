"""The lab's training job: one process a node, per-node checkpoints, a log line an iteration.

Checkpoints are written in place, in pieces and without fsync, as most frameworks do; a power loss
in the middle of a save tears them. Layout: that of the Hugging Face Trainer.
"""

import argparse
import atexit
import errno
import json
import os
import random
import re
import shutil
import sys
import time

import network
import ranks
import torch_files

BATCH, N_SAMPLES, SEED = 32, 4096, 20
PIECES = 4


def main():
    """Trains from the start or from a checkpoint, to the last iteration."""
    options = read_options()
    hold_gpus()
    log = Log(os.path.join(options.home, "log", "train.log"))
    job = Job(options, log)
    step = resume_step(options)
    if step:
        job.load(step)
        log.say(f"resuming from checkpoint-{step}")
    group = ranks.from_environment()
    log.say(f"rank {group.rank} of {group.size} is ready, {options.iterations} iterations")
    try:
        while job.step < options.iterations:
            job.iterate(group)
            if job.step % options.interval == 0:
                job.save()
            time.sleep(options.pause)
    except ConnectionError as error:
        log.say(f"rank {group.rank}: collective failed at step={job.step + 1}: {error}")
        return 1
    log.say("training is done")
    return 0


def read_options():
    """The command line; defaults make a demonstration of some seconds."""
    parser = argparse.ArgumentParser(prog="lab-train")
    parser.add_argument("--resume", default="", help="iteration, or auto: the highest number")
    parser.add_argument("--iterations", type=int, default=240)
    parser.add_argument("--interval", type=int, default=20, help="iterations between checkpoints")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds after each iteration")
    parser.add_argument("--piece-pause", type=float, default=0.004, help="seconds between writes")
    parser.add_argument("--keep", type=int, default=0, help="checkpoints to keep; 0: all")
    parser.add_argument("--home", default=os.environ.get("HOME", "."))
    return parser.parse_args()


def hold_gpus():
    """Has the node's nvidia-smi show this process on the GPUs."""
    folder = os.environ.get("RECOVER_LAB_DIR")
    if not folder:
        return
    mark = os.path.join(folder, "nodes", os.environ["RECOVER_LAB_NODE"], "etc", "gpu")
    mark = os.path.join(mark, str(os.getpid()))
    with open(mark, "w"):
        atexit.register(lambda: os.path.exists(mark) and os.unlink(mark))


def resume_step(options):
    """The iteration to go on from; 0 from the start."""
    if options.resume not in ("auto", ""):
        return int(options.resume)
    found = [0]
    folder = os.path.join(options.home, "ckpt")
    if options.resume == "auto" and os.path.isdir(folder):
        found += [int(m[1]) for m in (re.match(r"checkpoint-(\d+)$", n)
                                      for n in os.listdir(folder)) if m]  # fmt: skip
    return max(found)


class Log:
    """The node's training log, and standard output where that is another file."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._file = open(path, "a", buffering=1)
        ours, out = os.fstat(self._file.fileno()), os.fstat(1)
        self._echo = (ours.st_dev, ours.st_ino) != (out.st_dev, out.st_ino)

    def say(self, line):
        """Writes one line."""
        self._file.write(line + "\n")
        if self._echo:
            print(line, flush=True)


class Job:
    """Weights, optimizer, schedule, generator and position in the data."""

    def __init__(self, options, log):
        self._options, self._log = options, log
        self.step, self.history = 0, []
        self.weights = network.fresh_weights(SEED)
        self.moments = {n: ([0.0] * len(w), [0.0] * len(w)) for n, w in self.weights.items()}
        self.rng = random.Random(SEED)
        self._samples = network.corpus(N_SAMPLES, SEED)
        self._order, self._epoch = [], -1

    def iterate(self, group):
        """One iteration over the global batch, of which this rank takes its share."""
        started = time.monotonic()
        step = self.step + 1
        mask = network.dropout_mask(self.rng)
        batch = self._batch(step)
        share = batch[group.rank * BATCH // group.size : (group.rank + 1) * BATCH // group.size]
        loss, *total = group.sum(network.gradients(self.weights, share, mask))
        rate = network.learning_rate(step, self._options.iterations)
        gradient = [g / network.UNIT / BATCH for g in total]
        norm = network.update(self.weights, self.moments, step, gradient, rate)
        self.step = step
        row = {"step": step, "loss": loss / network.UNIT / BATCH, "learning_rate": rate,
               "grad_norm": norm, "epoch": step * BATCH / N_SAMPLES}  # fmt: skip
        self.history.append(row)
        elapsed = (time.monotonic() - started) * 1e3
        self._log.say(
            f"step={step} loss={row['loss']:.9f} lr={rate:.9e} grad_norm={norm:.6f} "
            f"consumed={step * BATCH} ms={elapsed:.1f} time={time.strftime('%Y-%m-%dT%H:%M:%S')}"
        )

    def _batch(self, step):
        first = (step - 1) * BATCH
        epoch, at = divmod(first, N_SAMPLES)
        if epoch != self._epoch:
            self._order, self._epoch = list(range(N_SAMPLES)), epoch
            random.Random(SEED * 1000 + epoch).shuffle(self._order)
        return [self._samples[i] for i in self._order[at : at + BATCH]]

    def _folder(self, step):
        return os.path.join(self._options.home, "ckpt", f"checkpoint-{step}")

    def save(self):
        """Writes every file of a checkpoint, in place."""
        pace = os.environ.get("LAB_SAVE_PACE", "")
        if os.environ.get("LAB_SAVE_PACE_AT") != str(self.step):
            pace = ""
        if pace == "late":
            time.sleep(600)
        folder = self._folder(self.step)
        os.makedirs(folder, exist_ok=True)
        for name, content in self._files().items():
            stall = pace == "slow" and name == "optimizer.pt"
            write_in_pieces(os.path.join(folder, name), content, self._options.piece_pause, stall)
        self._log.say(f"saved checkpoint-{self.step}")
        self._prune()

    def _files(self):
        names = list(self.weights)
        shape = network.SHAPES
        rate = network.learning_rate(self.step, self._options.iterations)
        tensor = torch_files.Tensor
        state = {
            i: {
                "step": tensor("f", [float(self.step)], ()),
                "exp_avg": tensor("d", self.moments[n][0], shape[n]),
                "exp_avg_sq": tensor("d", self.moments[n][1], shape[n]),
            }
            for i, n in enumerate(names)
        }
        settings = {"lr": rate, "betas": network.BETAS, "eps": network.EPSILON,
                    "weight_decay": network.DECAY, "params": list(range(len(names)))}  # fmt: skip
        schedule = {"base_lrs": [0.02], "last_epoch": self.step, "_step_count": self.step + 1,
                    "_last_lr": [rate]}  # fmt: skip
        dump = torch_files.dump
        return {
            "model.safetensors": torch_files.dump_safetensors(self.weights, shape),
            "optimizer.pt": dump({"state": state, "param_groups": [settings]}, "optimizer"),
            "scheduler.pt": dump(schedule, "scheduler"),
            "rng_state.pth": dump({"python": self.rng.getstate()}, "rng_state"),
            "trainer_state.json": json.dumps(self._trainer_state(), indent=2).encode(),
        }

    def _trainer_state(self):
        return {
            "best_metric": None, "epoch": self.step * BATCH / N_SAMPLES, "global_step": self.step,
            "is_local_process_zero": True, "log_history": self.history, "logging_steps": 1,
            "max_steps": self._options.iterations, "save_steps": self._options.interval,
            "train_batch_size": BATCH,
        }  # fmt: skip

    def _prune(self):
        folder = os.path.join(self._options.home, "ckpt")
        steps = sorted(int(n.rpartition("-")[2]) for n in os.listdir(folder)
                       if re.match(r"checkpoint-\d+$", n))  # fmt: skip
        for step in steps[: -self._options.keep] if self._options.keep else []:
            shutil.rmtree(self._folder(step))

    def load(self, step):
        """Takes everything from a checkpoint; a torn one is an error, not a fresh start."""
        folder = self._folder(step)
        self.weights = torch_files.load_safetensors(os.path.join(folder, "model.safetensors"))
        optimizer = torch_files.load(os.path.join(folder, "optimizer.pt"))["state"]
        for i, name in enumerate(self.weights):
            saved = optimizer[i]
            self.moments[name] = (saved["exp_avg"].values, saved["exp_avg_sq"].values)
        schedule = torch_files.load(os.path.join(folder, "scheduler.pt"))
        self.rng.setstate(torch_files.load(os.path.join(folder, "rng_state.pth"))["python"])
        with open(os.path.join(folder, "trainer_state.json")) as file:
            state = json.load(file)
        self.step, self.history = state["global_step"], state["log_history"]
        if {self.step, schedule["last_epoch"], int(optimizer[0]["step"].values[0])} != {step}:
            raise ValueError(f"{folder}: its files are of different iterations")


def write_in_pieces(path, content, pause, stall):
    """Writes a file in place, piece by piece; ``stall`` stops in the middle for long."""
    lab = os.environ.get("RECOVER_LAB_DIR")
    if lab and os.path.exists(
        os.path.join(lab, "nodes", os.environ["RECOVER_LAB_NODE"], "etc", "disk_full")
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    length = max(1, -(-len(content) // PIECES))
    with open(path, "wb", buffering=0) as file:
        for at in range(0, len(content), length):
            file.write(content[at : at + length])
            if stall and at:
                time.sleep(600)
            time.sleep(pause)


if __name__ == "__main__":
    sys.exit(main())
