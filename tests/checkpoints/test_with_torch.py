"""The same statements on files that torch itself writes; skipped where torch is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recovery.payloads import checkpoint_inspector as inspector
from tests.checkpoints import trees
from tests.checkpoints.torchfiles import torch_legacy, torch_zip

torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")


def trained(step: int) -> dict[str, Any]:
    torch.manual_seed(step)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    for _ in range(step):
        optimizer.zero_grad()
        model(torch.randn(4, 64)).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "lr_scheduler": schedule.state_dict(),
        "rng_state": torch.get_rng_state(),
        "global_step": step,
    }


@pytest.mark.parametrize("new_format", [True, False])
def test_what_torch_saves_is_read_with_its_facts(tmp_path: Path, new_format: bool) -> None:
    state = trained(5)
    path = tmp_path / "checkpoint_5.pth"
    torch.save(state, path, _use_new_zipfile_serialization=new_format)

    inspector.Options.deep = True
    (only,) = inspector.inspect([str(tmp_path)], 40)["checkpoints"]

    assert only["level"] == "pass"
    assert only["step"] == 5
    assert only["components"] == ["model", "optimizer", "rng", "scheduler"]
    assert only["facts"]["lr"] == pytest.approx(state["lr_scheduler"]["_last_lr"][0])
    assert only["facts"]["counters"] == {"optimizer": 5, "scheduler": 5}
    assert only["facts"]["parameters"] == 64 * 64 + 64 * 3


def test_every_cut_of_a_real_file_fails(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_5.pth"
    torch.save(trained(5), path)
    whole = path.read_bytes()

    for keep in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:keep])
        (only,) = inspector.inspect([str(tmp_path)], 40)["checkpoints"]
        assert only["level"] == "fail"


def test_checksums_switched_off_in_torch_are_no_damage(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(trained(2), tmp_path / "checkpoint_2.pth")
    finally:
        torch.serialization.set_crc32_options(True)

    (only,) = inspector.inspect([str(tmp_path)], 40)["checkpoints"]

    assert only["level"] == "pass"


@pytest.mark.parametrize("write", [torch_zip, torch_legacy])
def test_the_writers_of_these_tests_write_what_torch_reads(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "ours.pt"
    path.write_bytes(write({"model": trees.weights(7), "optimizer": trees.adam(7)}))

    loaded = torch.load(path, weights_only=True)

    assert loaded["model"]["a.weight"].shape == (trees.COUNT // 200, 100)
    assert float(loaded["optimizer"]["state"][0]["step"]) == 7.0
