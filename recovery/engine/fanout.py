"""Work on many nodes at once, each failure kept to its own node."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from recovery.errors import InterruptedRunError, RecoveryError, StoreError

Item = TypeVar("Item")
Result = TypeVar("Result")


def fan_out(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    *,
    width: int,
    broken: Callable[[Item, str], Result],
    done: Callable[[Item, Result], None],
) -> list[Result]:
    """Does ``work`` on all items, ``width`` at once, and returns the results in their order.

    ``done`` is told of each result as it comes, on the calling thread. An exception in ``work``
    becomes ``broken(item, traceback)``, so one node's trouble never takes others down.

    Raises:
        StoreError: the journal or evidence cannot be written; nothing new is started.
        InterruptedRunError: the operator said stop; results that came are told first.
    """
    todo: Sequence[Item] = list(items)
    results: dict[int, Result] = {}
    if not todo:
        return []
    with ThreadPoolExecutor(max_workers=max(1, min(width, len(todo)))) as pool:
        futures = {pool.submit(_guarded, work, item, broken): n for n, item in enumerate(todo)}
        try:
            _collect(futures, todo, results, done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [results[n] for n in range(len(todo))]


def _collect(
    futures: dict[Future[Result], int],
    todo: Sequence[Item],
    results: dict[int, Result],
    done: Callable[[Item, Result], None],
) -> None:
    pending = set(futures)
    stop: RecoveryError | None = None
    while pending:
        ready, pending = wait(pending, return_when=FIRST_COMPLETED)
        for future in ready:
            if future.cancelled():
                continue
            try:
                results[futures[future]] = future.result()
            except (StoreError, InterruptedRunError) as error:
                stop = stop or error
                for other in pending:
                    other.cancel()
                continue
            done(todo[futures[future]], results[futures[future]])
    if stop:
        raise stop


def _guarded(
    work: Callable[[Item], Result], item: Item, broken: Callable[[Item, str], Result]
) -> Result:
    try:
        return work(item)
    except (StoreError, InterruptedRunError):
        raise
    # The one broad except of the project: whatever goes wrong for one node is that node's result.
    except Exception:  # noqa: BLE001 - the boundary named above
        return broken(item, traceback.format_exc())
