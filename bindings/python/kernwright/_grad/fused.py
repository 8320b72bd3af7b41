"""Gradients of fused functions: the traced expression is differentiated, and that is fused, too."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright._fuse.fused import Fused, record_calls
from kernwright._fuse.graph import Graph, Node
from kernwright._fuse.namespace import NAMESPACE
from kernwright._fuse.plan import call_with
from kernwright._fuse.trace import Statements, recording
from kernwright._fuse.values import Value, apply
from kernwright._grad.backward import repeated_axes
from kernwright._grad.recording import is_traced, note_joint, unrecorded
from kernwright._grad.table import elementwise
from kernwright._grad.transforms import vjp
from kernwright.errors import InvalidArgument

# Fused function -> {the names with gradients: the fused function of those gradients, or None}.
_made: weakref.WeakKeyDictionary[Fused, dict[Any, Fused | None]] = weakref.WeakKeyDictionary()


def call(fused: Fused, values: dict[str, Any]) -> Any:
    """What a fused function returns inside of a recording."""
    with unrecorded():
        result = fused._plan(values).run(values)
    wanted = tuple(name for name, value in values.items() if is_traced(value))
    if not wanted:
        return result
    outputs = list(result) if isinstance(result, tuple) else [result]

    def pullback(*cotangents: Any) -> Sequence[Any]:
        given = [
            kw.zeros(output.shape, dtype=output.dtype, device=output.device) if g is None else g
            for g, output in zip(cotangents, outputs, strict=True)
        ]
        return _gradients(fused, values, wanted, given)

    note_joint(fused.name, [values[name] for name in wanted], outputs, pullback)
    return result


def _gradients(
    fused: Fused, values: dict[str, Any], wanted: tuple[str, ...], given: list[Array]
) -> Sequence[Any]:
    stem = "cotangent_"
    while any(name.startswith(stem) for name in values):
        stem += "_"
    named = {f"{stem}{i}": g for i, g in enumerate(given)}
    known = _made.setdefault(fused, {})
    if wanted not in known:
        function = _Gradient(fused, wanted, list(named))
        known[wanted] = Fused(function, [*named, *values], f"{fused.name}_gradient")
    made = known[wanted]
    if made is not None:
        try:
            found = made(**named, **values)
            return found if isinstance(found, tuple) else (found,)
        except InvalidArgument:
            known[wanted] = None  # what cannot be fused is computed operation by operation
    return _step_by_step(fused, values, wanted, given)


def _step_by_step(
    fused: Fused, values: dict[str, Any], wanted: tuple[str, ...], given: list[Array]
) -> Sequence[Any]:
    """By the recording of the function's own operations."""

    def plain(*arrays: Array) -> Any:
        everything = {**values, **dict(zip(wanted, arrays, strict=True))}
        if isinstance(fused.function, (Statements, _Gradient)):
            return fused.function.computed(everything)
        return call_with(fused.function, everything)

    result, back = vjp(plain, *(values[name] for name in wanted))
    return back(tuple(given) if isinstance(result, tuple) else given[0])


class _Gradient:
    """Called while a fused function is traced: from the values of the cotangents and arguments to
    those of the gradients."""

    def __init__(self, fused: Fused, wanted: tuple[str, ...], cotangents: list[str]) -> None:
        self.function, self.wanted = recording(fused.function), wanted
        self.fused, self.cotangents = fused, cotangents

    def computed(self, values: dict[str, Any]) -> Any:
        """The same of arrays, operation by operation."""
        given = [values.pop(name) for name in self.cotangents]
        made = tuple(_step_by_step(self.fused, values, self.wanted, given))
        return made if len(made) > 1 else made[0]

    def __call__(self, **values: Any) -> Any:
        given = [values.pop(name) for name in self.cotangents]
        returned = call_with(self.function, values)
        results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        graph = given[0]._graph
        sweep = _Sweep(graph)
        for result, cotangent in zip(results, given, strict=True):
            if isinstance(result, Value):
                sweep.arrive(result._node, cotangent)
        sweep.run()
        made = tuple(
            sweep.total(values[name]._node, Value(graph, values[name]._node))
            for name in self.wanted
        )
        return made if len(made) > 1 else made[0]


class _Sweep:
    """Cotangents of the nodes of an expression, from its results to its leaves."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.sums: dict[int, Any] = {}
        self.nodes: dict[int, Node] = {}

    def arrive(self, node: Node, part: Any) -> None:
        if node.op in ("const", "scalar") or node.held.kind in "biu":
            return
        part = _as_operand(part, node)
        before = self.sums.get(node.number)
        self.sums[node.number] = part if before is None else before + part
        self.nodes[node.number] = node

    def run(self) -> None:
        waiting = set(self.nodes)
        while waiting:
            number = max(waiting)  # operands have smaller numbers
            waiting.remove(number)
            node = self.nodes[number]
            before = set(self.nodes)
            self._pull(node, self.sums[number])
            waiting |= set(self.nodes) - before

    def _pull(self, node: Node, g: Any) -> None:
        if node.op == "apply":
            name = node.info[0]
            if name in elementwise.CONSTANT:
                return
            y, operands = Value(self.graph, node), [self._operand(each) for each in node.args]
            for operand, pull in _rule(name)(y, *operands):
                if isinstance(operand, Value):
                    self.arrive(operand._node, pull(g))
        elif node.op == "cast":
            self.arrive(node.args[0], g)
        elif node.op == "reduce":
            self._reduce(node, g)
        elif node.op != "leaf":
            raise InvalidArgument(f"{node.op} has no fused gradient")

    def _operand(self, node: Node) -> Any:
        return node.info if node.op == "const" else Value(self.graph, node)

    def _reduce(self, node: Node, g: Any) -> None:
        kind, axes, out = node.info
        (operand,) = node.args
        if kind in ("any", "all", "argmax", "argmin"):
            return
        if [k for k in out if k is not None] != [
            k for k in range(len(operand.shape)) if k not in axes
        ]:
            raise InvalidArgument("a reduction that moves axes has no fused gradient")
        x, y = Value(self.graph, operand), Value(self.graph, node)
        kept = tuple(1 if k in axes else n for k, n in enumerate(operand.shape))
        wide, result = g.reshape(kept), y.reshape(kept)
        if kind == "sum":
            part = wide
        elif kind == "mean":
            part = wide / float(max(x.size // max(y.size, 1), 1))
        elif kind in ("max", "min"):
            chosen = apply("equal", x, result)
            count = NAMESPACE.sum(chosen.astype(g.dtype), axis=tuple(axes), keepdims=True)
            part = apply("where", chosen, wide / count, 0)
        else:
            raise InvalidArgument(f"{kind} has no fused gradient")
        # A sum with zeros of the operand's shape: reductions have no views of a larger shape.
        self.arrive(
            operand, part if part.shape == operand.shape else part + NAMESPACE.zeros_like(x)
        )

    def total(self, leaf: Node, x: Value) -> Any:
        """The gradient of an argument, which is a leaf; its views are other leaves."""
        for node in self.nodes.values():
            if node.op == "leaf" and node is not leaf and node.info[0] == leaf.info[0]:
                raise InvalidArgument("a view of an argument has no fused gradient")
        found = self.sums.get(leaf.number)
        return NAMESPACE.zeros_like(x) if found is None else found


def _as_operand(part: Any, node: Node) -> Any:
    if part.shape != node.shape:
        axes = repeated_axes(part.shape, node.shape)
        if axes:
            part = NAMESPACE.sum(part, axis=axes, keepdims=True)
        part = part.reshape(node.shape)
    return part if part.dtype == node.held else part.astype(node.held)


@functools.cache
def _rule(name: str) -> Any:
    """The rule of the table, with the names of this package bound to what is traced."""
    if name not in elementwise.RULES:
        raise InvalidArgument(f"{name} has no fused gradient")
    return recording(elementwise.RULES[name])


record_calls(call)
