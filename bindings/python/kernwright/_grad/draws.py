"""Random numbers under checkpoint(): what is computed again draws the same ones.

While a function runs for the first time, the seed, offset and counter of each draw are kept; while
it runs again, the draws take these in the same order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kernwright import _core
from kernwright._core import Array, _unrecorded
from kernwright._grad.calls import Handler


class _Threads(threading.local):
    def __init__(self) -> None:
        self.kept: list[list[Any]] = []  # of the functions that run for the first time
        self.repeated: Iterator[Any] | None = None


_threads = _Threads()


@contextmanager
def kept() -> Iterator[list[Any]]:
    """The draws of the block, in order."""
    drawn: list[Any] = []
    _threads.kept.append(drawn)
    try:
        yield drawn
    finally:
        _threads.kept.remove(drawn)


@contextmanager
def repeated(drawn: list[Any]) -> Iterator[None]:
    """The draws of the block are those."""
    before, _threads.repeated = _threads.repeated, iter(drawn)
    try:
        yield
    finally:
        _threads.repeated = before


def _place(found: Any) -> Any:
    """That of an earlier draw where it is repeated, else `found`."""
    if _threads.repeated is not None:
        found = next(_threads.repeated, found)
    for each in _threads.kept:
        each.append(found)
    return found


def random_handler(function: Any, first: int) -> Handler:
    """Of a function that takes seed, offset and counter from its argument number `first`
    on."""

    def handler(*args: Any) -> Any:
        at = first % len(args)
        seed, offset, counter = args[at : at + 3]
        if isinstance(counter, Array) and (_threads.kept or _threads.repeated is not None):
            counter = _unrecorded(counter.copy)  # it moves on
        place = _place((seed, offset, counter))
        return _unrecorded(function, *args[:at], *place, *args[at + 3 :])

    return handler


def take_counter(counter: Array, by: int) -> Any:
    """The handler of the places of dropout's masks."""
    return _place(_unrecorded(_core._take_counter, counter, by))


def handlers() -> dict[Any, Handler]:
    """Of all functions that draw."""
    table: dict[Any, Handler] = {_core._take_counter: take_counter}
    for name, function in vars(_core).items():
        if name.startswith("_random_"):
            table[function] = random_handler(function, _FIRST.get(name, -3))
    return table


_FIRST = {"_random_permutation": 3}
