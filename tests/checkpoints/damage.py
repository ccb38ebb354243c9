"""Ways to hurt the newest checkpoint of a tree, as power cuts and bad disks do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_STATE = re.compile(
    r"(optimizer\.(pt|bin)|optim_states\.pt|distrib_optim\.pt|\.pth|\.ckpt|_local\.pt|"
    r"recipe_state\.pt|_0\.distcp)$"
)
_STEP = re.compile(r"(?:checkpoint[-_]|global_step|iter_0*|step[-=]|epoch_|model_)(\d+)")


@dataclass(frozen=True)
class Case:
    """A kind of damage; ``power_loss`` kinds must be seen at the quick level."""

    name: str
    hurt: Callable[[Path], None]
    layouts: tuple[str, ...]
    power_loss: bool = True


def newest(tree: Path) -> Path:
    """The newest checkpoint: a folder, or a file."""
    found = []
    for path in (*tree.iterdir(), *tree.glob("checkpoints/*"), *tree.glob("models/*")):
        match = _STEP.search(path.name)
        if match:
            found.append((int(match.group(1)), str(path)))
    if not found:  # local: session/rank/iter_*
        return tree
    return Path(max(found)[1])


def files(tree: Path, pattern: str) -> list[Path]:
    """Files of the newest checkpoint whose name matches, sorted."""
    top = newest(tree)
    inside = [top] if top.is_file() else [p for p in top.rglob("*") if p.is_file()]
    return sorted(p for p in inside if re.search(pattern, p.name))


def victim(tree: Path, pattern: str = "") -> Path:
    """The biggest state file of the newest checkpoint."""
    found = files(tree, pattern) if pattern else files(tree, _STATE.pattern)
    return max(found, key=lambda p: (p.stat().st_size, str(p)))


def _edit(path: Path, change: Callable[[bytearray], object]) -> None:
    stat = path.stat()
    raw = bytearray(path.read_bytes())
    change(raw)
    path.write_bytes(bytes(raw))
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))


def _cut(keep: Callable[[int], int]) -> Callable[[Path], None]:
    return lambda tree: os.truncate(victim(tree), keep(victim(tree).stat().st_size))


def _zero(raw: bytearray, start: int, count: int) -> None:
    count = min(count, len(raw) - start)
    raw[start : start + count] = bytes(count)


def _zero_tail(tree: Path) -> None:
    _edit(victim(tree), lambda raw: _zero(raw, len(raw) * 3 // 4, len(raw)))


def _hole_tail(tree: Path) -> None:
    path = victim(tree)
    size = path.stat().st_size
    os.truncate(path, size * 3 // 4 // 4096 * 4096)
    os.truncate(path, size)


def _safetensors_hole(tree: Path) -> None:
    path = victim(tree, r"\.safetensors$")
    size = path.stat().st_size
    os.truncate(path, size // 8192 * 4096)
    os.truncate(path, size)


def _payload(raw: bytearray) -> int:
    """The middle of the largest run between zip records: inside one tensor."""
    marks = [m.start() for m in re.finditer(rb"PK\x03\x04|PK\x07\x08", raw)] or [len(raw) // 4]
    spans = zip(marks, [*marks[1:], len(raw)], strict=True)
    start, end = max(spans, key=lambda s: s[1] - s[0])
    return (start + end) // 2


def _flip(raw: bytearray) -> None:
    raw[_payload(raw)] ^= 0x10


def _zero_header(raw: bytearray) -> None:
    headers = [m.start() for m in re.finditer(rb"PK\x03\x04", raw)]
    _zero(raw, headers[len(headers) // 2] - 8 if len(headers) > 2 else 24, 4096)


def _remove(pattern: str, which: slice = slice(None)) -> Callable[[Path], None]:
    def hurt(tree: Path) -> None:
        for path in files(tree, pattern)[which]:
            path.unlink()

    return hurt


def _old_rank(pattern: str) -> Callable[[Path], None]:
    def hurt(tree: Path) -> None:
        path = files(tree, pattern)[-1]
        before = Path(str(path).replace("300", "200"))
        stat = before.stat()
        path.write_bytes(before.read_bytes())
        os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))

    return hurt


def _metadata_tmp(tree: Path) -> None:
    path = files(tree, r"^\.metadata$")[0]
    path.rename(path.with_name(".metadata.tmp"))


def _extra_shard(tree: Path) -> None:
    path = files(tree, r"^__0_0\.distcp$")[0]
    path.with_name("__7_0.distcp").write_bytes(path.read_bytes())


def _leftover(tree: Path) -> None:
    (newest(tree) / "optimizer.pt.tmp").write_bytes(b"PK\3\4xx")


def _unfinished(tree: Path) -> None:
    newest(tree).with_name(newest(tree).name + "-unfinished").write_bytes(b"")


def _renumbered(tree: Path) -> None:
    path = newest(tree)
    path.rename(path.with_name(path.name.replace("300", "400")))


ZIPS = (
    "plain", "hf", "hf_replica", "titan", "megatron_legacy", "megatron_dist", "deepspeed",
    "lightning", "accelerate", "torchtune", "fastai", "local", "nemo",
)  # fmt: skip
TORCH = (*ZIPS, "deepspeed_legacy")
DCP = ("titan", "megatron_dist", "nemo")

CASES = (
    Case("cut in half", _cut(lambda n: n // 2), TORCH),
    Case("cut by 100 bytes", _cut(lambda n: n - 100), TORCH),
    Case("cut by one byte", _cut(lambda n: n - 1), TORCH),
    Case("empty", _cut(lambda n: 0), TORCH),
    Case("last quarter zero", _zero_tail, ZIPS),
    Case("last quarter a hole", _hole_tail, TORCH),
    Case("all zero", lambda t: _edit(victim(t), lambda raw: _zero(raw, 0, len(raw))), TORCH),
    Case("a page over a header zero", lambda t: _edit(victim(t), _zero_header), TORCH),
    Case("garbage appended", lambda t: _edit(victim(t), lambda r: r.extend(b"U" * 4096)), TORCH),
    Case("last rank missing", _remove(r"rng_state_2|pp_rank_1_|random_states_1", slice(-1, None)),
         ("hf", "deepspeed", "deepspeed_legacy", "accelerate")),
    Case("first shard missing", _remove(r"^__0_0\.distcp$"), DCP),
    Case("optimizer missing", _remove(r"^optimizer\.(pt|bin)$|^distrib_optim\.pt$"),
         ("hf", "hf_replica", "accelerate", "megatron_legacy")),
    Case("scheduler missing", _remove(r"^scheduler\.(pt|bin)$"), ("hf", "accelerate")),
    Case("random states missing", _remove(r"^(rng_state|random_states)"), ("hf", "accelerate")),
    Case("trainer state missing", _remove(r"^trainer_state\.json$"), ("hf", "hf_replica")),
    Case("model shard missing", _remove(r"^model-00002"), ("hf",)),
    Case("safetensors cut", lambda t: os.truncate(victim(t, r"\.safetensors$"), 9000),
         ("hf", "hf_replica", "accelerate", "torchtune")),
    Case("safetensors half a hole", _safetensors_hole, ("hf", "accelerate", "torchtune")),
    Case("metadata missing", _remove(r"^\.metadata$"), DCP),
    Case("metadata cut", lambda t: os.truncate(files(t, r"^\.metadata$")[0], 900), DCP),
    Case("metadata only as .tmp", _metadata_tmp, DCP),
    Case("metadata.json missing", _remove(r"^metadata\.json$"), ("megatron_dist", "nemo")),
    Case("common.pt missing", _remove(r"^common\.pt$"), ("megatron_dist", "nemo")),
    Case("a shard too many", _extra_shard, DCP),
    Case("half-written file left", _leftover, ("hf", "megatron_legacy", "deepspeed")),
    Case("marked unfinished", _unfinished, ("nemo",)),
    Case("never committed", lambda t: [(t / "300" / n).unlink() for n in
         ("commit_success.txt", "_CHECKPOINT_METADATA")] and None, ("orbax",)),
    Case("manifest cut", lambda t: os.truncate(t / "300/params/manifest.ocdbt", 50), ("orbax",)),
    Case("renumbered", _renumbered, ("hf", "titan", "megatron_legacy", "deepspeed", "lightning")),
    Case("a rank's file of the save before",
         _old_rank(r"pp_rank_1_|^model_optim_rng|^__1_0|_2\.pth"),
         ("hf", "titan", "megatron_legacy", "deepspeed", "deepspeed_legacy")),
    Case("a bit flipped in a tensor", lambda t: _edit(victim(t), _flip), ZIPS, power_loss=False),
    Case("two pages zero in a tensor",
         lambda t: _edit(victim(t), lambda r: _zero(r, _payload(r), 8192)), ZIPS, power_loss=False),
)  # fmt: skip
