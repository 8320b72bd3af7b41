"""From the gradient of results to those of the leaves, in the reverse order of the recording."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

import kernwright as kw
from kernwright._core import Array, _Node
from kernwright._grad.recording import (
    Place,
    Recording,
    extent_of,
    keep_column_sums,
    recordings,
    user_line,
)
from kernwright.errors import InvalidArgument


class _Sum:
    """What arrives at one place. Two 16-bit numbers are rounded once; more are summed in float32
    and rounded at the end."""

    __slots__ = ("is_joined", "parts")

    def __init__(self, first: Array) -> None:
        self.parts = [first]
        self.is_joined = False  # whether the kernel of an operation has added two to the first

    def add(self, part: Array) -> None:
        if len(self.parts) == 1:
            self.parts.append(part)
            return
        narrow = self.parts[0].itemsize < 4
        done = self.parts[0] + self.parts[1] if len(self.parts) == 2 and not narrow else None
        if done is None:
            wide = self.parts[0].astype("float32", copy=False)
            done = wide + self.parts[1]
        self.parts = [done, part]

    def total(self, node: _Node, number: int) -> Array:
        made = self.parts[0] if len(self.parts) == 1 else self.parts[0] + self.parts[1]
        return as_operand(made, (node, number))


def repeated_axes(result: tuple[int, ...], operand: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a result along which an operand was repeated."""
    extra = len(result) - len(operand)
    return tuple(range(extra)) + tuple(
        i + extra for i, n in enumerate(operand) if n == 1 and result[i + extra] != 1
    )


def as_operand(gradient: Array, place: Place) -> Array:
    """The gradient of an operand that was broadcast and converted: summed over the axes along which
    the operand was repeated, and of its dtype."""
    node, number = place
    if node.fits(number, gradient):
        return gradient
    outline = node.outline(number)
    assert outline is not None
    shape, dtype = outline.shape, outline.dtype
    if gradient.shape != shape:
        axes = repeated_axes(gradient.shape, shape)
        gradient = kw.sum(gradient, axis=axes, dtype=gradient.dtype, keepdims=True)
        gradient = gradient.reshape(shape)
    if gradient.dtype != dtype:
        if gradient.dtype.kind == "c" and dtype.kind != "c":
            gradient = kw.real(gradient)
        gradient = gradient.astype(dtype, copy=False)
    return gradient


def gradients(
    recording: Recording, results: Sequence[tuple[Place, Array]], leaves: Sequence[_Node]
) -> list[Array]:
    """The gradients of `leaves`, given those of results; zeros where nothing depends on one."""
    sums: dict[_Node, list[_Sum | None]] = {}
    waiting: list[tuple[int, _Node]] = []

    def arrive(place: Place, part: Array) -> None:
        node, number = place
        if node not in sums:
            sums[node] = [None] * node.size
            heapq.heappush(waiting, (-node.order, node))
        found = sums[node][number]
        if found is None:
            sums[node][number] = _Sum(part)
        else:
            found.add(part)

    for place, given in results:
        arrive(place, given)
    made: dict[_Node, Array] = {}
    wanted = set(leaves)
    try:
        while waiting:
            node = heapq.heappop(waiting)[1]
            arrived = [
                None if each is None else each.total(node, number)
                for number, each in enumerate(sums.pop(node))
            ]
            if node in wanted and arrived[0] is not None:
                made[node] = arrived[0]
                continue
            if recording.writes:
                _refuse_overwritten(recording, node)
            options, joined = _joined(node, sums)
            if joined is not None:
                sums[joined[0]][joined[1]] = None
            for place, part in _pulled(node, arrived, options):
                arrive(place, as_operand(part, place))
            if joined is not None:
                sums[joined[0]][joined[1]].is_joined = True  # type: ignore[union-attr]
    finally:
        keep_column_sums(None, None)
    return [made[leaf] if leaf in made else _zeros(leaf) for leaf in leaves]


def _zeros(leaf: _Node) -> Array:
    outline = leaf.outline(0)
    assert outline is not None
    return kw.zeros(outline.shape, dtype=outline.dtype, device=outline.device)


def _joined(
    node: _Node, sums: dict[_Node, list[_Sum | None]]
) -> tuple[dict[str, Any], Place | None]:
    """Options of a pullback that can do more in its kernel, and the place whose sum so far it adds
    to its own part. It sums the gradient of its first operand over all rows where that had a bias.
    Sums of many parts stay in float32, and second derivatives take each step by itself."""
    joint: Any = node.joint
    if not hasattr(joint, "adds") or recordings():
        return {}, None
    places = [(operand, number) for operand, number, i in node.edges if i == 0]
    if len(places) != 1:
        return {}, None
    operand, number = places[0]
    options: dict[str, Any] = {
        "columns": joint.sums_columns
        and operand.joint is None
        and any(hasattr(pull, "wants_columns") for *_, pull in operand.edges)
    }
    found = sums[operand][number] if joint.adds and operand in sums else None
    if found is None or found.is_joined or len(found.parts) > 1:
        return options, None
    return {**options, "added": found.parts[0]}, (operand, number)


def _pulled(
    node: _Node, given: list[Array | None], options: dict[str, Any]
) -> list[tuple[Place, Array]]:
    """The gradients of a node's operands. Complex ones are those of the real and the imaginary part
    as one number, as in torch: a pullback gets the conjugate, and its result is conjugated."""
    turned = any(each is not None and each.dtype.kind == "c" for each in given)
    if turned:
        given = [None if each is None else kw.conj(each) for each in given]
    found: list[tuple[Place, Any]]
    if node.joint is None:
        found = [((operand, number), pull(given[0])) for operand, number, pull in node.edges]
    else:
        parts = node.joint(*given, **options)
        found = [((operand, number), parts[i]) for operand, number, i in node.edges]
    return [
        (place, kw.conj(part) if turned and part.dtype.kind == "c" else part)
        for place, part in found
        if part is not None
    ]


def needed_memory(results: Iterable[Place | None]) -> list[tuple[int, int]]:
    """The extents of all arrays that the gradients of results need."""
    found = set()
    nodes = {place[0]: None for place in results if place is not None}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        found |= {extent_of(array) for array in _needed_by(node)}
        below = {operand: None for operand, *_ in node.edges if operand not in nodes}
        nodes |= below
        waiting += below
    return sorted(found)


def _needed_by(node: _Node) -> list[Array]:
    pulls = [pull for *_, pull in node.edges] if node.joint is None else [node.joint]
    return _arrays_in([cell.cell_contents for pull in pulls for cell in _cells(pull)])


def _refuse_overwritten(recording: Recording, node: _Node) -> None:
    for array in _needed_by(node):
        for write in recording.writes.values():
            if node.order < write.order and write.touches(array):
                raise InvalidArgument(
                    f"the gradient of {node.name} needs values that {write.line} has overwritten: "
                    f"compute a new array there (the gradient was asked for at {user_line()})"
                )


def _cells(pull: Any) -> Any:
    """What a pullback has kept."""
    return [*(getattr(pull, "__closure__", None) or ())]


def _arrays_in(value: Any) -> list[Array]:
    if isinstance(value, Array):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for each in value for array in _arrays_in(each)]
    if callable(value) and getattr(value, "__closure__", None):
        return _arrays_in([cell.cell_contents for cell in value.__closure__])
    return []
