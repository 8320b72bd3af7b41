"""Views of values: basic indexing, transposition and broadcasting, carried down to the arrays."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from kernwright._fuse.graph import Graph, Node
from kernwright.errors import InvalidArgument

# A view: for each of its dimensions (axis, start, step, extent), or None for a new one of extent 1.
# Axes that it does not name have the index that `dropped` says.
Dims = list[tuple[int, int, int, int] | None]


def index(graph: Graph, node: Node, key: Any) -> Node:
    """node[key] for integers, slices, None and an Ellipsis."""
    keys = list(key) if isinstance(key, tuple) else [key]
    named = sum(k is not None and k is not Ellipsis for k in keys)
    if named > len(node.shape):
        raise InvalidArgument(f"{named} indices for a value of shape {node.shape}")
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (len(node.shape) - named)
    dims: Dims = []
    dropped: dict[int, int] = {}
    axis = 0
    for k in keys:
        if k is None:
            dims.append(None)
            continue
        if isinstance(k, slice):
            start, stop, step = k.indices(node.shape[axis])
            dims.append((axis, start, step, len(range(start, stop, step))))
        else:
            dropped[axis] = _position(k, node.shape, axis)
        axis += 1
    return view(graph, node, dims, dropped)


def _position(k: Any, shape: tuple[int, ...], axis: int) -> int:
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
        raise InvalidArgument(
            f"a fused function indexes with integers, slices, None and ... alone, not with a "
            f"{type(k).__name__}: use where(), or index outside"
        )
    i, extent = operator.index(k), shape[axis]
    if not -extent <= i < extent:
        raise InvalidArgument(f"index {i} is out of range for axis {axis} of shape {shape}")
    return i % extent


def transpose(graph: Graph, node: Node, axes: Any = None) -> Node:
    order = list(range(len(node.shape)))[::-1] if axes is None else [int(a) for a in axes]
    order = [a + len(node.shape) if a < 0 else a for a in order]
    if sorted(order) != list(range(len(node.shape))):
        raise InvalidArgument(f"axes {axes} do not permute a value of shape {node.shape}")
    return view(graph, node, [(a, 0, 1, node.shape[a]) for a in order], {})


def squeeze(graph: Graph, node: Node, axes: tuple[int, ...]) -> Node:
    wide = [a for a in axes if node.shape[a] != 1]
    if wide:
        raise InvalidArgument(f"squeeze of axis {wide[0]} of shape {node.shape}: it is not 1")
    kept = [a for a in range(len(node.shape)) if a not in axes]
    return view(graph, node, [(a, 0, 1, node.shape[a]) for a in kept], dict.fromkeys(axes, 0))


def reshape(graph: Graph, node: Node, shape: tuple[int, ...]) -> Node:
    """Where only dimensions of extent 1 come or go, and of arrays without gaps."""
    count = math.prod(node.shape)
    if shape.count(-1) == 1:
        rest = -math.prod(shape)
        shape = tuple((count // rest if rest else 0) if n == -1 else n for n in shape)
    if math.prod(shape) != count:
        raise InvalidArgument(f"{node.shape} cannot be reshaped to {shape}")
    if node.shape == shape:
        return node
    old = [(a, 0, 1, n) for a, n in enumerate(node.shape) if n != 1]
    if [n for n in shape if n != 1] == [d[3] for d in old]:
        left = iter(old)
        dims: Dims = [None if n == 1 else next(left) for n in shape]
        return view(graph, node, dims, {a: 0 for a, n in enumerate(node.shape) if n == 1})
    if node.op == "leaf":
        array, offset, strides = node.info
        if _is_contiguous(node.shape, strides):
            return graph.leaf(array, offset, shape, _contiguous(shape), node.dtype)
    if node.op in ("apply", "cast") and all(a.shape in ((), node.shape) for a in node.args):
        args = [a if a.shape == () else reshape(graph, a, shape) for a in node.args]
        return _again(graph, node, args)
    raise InvalidArgument(
        f"a value of shape {node.shape} that is broadcast, reduced or has gaps cannot be reshaped "
        f"to {shape} in a fused function: reshape its inputs"
    )


def broadcast_to(graph: Graph, node: Node, shape: tuple[int, ...]) -> Node:
    if np.broadcast_shapes(node.shape, shape) != tuple(shape):
        raise InvalidArgument(f"Incompatible dimensions: {node.shape} to {shape}")
    if node.op == "leaf":
        array, offset, strides = node.info
        lead = (0,) * (len(shape) - len(strides))
        return graph.leaf(array, offset, shape, (*lead, *strides), node.dtype)
    if node.shape == tuple(shape):
        return node
    if node.op in ("apply", "cast"):
        return _again(graph, node, [broadcast_to(graph, a, shape) for a in node.args[:1]]
                      + list(node.args[1:]))  # fmt: skip
    raise InvalidArgument(f"a {node.op} of shape {node.shape} cannot be broadcast to {shape} here")


def view(graph: Graph, node: Node, dims: Dims, dropped: dict[int, int]) -> Node:
    """The view of `node`, as a value of views of the arrays."""
    if node.op == "leaf":
        return _view_leaf(graph, node, dims, dropped)
    if node.op == "reduce":
        return _view_reduction(graph, node, dims, dropped)
    if node.op in ("scalar", "const"):
        result = node
    else:
        args = [_view_operand(graph, a, node, dims, dropped) for a in node.args]
        result = _again(graph, node, args)
    if len(result.shape) != len(dims):
        raise InvalidArgument("a value that numbers alone make gets no axes in a fused function")
    return result


def _is_number(node: Node) -> bool:
    """Whether no array is below, so that the value broadcasts to every shape."""
    if node.op in ("apply", "cast"):
        return all(_is_number(a) for a in node.args)
    return node.op in ("scalar", "const")


def _again(graph: Graph, node: Node, args: list[Node]) -> Node:
    if node.op == "cast":
        return graph.cast(args[0], node.dtype)
    return graph.apply(node.info[0], *args)


def _view_leaf(graph: Graph, node: Node, dims: Dims, dropped: dict[int, int]) -> Node:
    array, offset, strides = node.info
    offset += sum(strides[a] * i for a, i in dropped.items())
    offset += sum(strides[d[0]] * d[1] for d in dims if d is not None and d[3] > 0)
    shape = [1 if d is None else d[3] for d in dims]
    moved = [0 if d is None else strides[d[0]] * d[2] for d in dims]
    return graph.leaf(array, offset, shape, moved, node.dtype)


def _view_operand(
    graph: Graph, operand: Node, node: Node, dims: Dims, dropped: dict[int, int]
) -> Node:
    """The operand's part of a view of `node`, to which it is broadcast."""
    if operand.shape == () and (node.shape or _is_number(operand)):
        return operand
    lead = len(node.shape) - len(operand.shape)
    own: Dims = []
    for d in dims:
        if d is None or d[0] < lead:
            if own or d is None:
                own.append(None)
            continue
        wide = operand.shape[d[0] - lead] != 1 or d[3] == 0
        own.append((d[0] - lead, d[1], d[2], d[3]) if wide else (d[0] - lead, 0, 1, 1))
    drops = {a - lead: i if operand.shape[a - lead] != 1 else 0
             for a, i in dropped.items() if a >= lead}  # fmt: skip
    return view(graph, operand, own, drops)


def _view_reduction(graph: Graph, node: Node, dims: Dims, dropped: dict[int, int]) -> Node:
    kind, axes, out = node.info
    operand = node.args[0]
    taken = {out[d[0]]: d for d in dims if d is not None and out[d[0]] is not None}
    held = {out[a]: i for a, i in dropped.items() if out[a] is not None}
    inner: Dims = []
    for axis, extent in enumerate(operand.shape):
        if axis in taken:
            inner.append((axis, *taken[axis][1:]))
        elif axis in held:
            inner.append((axis, held[axis], 1, 1))
        else:
            inner.append((axis, 0, 1, extent))
    kept = [None if d is None else out[d[0]] for d in dims]
    return graph.reduce(kind, view(graph, operand, inner, {}), axes, kept)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    pairs = zip(shape, strides, _contiguous(shape), strict=True)
    return all(n == 1 or own == wanted for n, own, wanted in pairs)
