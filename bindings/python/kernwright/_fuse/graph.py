"""The expression graph: nodes with shape and dtype, each made once."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._fuse import types
from kernwright._fuse.operations import OPERATIONS
from kernwright.errors import InvalidArgument


class Node:
    """One value. `op` is "leaf", "scalar", "const", "apply", "cast" or "reduce"; those whose text
    a user wrote have "call", "raw" (an array as a pointer) and "place" (an element's number).

    `dtype` is None for a Python number, whose kind `weak` then has. `info`: of a leaf (array,
    offset, strides) in elements; of a scalar its index; of a constant the number; of an
    application (operation, dtype of its arithmetic); of a reduction (kind, axes of the operand,
    for each dimension the operand's axis that it is, or None).
    """

    __slots__ = ("args", "dtype", "info", "number", "op", "shape", "weak")

    def __init__(
        self, op: str, args: tuple[Node, ...], shape: tuple[int, ...], dtype: Any,
        weak: str | None, info: Any, number: int,
    ) -> None:  # fmt: skip
        self.op, self.args, self.shape, self.dtype = op, args, shape, dtype
        self.weak, self.info, self.number = weak, info, number

    @property
    def held(self) -> np.dtype[Any]:
        """The dtype; a Python number has the one of its kind."""
        return types.WEAK[self.weak] if self.weak else self.dtype


class Graph:
    """Makes nodes; asked twice for the same value it gives the same node."""

    def __init__(self) -> None:
        self._known: dict[Any, Node] = {}

    def _node(
        self, op: str, args: tuple[Node, ...], shape: tuple[int, ...], dtype: Any, weak: str | None,
        info: Any,
    ) -> Node:  # fmt: skip
        key = (op, tuple(a.number for a in args), shape, str(dtype), weak, repr(info))
        node = self._known.get(key)
        if node is None:
            node = Node(op, args, shape, dtype, weak, info, len(self._known))
            self._known[key] = node
        return node

    def nodes(self) -> list[Node]:
        return list(self._known.values())

    def narrowed_scalars(self) -> list[tuple[int, np.dtype[Any]]]:
        """Python integers of the call, of another integer dtype in an operation."""
        found = set()
        for node in self._known.values():
            if node.op == "apply":
                loop = np.dtype(types.as_dtype(node.info[1]))
                found |= {(a.info, loop) for a in node.args
                          if a.op == "scalar" and a.weak == "i" and loop.kind in "iu"}  # fmt: skip
        return sorted(found, key=str)

    def leaf(self, array: Any, offset: int, shape: Any, strides: Any, dtype: Any) -> Node:
        """A view of an array argument; `array` is its index, offset and strides are of elements."""
        pairs = zip(strides, shape, strict=True)
        strides = tuple(s if n > 1 else 1 - n for s, n in pairs)
        return self._node("leaf", (), tuple(shape), dtype, None, (array, offset, strides))

    def scalar(self, index: int, dtype: Any, weak: str | None) -> Node:
        """A number with a new value in each call."""
        return self._node("scalar", (), (), dtype, weak, index)

    def constant(self, value: Any) -> Node:
        weak = types.weak_kind(value)
        if weak is not None:
            return self._node("const", (), (), None, weak, value)
        if isinstance(value, complex):
            raise InvalidArgument(f"complex numbers cannot be fused, got {value!r}")
        return self._node("const", (), (), types.as_dtype(value.dtype), None, value.item())

    def apply(self, name: str, *args: Node) -> Node:
        """The named operation, with NumPy's broadcasting and promotion."""
        operation = OPERATIONS[name]
        shape = broadcast(name, [a.shape for a in args])
        if name == "pow" and (short := self._short_power(*args)) is not None:
            return short
        operands = [_sample(a) for a in args]
        if name == "where":
            operands[0] = np.dtype("bool")
        dtype: Any = types.resolve(name, operation.ufunc, operands)
        weak = None
        if all(a.weak for a in args[1 if name == "where" else 0 :]) and args[-1].weak:
            weak = {"b": "b", "f": "f"}.get(types.kind_of(dtype), "i")
            dtype = None
        loop = _loop_dtype(operation.loop, operands, types.WEAK[weak] if weak else dtype)
        if name == "nextafter" and types.compute_dtype(loop) != loop:
            raise InvalidArgument(f"nextafter of {loop} cannot be fused: it computes in float32")
        if types.kind_of(loop) not in operation.code:
            shown = ", ".join(str(a.held) for a in args)
            raise InvalidArgument(f"{name} is not defined for ({shown})")
        return self._node("apply", args, shape, dtype, weak, (name, str(loop)))

    def _short_power(self, base: Node, exponent: Node) -> Node | None:
        """Powers as products or roots: NumPy computes the commonest of them so."""
        if exponent.op != "const" or types.kind_of(base.held) != "f" or exponent.info == 0:
            return None
        short = {2: "square", 0.5: "sqrt", -1: "reciprocal", 1: "positive"}.get(exponent.info)
        if short is not None and exponent.weak:
            return self.apply(short, base)
        if exponent.weak and exponent.info in (3, 4):
            square = self.apply("square", base)
            return self.apply("multiply", square, base if exponent.info == 3 else square)
        return None

    def cast(self, node: Node, dtype: Any) -> Node:
        """astype(): the value rounded to `dtype`."""
        dtype = types.as_dtype(dtype)
        if node.dtype == dtype:
            return node
        return self._node("cast", (node,), node.shape, dtype, None, None)

    def reduce(self, kind: str, node: Node, axes: tuple[int, ...], out: Any) -> Node:
        """A reduction with the operand's axes `out` as dimensions, None for one of extent 1."""
        shape = tuple(1 if k is None else node.shape[k] for k in out)
        count = int(np.prod([node.shape[k] for k in axes]))
        if count == 0 and kind in ("max", "min", "argmax", "argmin"):
            raise InvalidArgument(
                f"{kind}() of no elements has no value: shape {node.shape}, axis {axes}"
            )
        dtype = _reduced_dtype(kind, node)
        return self._node("reduce", (node,), shape, dtype, None, (kind, axes, tuple(out)))

    def call(self, function: str, args: tuple[Node, ...], shape: Any, dtype: Any) -> Node:
        """A function of the kernel's own text, of values of the types of their arithmetic."""
        return self._node("call", args, tuple(shape), dtype, None, function)

    def raw(self, array: int, dtype: Any) -> Node:
        """A pointer to an array without gaps."""
        return self._node("raw", (), (), dtype, None, (array, 0, ()))

    def place(self, shape: Any) -> Node:
        """The number of an element among those of its row."""
        return self._node("place", (), tuple(shape), np.dtype("int64"), None, None)

    def combine(self, node: Node, axes: Any, out: Any, dtype: Any, text: tuple[str, Any]) -> Node:
        """A reduction by a function object of the kernel's own text; `text` is it, and what
        changes nothing or None."""
        shape = tuple(1 if k is None else node.shape[k] for k in out)
        return self._node("reduce", (node,), shape, dtype, None, (text, tuple(axes), tuple(out)))

    def custom(self, node: Node, shape: tuple[int, ...], dtype: Any, info: Any) -> Node:
        """A stored intermediate in the place of the reduction `node`."""
        strides, step = [], 1
        for extent in reversed(shape):
            strides.append(step)
            step *= extent
        return self.leaf(info, 0, shape, tuple(reversed(strides)), dtype)


def broadcast(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(str(s) for s in shapes)
        raise InvalidArgument(f"Incompatible dimensions: {name} of shapes {shown}") from None


def _sample(node: Node) -> Any:
    """The stand-in for a node when NumPy is asked for a dtype."""
    if not node.weak:
        return node.dtype
    if node.op == "const":
        return node.info
    return {"b": True, "i": 1, "f": 1.0}[node.weak]


def _loop_dtype(rule: str, operands: list[Any], result: Any) -> Any:
    if rule == "bool":
        return np.dtype("bool")
    if rule == "result":
        return np.dtype(result)
    if rule == "self":
        own = operands[0]
        return own if isinstance(own, np.dtype) else np.dtype(type(own))
    if not any(isinstance(o, np.dtype) for o in operands):
        return np.result_type(*(np.dtype(type(o)) for o in operands))
    return types.resolve("a comparison", np.maximum, operands)


def _reduced_dtype(kind: str, node: Node) -> np.dtype[Any]:
    dtype = node.held
    if kind in ("any", "all"):
        return np.dtype("bool")
    if kind in ("argmax", "argmin"):
        return np.dtype("int64")
    if kind in ("max", "min") or types.kind_of(dtype) == "f":
        return dtype
    if kind == "mean":
        return np.dtype("float64")
    return np.dtype("uint64" if types.kind_of(dtype) == "u" else "int64")
