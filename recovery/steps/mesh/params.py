"""The keys of a `mesh` step."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from recovery.mesh.relative import LEAST_SHARE
from recovery.mesh.words import Level

CHANGED = "changed"
Runner = Literal["auto", "mpirun", "srun", "ssh", "torch"]


class MeshParams(BaseModel):
    """The collective, its payload, the levels to climb, and how to start the tests.

    ``only`` names the nodes in question (a hostlist); the others of the step are known to be good
    and serve as partners; ``changed`` are those that no earlier mesh of the run found good.
    ``leaves`` is a topology file of the controller. ``env`` are variables
    for NCCL; those of the inventory's ``nccl_env`` come first. A test below ``slow_below`` of the
    median of its kind (and 3 MAD-sigma) is slow; a network that others share needs less than 0.9.
    ``pooled`` starts the first pairs in one launch (NCCL_TESTS_SPLIT), and each by itself if that
    does not pass.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: str = Field("all_reduce", pattern=r"^[a-z_]+$")
    size: str = Field("8G", pattern=r"^\d+[KMGT]?$")
    levels: tuple[str, ...] = ("alone", "pairs", "suspects")
    runner: Runner = "auto"
    only: str = ""
    leaves: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    pooled: bool = False
    slow_below: float = Field(LEAST_SHARE, gt=0, le=1)

    @field_validator("levels", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        if value == "all":
            return tuple(level.word for level in Level)
        return (value,) if isinstance(value, str) else value

    @field_validator("levels")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        known = [level.word for level in Level]
        strange = [v for v in value if v not in known]
        if strange:
            raise ValueError(f"{strange[0]!r} is none of {', '.join(known)}")
        return value

    @property
    def asked(self) -> frozenset[Level]:
        """The levels, as the ladder calls them."""
        return frozenset(level for level in Level if level.word in self.levels)
