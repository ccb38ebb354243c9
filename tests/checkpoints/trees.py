"""Small checkpoint trees in the layout of each framework, written without torch.

Every function takes an empty folder and steps, and writes one checkpoint a step, oldest first.
Set ``RECOVER_TEST_SEED`` nowhere: contents depend on step and rank alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.checkpoints.torchfiles import (
    Made,
    Tensor,
    dcp,
    safetensors,
    scalar,
    tensor,
    torch_legacy,
    torch_zip,
)

STEPS = (100, 200, 300)
COUNT = 40_000  # numbers in the model: large enough that pages of it can be lost


def weights(step: int, count: int = COUNT) -> dict[str, Tensor]:
    half = count // 2
    return {
        "a.weight": tensor(half, step, shape=(half // 100, 100)),
        "b.weight": tensor(count - half, step + 1),
    }


def rate(step: int) -> float:
    return 3e-4 * (1 - step / 1000)


def adam(step: int, count: int = COUNT) -> dict[str, Any]:
    state = {
        "step": scalar(float(step)),
        "exp_avg": tensor(count, step + 2),
        "exp_avg_sq": tensor(count, step + 3),
    }
    return {"state": {0: state}, "param_groups": [{"lr": rate(step), "params": [0]}]}


def schedule(step: int) -> dict[str, Any]:
    return {"last_epoch": step, "_step_count": step + 1, "_last_lr": [rate(step)]}


def rng(rank: int) -> dict[str, Any]:
    return {
        "python": (3, tuple(range(40)), None),
        "cpu": Tensor("Byte", bytes([rank + 1]) * 5056, (5056,)),
    }


def put(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def plain(root: Path, steps: tuple[int, ...]) -> None:
    for step in steps:
        value = {
            "epoch": step // 100,
            "model_state_dict": weights(step),
            "optimizer_state_dict": adam(step),
            "scheduler_state_dict": schedule(step),
            "rng_state": rng(0)["cpu"],
            "loss": 2.5,
        }
        put(root / f"checkpoint_{step}.pth", torch_zip(value, top=f"checkpoint_{step}"))


def hf(root: Path, steps: tuple[int, ...], ranks: int = 3) -> None:
    history = []
    for step in steps:
        folder = root / f"checkpoint-{step}"
        shards = {f"model-0000{i}-of-00002.safetensors": k for i, k in enumerate("ab", 1)}
        parts = weights(step)
        for name, key in shards.items():
            put(folder / name, safetensors({f"{key}.weight": parts[f"{key}.weight"]}))
        index = {"weight_map": {f"{key}.weight": name for name, key in shards.items()}}
        put(folder / "model.safetensors.index.json", json.dumps(index))
        put(folder / "optimizer.pt", torch_zip(adam(step)))
        put(folder / "scheduler.pt", torch_zip(schedule(step)))
        for rank in range(ranks):
            put(folder / f"rng_state_{rank}.pth", torch_zip(rng(rank)))
        history += [
            {"step": s, "loss": 3 - s / 1000, "learning_rate": rate(s), "grad_norm": 1.0}
            for s in range(step - 90, step + 1, 10)
        ]
        state = {"epoch": step / 1000, "global_step": step, "log_history": history}
        put(folder / "trainer_state.json", json.dumps(state))


def hf_replica(root: Path, steps: tuple[int, ...], rank: int = 0) -> None:
    """A full replica on every node: one model file, the node's own random state."""
    for step in steps:
        folder = root / f"checkpoint-{step}"
        put(folder / "model.safetensors", safetensors(weights(step)))
        put(folder / "optimizer.pt", torch_zip(adam(step)))
        put(folder / "scheduler.pt", torch_zip(schedule(step)))
        put(folder / "rng_state.pth", torch_zip(rng(rank)))
        state = {"epoch": step / 1000, "global_step": step}
        log = [{"step": step, "loss": 3 - step / 1000, "learning_rate": rate(step)}]
        put(folder / "trainer_state.json", json.dumps({**state, "log_history": log}))


def _dcp_shards(step: int, ranks: int = 2) -> list[dict[str, Any]]:
    shards: list[dict[str, Any]] = []
    for rank in range(ranks):
        shards.append(
            {
                "model.a.weight": tensor(COUNT // ranks, step + rank),
                "optimizer.state.0.exp_avg": tensor(COUNT // ranks, step + 2 + rank),
                f"optimizer.state.{rank}.step": scalar(float(step)),
            }
        )
    shards[0]["lr_scheduler"] = schedule(step)
    shards[0]["train_state.step"] = scalar(step, "Long")
    return shards


def titan(root: Path, steps: tuple[int, ...]) -> None:
    for step in steps:
        for name, content in dcp(_dcp_shards(step), save_id=f"id-{step}").items():
            put(root / f"step-{step}" / name, content)


def _megatron_common(step: int) -> dict[str, Any]:
    shape = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1, "world_size": 2}
    return {
        "args": Made("argparse", "Namespace", (), shape),
        "iteration": step,
        "checkpoint_version": 3.0,
        "opt_param_scheduler": {"max_lr": 3e-4, "num_steps": step * 8},
    }


def megatron_legacy(root: Path, steps: tuple[int, ...]) -> None:
    for step in steps:
        for rank in range(2):
            folder = root / f"iter_{step:07d}" / f"mp_rank_{rank:02d}"
            value = {**_megatron_common(step), "model": weights(step), "rng_state": [rng(rank)]}
            put(folder / "model_optim_rng.pt", torch_zip(value))
            put(folder / "distrib_optim.pt", torch_zip({"optimizer": adam(step)}))
    put(root / "latest_checkpointed_iteration.txt", str(steps[-1]))


def megatron_dist(root: Path, steps: tuple[int, ...]) -> None:
    for step in steps:
        folder = root / f"iter_{step:07d}"
        files = dcp(_dcp_shards(step), save_id=f"id-{step}")
        files["common.pt"] = torch_zip(_megatron_common(step))
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        files["metadata.json"] = b'{"sharded_backend": "torch_dist"}'
        listed = {"algorithm": "sha256", "files": digests}
        files["integrity.json"] = json.dumps(listed).encode()
        for name, content in files.items():
            put(folder / name, content)
    put(root / "latest_checkpointed_iteration.txt", str(steps[-1]))


def _deepspeed(root: Path, steps: tuple[int, ...], save: Callable[[Any], bytes]) -> None:
    for step in steps:
        folder = root / f"global_step{step}"
        model = {
            "module": weights(step),
            "lr_scheduler": schedule(step),
            "global_steps": step,
            "dp_world_size": 2,
            "mp_world_size": 1,
        }
        put(folder / "mp_rank_00_model_states.pt", save(model))
        for rank in range(2):
            inner = {"base_optimizer_state": adam(step, COUNT // 2), "zero_stage": 1}
            name = f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
            put(folder / name, save({"optimizer_state_dict": inner}))
    put(root / "latest", f"global_step{steps[-1]}")


def deepspeed(root: Path, steps: tuple[int, ...]) -> None:
    _deepspeed(root, steps, torch_zip)


def deepspeed_legacy(root: Path, steps: tuple[int, ...]) -> None:
    _deepspeed(root, steps, torch_legacy)


def lightning(root: Path, steps: tuple[int, ...]) -> None:
    for step in steps:
        value = {
            "epoch": step // 100,
            "global_step": step,
            "state_dict": weights(step),
            "optimizer_states": [adam(step)],
            "lr_schedulers": [schedule(step)],
        }
        body = torch_zip(value)
        put(root / f"epoch={step // 100}-step={step}.ckpt", body)
        put(root / "last.ckpt", body)


def nemo(root: Path, steps: tuple[int, ...]) -> None:
    for step in steps:
        last = "-last" if step == steps[-1] else ""
        folder = root / f"toy--val_loss=2.00-step={step}-consumed_samples={step * 32}.0{last}"
        for name, content in dcp(_dcp_shards(step)).items():
            put(folder / "weights" / name, content)
        common = {"global_step": step, "epoch": 0, "lr_schedulers": [schedule(step)]}
        put(folder / "weights/common.pt", torch_zip(common))
        put(folder / "weights/metadata.json", '{"sharded_backend": "torch_dist"}')


def local(root: Path, steps: tuple[int, ...]) -> None:
    """NVRx: each rank keeps its own shard and its partner's."""
    for step in steps:
        for rank in range(4):
            for owner in (rank, rank ^ 1):
                value = {"iteration": step, "model": weights(step + owner), "optimizer": adam(step)}
                name = f"iter_{step:07d}_{owner}_local.pt"
                put(root / "session0" / str(rank) / name, torch_zip(value))


def accelerate(root: Path, steps: tuple[int, ...]) -> None:
    for number, step in enumerate(steps):
        folder = root / "checkpoints" / f"checkpoint_{number}"
        put(folder / "model.safetensors", safetensors(weights(step)))
        put(folder / "optimizer.bin", torch_zip(adam(step)))
        put(folder / "scheduler.bin", torch_zip(schedule(step)))
        for rank in range(2):
            value = {"step": step, "random_state": rng(rank)["python"], "torch": rng(rank)["cpu"]}
            put(folder / f"random_states_{rank}.pkl", torch_zip(value))


def torchtune(root: Path, steps: tuple[int, ...]) -> None:
    for number, step in enumerate(steps):
        folder = root / f"epoch_{number}"
        put(folder / "model-00001-of-00001.safetensors", safetensors(weights(step)))
        recipe = {"optimizer": adam(step), "epochs_run": number + 1, "steps_run": step}
        put(folder / "recipe_state.pt", torch_zip(recipe))


def fastai(root: Path, steps: tuple[int, ...]) -> None:
    for number, step in enumerate(steps):
        value = {"model": weights(step), "opt": adam(step)}
        put(root / "models" / f"model_{number}.pth", torch_zip(value))


def orbax(root: Path, steps: tuple[int, ...]) -> None:
    for step in steps:
        folder = root / str(step)
        manifest = b"\x0c\xdb\x3a\x2a" + (113).to_bytes(8, "little") + b"\x01" * 101
        put(folder / "params/manifest.ocdbt", manifest)
        put(folder / "params/_METADATA", '{"tree_metadata": {}}')
        put(folder / "params/d/abc", b"\x01" * 4096)
        stamps = {"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": 2}
        put(folder / "_CHECKPOINT_METADATA", json.dumps(stamps))
        put(folder / "commit_success.txt", "done")


LAYOUTS: dict[str, Callable[[Path, tuple[int, ...]], None]] = {
    "plain": plain,
    "hf": hf,
    "hf_replica": hf_replica,
    "titan": titan,
    "megatron_legacy": megatron_legacy,
    "megatron_dist": megatron_dist,
    "deepspeed": deepspeed,
    "deepspeed_legacy": deepspeed_legacy,
    "lightning": lightning,
    "nemo": nemo,
    "local": local,
    "accelerate": accelerate,
    "torchtune": torchtune,
    "fastai": fastai,
    "orbax": orbax,
}


def write(name: str, root: Path, steps: tuple[int, ...] = STEPS) -> Path:
    """Writes a layout; file times rise from checkpoint to checkpoint, an hour apart."""
    LAYOUTS[name](root, steps)
    date(root, steps)
    return root


def date(root: Path, steps: tuple[int, ...]) -> None:
    """Gives every file a time by the checkpoint that it was written with."""
    files = sorted((p for p in root.rglob("*") if p.is_file()), key=lambda p: p.stat().st_mtime_ns)
    first = files[0].stat().st_mtime_ns
    for number, path in enumerate(files):
        at = first - 10**12 + number * 10**6
        os.utime(path, ns=(at, at))
