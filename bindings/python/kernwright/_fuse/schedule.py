"""The values of one kernel: its space, its reduced axes, and its stores."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from kernwright._fuse import types
from kernwright._fuse.graph import Graph, Node

# For each dimension of a value the axis of the kernel's space that it runs along, or None.
Mapping = tuple[int | None, ...]

# Rows that are longer, where there are fewer of them, take several blocks each.
LONG_ROW = 32768
FEW_ROWS = 64


class Stored(NamedTuple):
    """A value stored by a kernel: into an output of the function, or for later kernels."""

    node: Node
    mapping: Mapping
    slot: tuple[str, int]


class Step(NamedTuple):
    """One kernel; `places` has the leaves for reductions stored before."""

    space: tuple[int, ...]
    axes: tuple[int, ...]
    stored: list[Stored]
    places: dict[int, Node]


def operand_mapping(node: Node, mapping: Mapping, operand: Node) -> Mapping:
    """The place of an operand broadcast to `node`."""
    lead = len(node.shape) - len(operand.shape)
    pairs = zip(operand.shape, mapping[lead:], strict=True)
    return tuple(None if extent == 1 else axis for extent, axis in pairs)


def reduced_mapping(
    node: Node, mapping: Mapping, space: tuple[int, ...], axes: tuple[int, ...]
) -> Mapping | None:
    """Where a reduction's operand lies, None where the kernel cannot reduce it."""
    _, own, out = node.info
    operand = node.args[0]
    found: list[int | None] = [None] * len(operand.shape)
    for at, k in zip(mapping, out, strict=True):
        if k is not None and operand.shape[k] != 1:
            if at is None or at in axes:
                return None
            found[k] = at
    wide = [a for a in own if operand.shape[a] != 1]
    if len([a for a in axes if space[a] != 1]) != len(wide):
        return None
    for a, axis in zip(wide, (x for x in axes if space[x] != 1), strict=True):
        if operand.shape[a] != space[axis]:
            return None
        found[a] = axis
    whole = all(n == 1 or at is not None for n, at in zip(operand.shape, found, strict=True))
    return tuple(found) if whole else None


class _Placing:
    """Walks from a value down to the arrays and finds the reductions to be cut off."""

    def __init__(self, space: tuple[int, ...], axes: tuple[int, ...], only: Any = None) -> None:
        self.space, self.axes, self.only = space, axes, only
        self.cut: dict[int, Node] = {}
        self._depth: dict[tuple[int, Mapping], int] = {}

    def visit(self, node: Node, mapping: Mapping) -> int:
        """The number of reductions on the way down, each waiting for the next."""
        key = (node.number, mapping)
        if key not in self._depth:
            self._depth[key] = self._visit(node, mapping)
        return self._depth[key]

    def _visit(self, node: Node, mapping: Mapping) -> int:
        if node.op != "reduce":
            down = (self.visit(a, operand_mapping(node, mapping, a)) for a in node.args)
            return max(down, default=0)
        inner = reduced_mapping(node, mapping, self.space, self.axes) if self.axes else None
        if inner is None or (self.only is not None and node.number not in self.only):
            self.cut[node.number] = node
            return 0
        return 1 + self.visit(node.args[0], inner)


def _top_reductions(node: Node) -> list[Node]:
    found: dict[int, Node] = {}
    seen: set[int] = set()
    stack = [node]
    while stack:
        n = stack.pop()
        if n.number in seen:
            continue
        seen.add(n.number)
        if n.op == "reduce":
            found[n.number] = n
        else:
            stack.extend(n.args)
    return list(found.values())


def _identity(node: Node) -> Mapping:
    return tuple(None if n == 1 else i for i, n in enumerate(node.shape))


def _candidates(node: Node, seed: Node) -> list[Mapping]:
    space, axes, out = seed.args[0].shape, seed.info[1], seed.info[2]
    found: list[Mapping] = []
    if node is seed:
        return [tuple(k if k is not None and space[k] != 1 else None for k in out)]
    if len(node.shape) == len(space) and all(
        n in (1, m) for n, m in zip(node.shape, space, strict=True)
    ):
        found.append(_identity(node))
    kept = [a for a in range(len(space)) if a not in axes]
    if len(node.shape) == len(kept) and all(
        n in (1, space[a]) for n, a in zip(node.shape, kept, strict=True)
    ):
        found.append(tuple(None if n == 1 else a for n, a in zip(node.shape, kept, strict=True)))
    if len(node.shape) == len(out):
        along = zip(node.shape, out, strict=True)
        if all(n == 1 if k is None else n in (1, space[k]) for n, k in along):
            found.append(tuple(None if n == 1 else k
                               for n, k in zip(node.shape, out, strict=True)))  # fmt: skip
    return found


Choice = tuple[tuple[int, ...], tuple[int, ...], Mapping, dict[int, Node]]


def _choose(node: Node) -> Choice:
    tops = _top_reductions(node)
    if tops:
        seed = max(tops, key=lambda n: math.prod(n.args[0].shape))
        space, axes = seed.args[0].shape, seed.info[1]
        rows = math.prod(n for a, n in enumerate(space) if a not in axes)
        long = rows < FEW_ROWS and math.prod(space[a] for a in axes) > LONG_ROW
        for mapping in _candidates(node, seed):
            placing = _Placing(space, axes)
            depth = placing.visit(node, mapping)
            if seed.number in placing.cut:
                continue
            if not long or (depth == 1 and not any(a in axes for a in mapping)):
                return space, axes, mapping, placing.cut
            if node is seed:
                placing = _Placing(space, axes, {node.number})
                placing.visit(node, mapping)
                return space, axes, mapping, placing.cut
    placing = _Placing(node.shape, ())
    placing.visit(node, _identity(node))
    return node.shape, (), _identity(node), placing.cut


class Scheduler:
    """Makes the steps, each after the sources of its reads."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[Step] = []
        self._places: dict[int, Node] = {}

    def run(self, roots: list[Node]) -> list[Step]:
        self._batch([(node, ("out", i)) for i, node in enumerate(roots)])
        return self.steps

    def _batch(self, wanted: list[tuple[Node, tuple[str, int]]]) -> None:
        groups: dict[Any, list[Stored]] = {}
        cut: dict[int, Node] = {}
        plain = []
        for node, slot in wanted:
            space, axes, mapping, cuts = _choose(node)
            cut |= cuts
            if axes:
                groups.setdefault((space, axes), []).append(Stored(node, mapping, slot))
            else:
                plain.append(Stored(node, mapping, slot))
        for stored in plain:
            host = next((g for g in groups if g[0] == stored.node.shape and g[1]), None)
            if host is not None and not _is_long(*host) and not _top_reductions(stored.node):
                groups[host].append(stored)
            else:
                groups.setdefault((stored.node.shape, ()), []).append(stored)
        fresh = {number: node for number, node in cut.items() if number not in self._places}
        if fresh:
            self._batch([(node, ("temp", number)) for number, node in fresh.items()])
            for number, node in fresh.items():
                dtype = types.compute_dtype(node.dtype)
                place = self.graph.custom(node, node.shape, dtype, ("temp", number))
                self._places[number] = place
        places = {number: self._places[number] for number in cut}
        for (space, axes), stores in groups.items():
            self.steps.append(Step(space, axes, stores, places))


def _is_long(space: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    rows = math.prod(n for a, n in enumerate(space) if a not in axes)
    return rows < FEW_ROWS and math.prod(space[a] for a in axes) > LONG_ROW
