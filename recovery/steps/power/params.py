"""What a `power` step can say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, field_validator

from recovery.plan import seconds


class PowerParams(BaseModel):
    """What to do, how gently, and how long a node stays off."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    argument: Literal["status", "on", "off", "cycle"]
    # How long its system may shut down before the power is cut; 0s cuts it at once.
    orderly: str = "1m"
    # A power supply's capacitors hold for seconds, and a card that hung keeps its state as long.
    off_for: str = "30s"
    settle: str = "10s"  # how long a node must stay on before it counts, and the next wave starts
    every: str = "5s"  # between two questions to a BMC
    by: Literal["feed", "rack", "none"] = "feed"
    inrush: Annotated[int, WithJsonSchema({"type": ["integer", "string"]})] = Field(
        default=8, ge=1
    )  # most nodes of one feed switched on at once
    may_fail: bool = False  # what comes after says whether it helped

    @field_validator("orderly", "off_for", "settle", "every")
    @classmethod
    def _is_duration(cls, word: str) -> str:
        seconds(word)
        return word

    @property
    def turns_on(self) -> bool:
        """Claims that nodes start, and draw their inrush current."""
        return self.argument in ("on", "cycle")

    @property
    def words(self) -> str:
        """One line for the plan."""
        if self.argument == "status":
            return "ask every BMC for the power state and its event log"
        gently = f"; at most {self.inrush} nodes of one {self.by} at once" if self.turns_on else ""
        off = f", off for {self.off_for}" if self.argument == "cycle" else ""
        if self.argument in ("off", "cycle") and seconds(self.orderly):
            off = f" after a shutdown of at most {self.orderly}{off}"
        return f"power {self.argument} by BMC{off}{gently}; event log and sensors saved first"
