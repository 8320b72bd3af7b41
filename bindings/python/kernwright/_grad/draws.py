"""Random numbers under checkpoint() and captured(): what is computed again draws the same ones.

While a function runs for the first time, the seed, offset and counter of each draw are kept; while
it runs again, the draws take these in the same order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, _unrecorded
from kernwright._grad.calls import Handler
from kernwright.errors import InvalidArgument

_GENERATORS = 64  # that a captured function may draw from


class _Threads(threading.local):
    def __init__(self) -> None:
        self.kept: list[list[Any]] = []  # of the functions that run for the first time
        self.repeated: Iterator[Any] | None = None
        self.graph: GraphDraws | None = None


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


class GraphDraws:
    """The generators that a captured function draws from: a graph reads how far each has come since
    from the device, and each launch moves them on as far as the function did."""

    def __init__(self) -> None:
        self.generators: dict[int, tuple[Any, int]] = {}  # and the offset in the capture
        self.counts: dict[int, int] = {}
        self.words: dict[int, Array] = {}
        self.before: dict[int, int] = {}
        # Made before the capture: what a graph makes, each launch makes anew.
        words = kw.zeros(_GENERATORS, "uint64")
        self.spare = [words[i : i + 1] for i in range(_GENERATORS)]

    def place(self, generator: Any, count: int) -> tuple[int, Array]:
        """The offset and the word of a draw of `count` numbers, during the capture."""
        key = id(generator)
        if key not in self.generators:
            self.generators[key] = (generator, generator.offset)
            self.counts[key] = 0
            if not self.spare:
                raise InvalidArgument(
                    f"a captured function draws from at most {_GENERATORS} generators"
                )
            self.words[key] = self.spare.pop()
        offset = self.generators[key][1] + self.counts[key]
        self.counts[key] += count
        return offset % 2**64, self.words[key]

    def go_on(self) -> None:
        """Before a launch."""
        for key, (generator, first) in self.generators.items():
            passed = (generator._move_on(self.counts[key]) - first) % 2**64
            if self.before.get(key) != passed:
                self.words[key]._fill(passed)
                self.before[key] = passed


@contextmanager
def in_graph(drawn: GraphDraws) -> Iterator[None]:
    """Draws of the block are recorded in a graph."""
    before, _threads.graph = _threads.graph, drawn
    recorded = _core._set_recording(True)
    try:
        yield
    finally:
        _threads.graph = before
        _core._set_recording(recorded)


def place_in_graph(generator: Any, count: int) -> tuple[int, Array] | None:
    """The offset and the counter of a draw under kw.captured(); None elsewhere."""
    return None if _threads.graph is None else _threads.graph.place(generator, count)


def handlers() -> dict[Any, Handler]:
    """Of all functions that draw."""
    table: dict[Any, Handler] = {_core._take_counter: take_counter}
    for name, function in vars(_core).items():
        if name.startswith("_random_"):
            table[function] = random_handler(function, _FIRST.get(name, -3))
    return table


_FIRST = {"_random_permutation": 3}
