"""A recording: which operation made each array that depends on chosen ones, and how its gradient
goes on to the operands.

Nothing is written into arrays: a recording knows them by identity, and only while they live. Each
operation is a Node with edges to the nodes of its operands; a node keeps what its gradient needs,
and nothing keeps a node but the arrays that come after it. So memory of a step ends with the step.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import kernwright
from kernwright._core import Array, _outline, _set_recording
from kernwright.errors import InvalidArgument

Pullback = Callable[[Array], Any]
# An operand, and the function from the result's gradient to the operand's.
Pairs = Iterable[tuple[Any, Pullback]]

_PACKAGE = kernwright.__path__[0] + "/"
_orders = itertools.count(1)


class Place(weakref.ref[Array]):
    """An array that a node made, without keeping it: its node, its number among the node's results,
    and its outline, which has its shape, dtype and device."""

    __slots__ = ("key", "node", "number", "outline")
    key: int
    node: Node
    number: int
    outline: Array


class Node:
    """An operation. `edges` has, for each operand with a gradient, its place and the pullback; with
    a `joint` pullback, of all results at once, the position in what that returns."""

    __slots__ = ("__weakref__", "edges", "joint", "name", "order", "outlines")

    def __init__(self, name: str, edges: list[tuple[Place, Any]], joint: Any) -> None:
        self.name, self.edges, self.joint = name, edges, joint
        self.order = next(_orders)
        self.outlines: list[Array | None] = []


class Write(NamedTuple):
    """Memory that was written while its values were of use to a recording."""

    order: int
    target: Array  # kept, so that nothing else gets the memory
    first: int
    end: int
    line: str
    traced: bool  # whether what was written has a gradient

    def touches(self, array: Array) -> bool:
        first, end = extent_of(array)
        return self.first < end and first < self.end


class Recording:
    """The arrays that depend on the chosen ones, by identity."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        # By target and extent, the last one of each: what came before it is no matter.
        self.writes: dict[tuple[int, int, int], Write] = {}
        self.leaves: list[tuple[int, int]] = []  # their extents in memory

    def set_place(self, array: Array, node: Node, number: int = 0) -> None:
        """From here on `array` is what the node made."""
        place = Place(array, self._drop)
        place.key = key = id(array)
        place.node, place.number = node, number
        place.outline = outline = _outline(array)
        node.outlines.append(outline)
        self.places[key] = place

    def _drop(self, place: Place) -> None:
        # Another array may have the identity of the dead one by now.
        if self.places.get(place.key) is place:
            del self.places[place.key]

    def add_leaf(self, array: Array) -> Node:
        node = Node("an argument", [], None)
        self.set_place(array, node)
        self.leaves.append(extent_of(array))
        return node


class _Threads(threading.local):
    def __init__(self) -> None:
        self.one: Array | None = None  # the gradient of the loss in itself
        self.recordings: list[Recording] = []  # those that are open, the outermost first
        self.extents: list[list[tuple[int, int]]] = []  # who wants to know what is written
        self.watched: weakref.WeakSet[Recording] = weakref.WeakSet()  # whose values may be needed


_threads = _Threads()


@contextmanager
def recorded() -> Iterator[Recording]:
    """Records the operations of this thread until the end of the block."""
    recording = Recording()
    _threads.recordings.append(recording)
    _threads.watched.add(recording)
    before = _set_recording(True)
    try:
        yield recording
    finally:
        _threads.recordings.remove(recording)
        recording.places.clear()  # the callbacks in there hold it
        recording.leaves.clear()
        _set_recording(before)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Operations of this block are constants for all recordings."""
    before = _set_recording(False)
    try:
        yield
    finally:
        _set_recording(before)


@contextmanager
def starting_with(one: Array) -> Iterator[None]:
    """A sweep from a loss, whose gradient is the array `one`."""
    before, _threads.one = _threads.one, one
    try:
        yield
    finally:
        _threads.one = before


def is_one(gradient: Array) -> bool:
    """Whether it is that of the loss: a factor of 1."""
    return gradient is _threads.one


def is_traced(array: Any) -> bool:
    """Whether an open recording has a gradient for it."""
    return any(id(array) in each.places for each in _threads.recordings)


def note(name: str, pairs: Pairs, result: Array, checked: bool = False) -> None:
    """Records an operation with one result. Operands that no recording knows are constants."""
    recordings = _threads.recordings
    if len(recordings) > 1:
        pairs = tuple(pairs)
    for recording in recordings:
        known, edges, operands = recording.places.get, [], []
        for x, pull in pairs:
            operands.append(x)
            place = known(id(x))
            if place is not None:
                edges.append((place, pull))
        if recording.writes and not checked:
            _refuse_stale(recording, name, operands)
        if edges:
            recording.set_place(result, Node(name, edges, None))


def note_joint(
    name: str, operands: Sequence[Any], results: Sequence[Array | None],
    pullback: Callable[..., Sequence[Any]],
) -> None:  # fmt: skip
    """Records an operation whose pullback takes the gradients of all `results` (None: not needed
    further on), and returns those of all `operands`."""
    for recording in _threads.recordings:
        places = recording.places
        edges = [(places[id(x)], i) for i, x in enumerate(operands) if id(x) in places]
        if recording.writes:
            _refuse_stale(recording, name, operands)
        if edges:
            node = Node(name, edges, pullback)
            for i, each in enumerate(results):
                if each is None:
                    node.outlines.append(None)
                else:
                    recording.set_place(each, node, i)


def extent_of(array: Array) -> tuple[int, int]:
    """The first byte of an array's elements, and the one behind the last."""
    first = end = array.ptr
    if array.size == 0:
        return first, first
    for count, stride in zip(array.shape, array.strides, strict=True):
        reach = (count - 1) * stride
        first, end = first + min(reach, 0), end + max(reach, 0)
    return first, end + array.itemsize


def user_line() -> str:
    """The file and line of the innermost code outside of this package."""
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
        is_open = recording in _threads.recordings
        if is_open and any(a < end and first < b for a, b in recording.leaves):
            raise InvalidArgument(
                f"{call} at {user_line()} writes into an argument that gradients are taken of: "
                "compute a new array, as in x = x + 1"
            )
        line = f"{call} at {user_line()}"
        key = (id(target), first, end)
        recording.writes[key] = Write(next(_orders), target, first, end, line, traced)


def note_extent(target: Array) -> None:
    """Tells written_extents() of a write, or of one that may be."""
    for written in _threads.extents:
        written.append(extent_of(target))


@contextmanager
def written_extents() -> Iterator[list[tuple[int, int]]]:
    """The memory that the block writes through arrays that were there before."""
    found: list[tuple[int, int]] = []
    _threads.extents.append(found)
    try:
        yield found
    finally:
        _threads.extents.pop()


def refuse_stale(name: str, operands: Iterable[Any], but: Any = None) -> None:
    """An operand made before its memory was written through another array: a recording would not
    know where its values come from. Writes through the array `but` do not count."""
    for recording in _threads.recordings:
        if recording.writes:
            _refuse_stale(recording, name, operands, but)


def _refuse_stale(
    recording: Recording, name: str, operands: Iterable[Any], but: Any = None
) -> None:
    for x in operands:
        if not isinstance(x, Array):
            continue
        place = recording.places.get(id(x))
        order = 0 if place is None else place.node.order
        for write in recording.writes.values():
            if not write.traced or write.order < order or write.target is x:
                continue
            if write.target is not but and write.touches(x):
                raise InvalidArgument(
                    f"{name} at {user_line()} reads memory that {write.line} wrote through another "
                    "array: a gradient cannot follow; compute a new array there"
                )


def recordings() -> list[Recording]:
    """The open recordings of this thread."""
    return _threads.recordings


class _Touched(dict[int, Any]):
    """In the place of a recording's arrays: it knows none, and remembers which were asked for by
    `in` and get()."""

    def __init__(self, outer: list[Recording]) -> None:
        super().__init__()
        self.outer, self.found = outer, dict[int, Array]()

    def __contains__(self, key: object) -> bool:
        for recording in self.outer:
            place = recording.places.get(key) if isinstance(key, int) else None
            array = None if place is None else place()
            if array is not None:
                self.found[id(array)] = array
        return False

    def get(self, key: int, default: Any = None) -> Any:
        key in self  # noqa: B015
        return default


@contextmanager
def touched() -> Iterator[Callable[[], list[Array]]]:
    """Operations of this block are not recorded; the function says which arrays with gradients they
    used."""
    outer = _threads.recordings
    seen = Recording()
    seen.places = places = _Touched(outer)
    _threads.recordings = [seen]
    try:
        yield lambda: list(places.found.values())
    finally:
        _threads.recordings = outer


def forget(array: Array) -> None:
    """From here on the array is a constant: all of it was overwritten."""
    for recording in _threads.recordings:
        recording.places.pop(id(array), None)
