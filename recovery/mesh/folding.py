"""Conclusions from a mesh that are drawn once for each state, however many ask for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from recovery.mesh.words import Level, State

Found = TypeVar("Found")
Draw = Callable[[State], Found]


def fold(*levels: Level) -> Callable[[Draw[Found]], Draw[Found]]:
    """The same function, whose answer the state keeps: with 10,000 nodes counting takes long.

    ``levels`` are those whose tests it looks at: a round of others leaves the answer as it was.
    None named: the state after every round asks anew. Whoever asks must not change the answer.
    """

    def decorated(draw: Draw[Found]) -> Draw[Found]:
        key = (f"{draw.__module__}.{draw.__qualname__}", frozenset(levels or Level))

        @wraps(draw)
        def drawn(state: State) -> Found:
            if key not in state.folds:
                state.folds[key] = draw(state)
            found: Found = state.folds[key]
            return found

        return drawn

    return decorated
