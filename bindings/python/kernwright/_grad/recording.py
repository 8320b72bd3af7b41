"""A recording: which operation made each array that depends on chosen ones, and how its gradient
goes on to the operands.

Nothing is written into arrays: a recording knows them by identity, and only while they live. Each
operation is a node with edges to the nodes of its operands; a node keeps what its gradient needs,
and nothing keeps a node but the arrays that come after it. So memory of a step ends with the step.

Nodes, and which node made which array, are in the extension (bindings/calls/recording.h); here is
what it does not do for each operation: writes, and who records.
"""

from __future__ import annotations

import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import kernwright
from kernwright._core import (
    Array,
    _extent,
    _forget,
    _GradientRecording,
    _is_traced,
    _next_order,
    _Node,
    _note,
    _note_checked,
    _note_joint,
    _recordings,
    _set_recording,
    _set_recordings,
)
from kernwright.errors import InvalidArgument

Pullback = Callable[[Array], Any]
# An operand, and the function from the result's gradient to the operand's.
Pairs = Iterable[tuple[Any, Pullback]]
# Operands, results, and the function from the gradients of all results to those of all operands.
Joint = tuple[Sequence[Any], Sequence[Any], Callable[..., Sequence[Any]]]
# A node, and the number of an array among its results.
Place = tuple[_Node, int]

# note(name, pairs, result) and note_joint(name, operands, results, pullback) record an operation in
# all open recordings; operands that no recording knows are constants. note_checked() is note() for
# operands whose memory refuse_stale() has looked at, or need not.
note, note_checked, note_joint = _note, _note_checked, _note_joint
is_traced = _is_traced
# From here on the array is a constant: all of it was overwritten.
forget = _forget
# The first byte of an array's elements, and the one behind the last.
extent_of = _extent
# The open recordings of this thread, the outermost first.
recordings = _recordings

_PACKAGE = kernwright.__path__[0] + "/"


class Write(NamedTuple):
    """Memory written while a recording still had use for its values."""

    order: int
    target: Array  # kept, so that nothing else gets the memory
    first: int
    end: int
    line: str
    traced: bool  # whether the values written have a gradient

    def touches(self, array: Array) -> bool:
        first, end = extent_of(array)
        return self.first < end and first < self.end


class Recording(_GradientRecording):
    """The arrays computed from the chosen ones, by identity."""

    def __init__(self) -> None:
        # By target and extent, the last one of each: what came before it is no matter.
        self.writes: dict[tuple[int, int, int], Write] = {}
        self.leaves: list[tuple[int, int]] = []  # their extents in memory
        # The extents that gradients need, known from the end of the recording on.
        self.needed: list[tuple[int, int]] | None = None

    def add_leaf(self, array: Array) -> _Node:
        self.leaves.append(extent_of(array))
        return self.enter(array, "an argument")

    def needs(self, first: int, end: int) -> bool:
        """Whether a write there may matter. Writes keep their targets, so no others are noted."""
        return self.needed is None or any(a < end and first < b for a, b in self.needed)

    def add_write(self, write: Write) -> None:
        self.writes[id(write.target), write.first, write.end] = write
        self.add_seen_write(write.target, write.first, write.end, write.order, write.traced)

    def refuse_stale(self, name: str, operands: Iterable[Any], but: Any = None) -> None:
        """An operand made before its memory was written through another array: its values would
        come from nowhere. Writes through the array `but` do not count."""
        for x in operands:
            if not isinstance(x, Array):
                continue
            place = self.place(x)
            order = 0 if place is None else place[0].order
            for write in self.writes.values():
                matters = write.traced or place is not None
                if not matters or write.order < order or write.target is x:
                    continue
                if write.target is not but and write.touches(x):
                    raise InvalidArgument(
                        f"{name} at {user_line()} reads memory that {write.line} wrote through "
                        "another array: a gradient cannot follow; compute a new array there"
                    )


class _Threads(threading.local):
    def __init__(self) -> None:
        self.one: Array | None = None  # the gradient of the loss in itself
        self.columns: tuple[Array, Array] | None = None  # a gradient and its sums over all rows
        self.extents: list[list[tuple[int, int]]] = []  # of blocks told of each write
        self.watched: weakref.WeakSet[Recording] = weakref.WeakSet()  # those with values to guard
        self.reasons: list[None] = []  # to look at operations outside of recordings


_threads = _Threads()


class Watch:
    """While it lives, operations of the thread that made it are looked at as in a recording, so
    that recordings that are over, and graphs, are told of writes."""

    def __init__(self) -> None:
        self.reasons = _threads.reasons
        self.reasons.append(None)
        _set_recording(True)

    def __del__(self) -> None:
        self.reasons.pop()
        if self.reasons is _threads.reasons and not self.reasons and not recordings():
            _set_recording(False)


@contextmanager
def recorded() -> Iterator[Recording]:
    """Records the operations of this thread until the end of the block."""
    recording = Recording()
    _set_recordings((*recordings(), recording))
    _threads.watched.add(recording)
    before = _set_recording(True)
    try:
        yield recording
    finally:
        _set_recordings(each for each in recordings() if each is not recording)
        recording.close()
        recording.leaves.clear()
        _set_recording(before if recordings() else bool(_threads.reasons))


class unrecorded:
    """Operations of this block are constants for all recordings."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _set_recording(False)

    def __exit__(self, *error: object) -> None:
        _set_recording(self._before)


@contextmanager
def starting_with(one: Array) -> Iterator[None]:
    """A sweep from a loss. The gradient of the loss is the array `one`."""
    before, _threads.one = _threads.one, one
    try:
        yield
    finally:
        _threads.one = before


def is_one(gradient: Array) -> bool:
    """Whether it is the loss's own gradient: a factor of 1."""
    return gradient is _threads.one


def keep_column_sums(gradient: Array | None, sums: Array | None) -> None:
    """The kernel that made the gradient has summed it over all rows, too: what the gradient of a
    bias needs. Those of one gradient are kept, until they are taken."""
    _threads.columns = None if gradient is None or sums is None else (gradient, sums)


def take_column_sums(gradient: Array) -> Array | None:
    """The sums of this very gradient, if they are kept."""
    if _threads.columns is None or _threads.columns[0] is not gradient:
        return None
    sums = _threads.columns[1]
    _threads.columns = None
    return sums


def user_line(raised: types.TracebackType | None = None) -> str:
    """The file and line of the innermost code outside of this package, among the frames of an
    error's traceback, or else of this call's stack."""
    found = ""
    while raised is not None:
        if not raised.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            found = f"{raised.tb_frame.f_code.co_filename}:{raised.tb_lineno}"
        raised = raised.tb_next
    if found:
        return found
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back  # type: ignore[assignment]
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def note_write(target: Array, call: str, traced: bool = False) -> None:
    """Before memory is written: what a gradient is taken of may not change; what else a gradient
    needs is checked when it needs it."""
    first, end = extent_of(target)
    if first == end:
        return
    note_extent(target)
    for recording in tuple(_threads.watched):
        if not recording.needs(first, end):
            continue
        if recording in recordings() and any(a < end and first < b for a, b in recording.leaves):
            raise InvalidArgument(
                f"{call} at {user_line()} writes into an argument that gradients are taken of: "
                "compute a new array, as in x = x + 1"
            )
        line = f"{call} at {user_line()}"
        recording.add_write(Write(_next_order(), target, first, end, line, traced))


def note_extent(target: Array) -> None:
    """Tells written_extents() of a write, or of one that may be."""
    for written in _threads.extents:
        written.append(extent_of(target))


@contextmanager
def written_extents() -> Iterator[list[tuple[int, int]]]:
    """The memory written by the block through arrays made before it."""
    found: list[tuple[int, int]] = []
    _threads.extents.append(found)
    try:
        yield found
    finally:
        _threads.extents.pop()


def refuse_stale(name: str, operands: Iterable[Any], but: Any = None) -> None:
    """In all open recordings."""
    for recording in recordings():
        if recording.writes:
            recording.refuse_stale(name, operands, but)


@contextmanager
def touched() -> Iterator[Callable[[], list[Array]]]:
    """Operations of this block are not recorded; the function says which arrays with gradients they
    used."""
    outer, seen = recordings(), Recording()
    seen.look_through(outer)
    _set_recordings((seen,))
    try:
        yield lambda: seen.found
    finally:
        _set_recordings(outer)
