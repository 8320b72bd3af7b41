"""Random numbers under checkpoint() and captured().

What checkpoint() computes again draws the same numbers: while a function runs for the first time,
the seed, offset and counter of each draw are kept; while it runs again, the draws take these in the
same order, and no generator moves on. Under captured() draws read from the device how far their
generator has come.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, _unrecorded
from kernwright._grad.calls import Handler, constant_handler
from kernwright._grad.recording import Watch, forget, note_write
from kernwright.errors import InvalidArgument

_GENERATORS = 64  # that a captured function may draw from

_T = TypeVar("_T")
Draw = tuple[int, int, Array | None]  # seed, offset, counter on the device


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
        _threads.kept.pop()


@contextmanager
def repeated(drawn: list[Any]) -> Iterator[None]:
    """The draws of the block are those."""
    before, _threads.repeated = _threads.repeated, iter(drawn)
    try:
        yield
    finally:
        _threads.repeated = before


def _again() -> Any:
    """The next one of the draws that are repeated."""
    assert _threads.repeated is not None
    try:
        found = next(_threads.repeated)
    except StopIteration:
        raise InvalidArgument(
            "a function under checkpoint() draws more random numbers when it is computed again"
        ) from None
    return _keep(found)


def _keep(found: _T) -> _T:
    for each in _threads.kept:
        each.append(found)
    return found


def draw_of(generator: Any, count: int) -> Draw | None:
    """Where a generator draws the next `count` numbers, inside of a recording; None: as always."""
    if _threads.repeated is not None:
        found: Draw = _again()
        return found
    if _threads.graph is not None:
        _threads.graph.note_seed(generator)
        if generator.counter is None:
            return _keep((generator.seed, *_threads.graph.place(generator, count)))
    if not _threads.kept:
        return None
    counter = generator.counter
    if counter is None:
        return _keep((generator.seed, generator._move_on(count), None))
    copy = _unrecorded(counter.copy)  # it moves on
    _unrecorded(_core._advance_counter, counter, count)
    return _keep((generator.seed, generator.offset, copy))


def overwrite(out: Array) -> None:
    """Before numbers are drawn into an array of the caller, inside of a recording."""
    note_write(out, "a draw of random numbers")
    forget(out)


def take_counter(counter: Array, by: int) -> Any:
    """The handler of the places of dropout's masks."""
    if _threads.repeated is not None:
        return _again()
    return _keep(_unrecorded(_core._take_counter, counter, by))


def note_seed(sequence: Any) -> None:
    """Tells a graph that is being recorded that it has the seed of this sequence of masks."""
    if _threads.graph is not None:
        _threads.graph.note_seed(sequence)


class GraphDraws:
    """The generators that a captured function draws from: a graph reads how far each has come since
    from the device, and each launch moves them on as far as the function did."""

    def __init__(self) -> None:
        self.generators: dict[int, tuple[Any, int]] = {}  # and the offset in the capture
        self.counts: dict[int, int] = {}
        self.words: dict[int, Array] = {}
        self.before: dict[int, int] = {}
        self.seeds: dict[int, tuple[Any, int]] = {}  # of all that is drawn from, in the capture
        # Made before the capture: what a graph makes, each launch makes anew.
        words = kw.zeros(_GENERATORS, "uint64")
        self.spare = [words[i : i + 1] for i in range(_GENERATORS)]

    def note_seed(self, sequence: Any) -> None:
        """The capture draws by sequence.seed, which is a constant of the graph."""
        self.seeds[id(sequence)] = (sequence, sequence.seed)

    def has_seeds(self) -> bool:
        """Whether all seeds are those of the capture: seed(), restore() and checkpoints change
        them."""
        return all(sequence.seed == seed for sequence, seed in self.seeds.values())

    def place(self, generator: Any, count: int) -> tuple[int, Array]:
        """The offset and the word of a draw of `count` numbers, during the capture."""
        key = id(generator)
        if key not in self.generators:
            if not self.spare:
                raise InvalidArgument(
                    f"a captured function draws from at most {_GENERATORS} generators"
                )
            self.generators[key] = (generator, generator.offset)
            self.counts[key] = 0
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
    watch = Watch()
    try:
        yield
    finally:
        _threads.graph = before
        del watch


def handlers() -> dict[Any, Handler]:
    """Of all functions that draw: they fill arrays by the place that draw_of() told."""
    table: dict[Any, Handler] = {_core._take_counter: take_counter}
    for name, function in vars(_core).items():
        if name.startswith("_random_"):
            table[function] = constant_handler(function)
    return table
