"""Sound checkpoint trees that are odd in one way each: other names, parts left out by design,
files that other programs put beside them. None of them may raise an alarm.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.checkpoints import trees
from tests.checkpoints.torchfiles import dcp, safetensors, scalar, torch_zip
from tests.checkpoints.trees import STEPS, adam, put, rng, schedule, weights

START_NS = 1_700_000_000 * 10**9


def hf_one_rank(root: Path) -> None:
    trees.hf(root, STEPS, ranks=1)
    for step in STEPS:
        folder = root / f"checkpoint-{step}"
        (folder / "rng_state_0.pth").rename(folder / "rng_state.pth")


def hf_with_company(root: Path) -> None:
    """What a Trainer's output folder really looks like."""
    trees.hf(root, STEPS)
    for folder in (root, *(root / f"checkpoint-{s}" for s in STEPS)):
        put(folder / "config.json", '{"model_type": "toy"}')
        put(folder / "tokenizer.model", b"\x0a\x0e" * 40)
        put(folder / "README.md", "a model card")
        put(folder / ".gitattributes", "*.bin filter=lfs")
        put(folder / "training_args.bin", torch_zip({"lr": 3e-4}))
        put(folder / ".nfs00000000deadbeef", b"")
    put(root / "model.safetensors", safetensors(weights(300)))
    put(root / "runs/Dec01_host/events.out.tfevents.17.host.1.0", b"\0" * 300)
    put(root / "wandb/run-1/files/output.log", "")
    (root / "runs/empty").mkdir()


def hf_adapter(root: Path) -> None:
    trees.hf_replica(root, STEPS)
    for step in STEPS:
        folder = root / f"checkpoint-{step}"
        (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
        put(folder / "adapter_config.json", '{"peft_type": "LORA"}')


def hf_bin(root: Path) -> None:
    trees.hf_replica(root, STEPS)
    for step in STEPS:
        folder = root / f"checkpoint-{step}"
        (folder / "model.safetensors").unlink()
        put(folder / "pytorch_model.bin", torch_zip(weights(step)))


def hf_fsdp(root: Path) -> None:
    trees.hf_replica(root, STEPS)
    for step in STEPS:
        folder = root / f"checkpoint-{step}"
        for name in ("model.safetensors", "optimizer.pt"):
            (folder / name).unlink()
        parts = [{"model.a": weights(step)["a.weight"]}, {"model.b": weights(step)["b.weight"]}]
        for name, content in dcp(parts).items():
            put(folder / "pytorch_model_fsdp_0" / name, content)
        state = [{f"optimizer.state.{i}.step": scalar(float(step))} for i in range(2)]
        for name, content in dcp(state).items():
            put(folder / "optimizer_0" / name, content)


def hf_deepspeed(root: Path) -> None:
    """DeepSpeed inside HF Trainer: no scheduler.pt, the engine keeps it."""
    trees.hf_replica(root, STEPS)
    for step in STEPS:
        folder = root / f"checkpoint-{step}"
        (folder / "optimizer.pt").unlink()
        (folder / "scheduler.pt").unlink()
        trees.deepspeed(folder, (step,))
        put(folder / "zero_to_fp32.py", "print('merge')\n")


def deepspeed_zero3(root: Path) -> None:
    for step in STEPS:
        folder = root / f"global_step{step}"
        for rank in range(4):
            stem = f"zero_pp_rank_{rank}_mp_rank_00"
            model = {"module": weights(step), "global_steps": step, "dp_world_size": 4,
                     "mp_world_size": 1, "lr_scheduler": schedule(step)}  # fmt: skip
            put(folder / f"{stem}_model_states.pt", torch_zip(model))
            state = {"optimizer_state_dict": adam(step), "zero_stage": 3}
            put(folder / f"{stem}_optim_states.pt", torch_zip(state))
    put(root / "latest", f"global_step{STEPS[-1]}\n")
    put(root / "zero_to_fp32.py", "print('merge')\n")


def deepspeed_plain(root: Path) -> None:
    """Stage 0: the optimizer is inside the model's file."""
    for step in STEPS:
        model = {"module": weights(step), "optimizer": adam(step), "global_steps": step,
                 "dp_world_size": 8, "mp_world_size": 1, "lr_scheduler": None}  # fmt: skip
        put(root / f"global_step{step}/mp_rank_00_model_states.pt", torch_zip(model))
    put(root / "latest", f"  global_step{STEPS[-1]} \n")


def deepspeed_pipeline(root: Path) -> None:
    for step in STEPS:
        folder = root / f"global_step{step}"
        for rank in range(2):
            model = {"module": None, "global_steps": step, "dp_world_size": 1, "mp_world_size": 2}
            put(folder / f"mp_rank_{rank:02d}_model_states.pt", torch_zip(model))
            state = {"optimizer_state_dict": adam(step), "zero_stage": 1}
            name = f"bf16_zero_pp_rank_0_mp_rank_{rank:02d}_optim_states.pt"
            put(folder / name, torch_zip(state))
            for layer in range(2):
                name = f"layer_{layer:02d}-model_{rank:02d}-model_states.pt"
                put(folder / name, torch_zip(weights(step + layer)))
    put(root / "latest", f"global_step{STEPS[-1]}")


def deepspeed_tag(root: Path) -> None:
    """Tags of the user's own."""
    trees.deepspeed(root, STEPS)
    for step in STEPS:
        (root / f"global_step{step}").rename(root / f"step_{step}")
    put(root / "latest", f"step_{STEPS[-1]}")


def megatron_one_rank(root: Path) -> None:
    for step in STEPS:
        value = {"iteration": step, "model": weights(step), "optimizer": adam(step),
                 "rng_state": [rng(0)], "opt_param_scheduler": {"num_steps": step}}  # fmt: skip
        folder = root / f"iter_{step:07d}/mp_rank_00"
        put(folder / "model_optim_rng.pt", torch_zip(value))
    put(root / "latest_checkpointed_iteration.txt", f"{STEPS[-1]}\n")


def megatron_bridge(root: Path) -> None:
    """Run configuration and train state beside the shards, and again at the top."""
    trees.megatron_dist(root, STEPS)
    for step in STEPS:
        folder = root / f"iter_{step:07d}"
        (folder / "integrity.json").unlink()
        put(folder / "run_config.yaml", "train: {}\n")
        put(folder / "train_state.pt", torch_zip({"step": scalar(step, "Long")}))
        put(folder / "tokenizer/tokenizer.json", "{}")
    put(root / "latest_train_state.pt", torch_zip({"step": scalar(STEPS[-1], "Long")}))
    put(root / "progress.txt", "saved\n")


def megatron_torch_dcp(root: Path) -> None:
    """`--ckpt-format torch_dcp` writes no metadata.json."""
    for step in STEPS:
        for name, content in dcp(trees._dcp_shards(step)).items():
            put(root / f"iter_{step:07d}" / name, content)
    put(root / "latest_checkpointed_iteration.txt", str(STEPS[-1]))


def megatron_zarr(root: Path) -> None:
    """The old zarr back end: a folder a tensor."""
    for step in STEPS:
        folder = root / f"iter_{step:07d}"
        put(folder / "common.pt", torch_zip({**trees._megatron_common(step)}))
        put(folder / "metadata.json", '{"sharded_backend": "zarr"}')
        for part in ("model.a.weight", "optimizer.state.exp_avg.a.weight"):
            put(folder / part / ".zarray", '{"zarr_format": 2}')
            put(folder / part / "0.0", b"\x01" * 9000)
    put(root / "latest_checkpointed_iteration.txt", str(STEPS[-1]))


def nemo_1(root: Path) -> None:
    """NeMo 1: the distributed checkpoint lies in the named folder itself."""
    trees.nemo(root, STEPS)
    for path in list(root.iterdir()):
        for inside in list((path / "weights").iterdir()):
            inside.rename(path / inside.name)
        (path / "weights").rmdir()


def nemo_context(root: Path) -> None:
    trees.nemo(root, STEPS)
    for path in root.iterdir():
        put(path / "context/model.yaml", "x: 1\n")
        put(path / "context/io.json", "{}")


def dcp_own_metadata(root: Path) -> None:
    """Saved without collectives: each rank its own metadata."""
    for step in STEPS:
        for rank, shard in enumerate(trees._dcp_shards(step)):
            made = dcp([shard])
            body, meta = made["__0_0.distcp"], made[".metadata"]
            folder = root / f"step-{step}"
            put(folder / f"__{rank}_0.distcp", body)
            put(folder / f"__{rank}.metadata", meta.replace(b"__0_0.dis", b"__%d_0.dis" % rank))


def dcp_one_rank(root: Path) -> None:
    for step in STEPS:
        shards = trees._dcp_shards(step, 1)
        for name, content in dcp(shards).items():
            put(root / f"step-{step:09d}" / name, content)


def dcp_named(root: Path) -> None:
    for step in STEPS:
        for name, content in dcp(trees._dcp_shards(step)).items():
            put(root / f"ep0-ba{step}" / name, content)


def titan_with_export(root: Path) -> None:
    trees.titan(root, STEPS)
    put(root / "step-300/.metadata.lock", b"")
    (root / "step-300/profile_traces").mkdir()
    put(root / "step-0/model-00001-of-00001.safetensors", safetensors(weights(0)))
    index = {"weight_map": dict.fromkeys(weights(0), "model-00001-of-00001.safetensors")}
    put(root / "step-0/model.safetensors.index.json", json.dumps(index))


def orbax_old(root: Path) -> None:
    """Before there were commit markers the rename was the commit."""
    trees.orbax(root, STEPS)
    for step in STEPS:
        (root / str(step) / "commit_success.txt").unlink()
        (root / str(step) / "_CHECKPOINT_METADATA").unlink()


def orbax_named(root: Path) -> None:
    trees.orbax(root, STEPS)
    for step in STEPS:
        (root / str(step)).rename(root / f"checkpoint_{step}")


def orbax_saving(root: Path) -> None:
    """A save in progress has its temporary name."""
    trees.orbax(root, STEPS)
    put(root / "400.orbax-checkpoint-tmp-17/params/d/x", b"\1" * 50)


def hf_saving(root: Path) -> None:
    trees.hf(root, STEPS)
    put(root / "tmp-checkpoint-400/model.safetensors", safetensors(weights(400)))


def lightning_link(root: Path) -> None:
    trees.lightning(root, STEPS)
    (root / "last.ckpt").unlink()
    (root / "last.ckpt").symlink_to(root / "epoch=3-step=300.ckpt")


def lightning_versions(root: Path) -> None:
    trees.lightning(root / "lightning_logs/version_0/checkpoints", STEPS)
    put(root / "lightning_logs/version_0/hparams.yaml", "lr: 1\n")
    put(root / "lightning_logs/version_0/metrics.csv", "")


def latest_link(root: Path) -> None:
    trees.titan(root, STEPS)
    (root / "latest").symlink_to("step-300")


def linked_steps(root: Path) -> None:
    """Steps that a person moved to a larger disk and linked."""
    trees.hf(root, STEPS)
    far = root.with_name(root.name + ".far")
    far.mkdir()
    shutil.move(str(root / "checkpoint-300"), far / "checkpoint-300")
    (root / "checkpoint-300").symlink_to(far / "checkpoint-300")


def numbered_company(root: Path) -> None:
    """Files whose numbers are no steps."""
    trees.hf(root, STEPS)
    put(root / "tokens_2048.pt", torch_zip({"ids": weights(1)["a.weight"]}))
    put(root / "base/llama-7000.pth", torch_zip(weights(3)))
    put(root / "vae-840000.safetensors", safetensors(weights(4)))


def snapshots(root: Path) -> None:
    """The file server's own snapshots lie in hidden folders below."""
    trees.hf(root, STEPS)
    trees.hf(root / ".snapshot/hourly.0", (400,))
    put(root / ".ipynb_checkpoints/notes-checkpoint.ipynb", "{}")


def tune_last(root: Path) -> None:
    """torchtune keeps the recipe's state with the newest epoch only."""
    trees.torchtune(root, STEPS)
    for number in (0, 1):
        (root / f"epoch_{number}/recipe_state.pt").unlink()


def olmo(root: Path) -> None:
    for step in STEPS:
        folder = root / f"step{step}"
        for name, content in dcp(trees._dcp_shards(step)).items():
            put(folder / "model_and_optim" / name, content)
        put(folder / "train/rank0.pt", torch_zip({"global_step": step, "rng": rng(0)}))
        put(folder / "config.json", "{}")
        put(folder / ".metadata.json", '{"version": "v3"}')


def verl(root: Path) -> None:
    for step in STEPS:
        folder = root / f"global_step_{step}"
        for rank in range(2):
            for kind, value in (
                ("model", weights(step)),
                ("optim", adam(step)),
                ("extra_state", {"lr_scheduler": schedule(step), "rng": rng(0)}),
            ):
                name = f"{kind}_world_size_2_rank_{rank}.pt"
                put(folder / "actor" / name, torch_zip(value))
        put(folder / "data.pt", torch_zip({"_num_yielded": step}))
    put(root / "latest_checkpointed_iteration.txt", str(STEPS[-1]))


def mmengine(root: Path) -> None:
    for step in STEPS:
        value = {"state_dict": weights(step), "optimizer": adam(step), "meta": {"iter": step}}
        put(root / f"iter_{step}.pth", torch_zip(value))
    put(root / "last_checkpoint", str(root / "iter_300.pth"))


def fairseq(root: Path) -> None:
    for step in STEPS:
        value = {"model": weights(step), "last_optimizer_state": adam(step)}
        put(root / f"checkpoint_1_{step}.pt", torch_zip(value))
    shutil.copy(root / "checkpoint_1_300.pt", root / "checkpoint_last.pt")


def accelerate_default(root: Path) -> None:
    """A folder of the user's own name, one rank, several models."""
    for step in STEPS:
        folder = root / f"step_{step}"
        put(folder / "model.safetensors", safetensors(weights(step)))
        put(folder / "model_1.safetensors", safetensors(weights(step + 1)))
        put(folder / "optimizer.bin", torch_zip(adam(step)))
        put(folder / "scheduler.bin", torch_zip(schedule(step)))
        put(folder / "random_states_0.pkl", torch_zip({"step": step, "random_state": (1, 2)}))


SOUND: dict[str, Callable[[Path], None]] = {
    made.__name__: made
    for made in (
        hf_one_rank, hf_with_company, hf_adapter, hf_bin, hf_fsdp, hf_deepspeed, deepspeed_zero3,
        deepspeed_plain, deepspeed_pipeline, deepspeed_tag, megatron_one_rank, megatron_bridge,
        megatron_torch_dcp, megatron_zarr, nemo_1, nemo_context, dcp_own_metadata, dcp_one_rank,
        dcp_named, titan_with_export, orbax_old, orbax_named, orbax_saving, hf_saving,
        lightning_link, lightning_versions, latest_link, linked_steps, numbered_company, snapshots,
        tune_last, olmo, verl, mmengine, fairseq, accelerate_default,
    )
}  # fmt: skip


def write(name: str, root: Path) -> Path:
    """Writes one of them; file times rise from checkpoint to checkpoint."""
    root.mkdir(parents=True, exist_ok=True)
    SOUND[name](root)
    for path in (p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
        hour = int(max(re.findall(r"[1-4]00", str(path.relative_to(root))), default="500"))
        at = START_NS + hour * 36 * 10**9 + path.stat().st_mtime_ns % 10**10
        os.utime(path, ns=(at, at))
    return root
