"""What stands for arrays and numbers while a function is traced: operators that record."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kernwright._fuse import views
from kernwright._fuse.graph import Graph, Node
from kernwright._fuse.operations import ALIASES, OPERATIONS, REDUCTIONS
from kernwright.errors import AxisError, InvalidArgument


class Value:
    """A value of a fused function: what NumPy's arrays do elementwise, reductions, basic views."""

    __slots__ = ("_graph", "_node")
    _namespace: ClassVar[Any]  # namespace.py sets it: the functions of fused values
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1000

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph, self._node = graph, node

    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def ndim(self) -> int:
        return len(self._node.shape)

    @property
    def size(self) -> int:
        return math.prod(self._node.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._node.held

    @property
    def T(self) -> Value:
        return self._made(views.transpose(self._graph, self._node))

    def _made(self, node: Node) -> Value:
        return Value(self._graph, node)

    def astype(self, dtype: Any, *, copy: bool = True) -> Value:
        return self._made(self._graph.cast(self._node, dtype))

    def transpose(self, *axes: Any) -> Value:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self._made(views.transpose(self._graph, self._node, order))

    def reshape(self, *shape: Any) -> Value:
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        extents = tuple(operator.index(n) for n in wanted)
        return self._made(views.reshape(self._graph, self._node, extents))

    def ravel(self) -> Value:
        return self.reshape(-1)

    flatten = ravel

    def copy(self) -> Value:
        return self

    def clip(self, min: Any = None, max: Any = None) -> Value:
        result = self if min is None else apply("maximum", self, min)
        return result if max is None else apply("minimum", result, max)

    def round(self) -> Value:
        return apply("round", self)

    def var(self, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Value:
        """In two passes over the values on chip: the squares of what the mean leaves."""
        mean = reduce("mean", self, axis, True)
        squares = reduce("sum", apply("square", self - mean), axis, keepdims)
        count = self.size // max(mean.size, 1)
        return squares / float(max(count - correction, 0))

    def std(self, axis: Any = None, *, correction: float = 0, keepdims: bool = False) -> Value:
        return apply("sqrt", self.var(axis, correction=correction, keepdims=keepdims))

    def __getitem__(self, key: Any) -> Value:
        return self._made(views.index(self._graph, self._node, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise InvalidArgument("a fused function cannot assign to elements: use where(), return it")

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return self._namespace

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        name = ALIASES.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or name not in OPERATIONS or options:
            raise InvalidArgument(f"np.{ufunc.__name__}{_shown(method, options)} cannot be fused")
        return apply(name, *inputs)

    def __array_function__(self, function: Any, kinds: Any, args: Any, options: Any) -> Any:
        return getattr(self._namespace, ALIASES.get(function.__name__, function.__name__))(
            *args, **options
        )

    def _branch(self, *_: Any) -> Any:
        raise InvalidArgument(
            "a fused function cannot branch on values or read them: they are not there while it "
            "is traced; use where(condition, a, b)"
        )

    if TYPE_CHECKING:  # made below, from a table

        def __neg__(self) -> Value: ...
        def __add__(self, other: Any) -> Value: ...
        def __radd__(self, other: Any) -> Value: ...
        def __sub__(self, other: Any) -> Value: ...
        def __rsub__(self, other: Any) -> Value: ...
        def __mul__(self, other: Any) -> Value: ...
        def __rmul__(self, other: Any) -> Value: ...
        def __truediv__(self, other: Any) -> Value: ...
        def __rtruediv__(self, other: Any) -> Value: ...
        def __pow__(self, other: Any) -> Value: ...

    def _product(self, other: Any) -> Any:
        raise InvalidArgument("a matrix product cannot be fused: multiply outside, fuse the rest")

    __matmul__ = __rmatmul__ = _product
    __bool__ = __int__ = __float__ = __complex__ = __index__ = _branch
    __iter__ = __len__ = __contains__ = item = numpy = tolist = __array__ = _branch

    def __repr__(self) -> str:
        return f"<fused value of shape {self.shape}, dtype {self.dtype}>"


def _shown(method: str, options: Any) -> str:
    how = "" if method == "__call__" else f".{method}"
    return how + (f" with {', '.join(options)}=" if options else "")


def graph_of(values: Iterable[Any]) -> Graph:
    for value in values:
        if isinstance(value, Value):
            return value._graph
    raise InvalidArgument("a fused function's operations take at least one of its arguments")


def node_of(graph: Graph, value: Any) -> Node:
    """The node of an operand: a value, a Python number or a NumPy scalar."""
    if isinstance(value, Value):
        return value._node
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return graph.constant(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return graph.constant(value[()])
    raise InvalidArgument(
        f"a fused function computes with its arguments and numbers, not with something else "
        f"({type(value).__name__}): make it an argument"
    )


def apply(name: str, *args: Any) -> Value:
    """The operation of that name on values and numbers."""
    graph = graph_of(args)
    return Value(graph, graph.apply(name, *(node_of(graph, a) for a in args)))


def reduce(kind: str, x: Any, axis: Any = None, keepdims: bool = False) -> Value:
    """A reduction of `x` over an axis, several, or all."""
    graph = graph_of((x,))
    node, ndim = x._node, x.ndim
    if isinstance(axis, tuple):
        given = [operator.index(a) for a in axis]
    else:
        given = list(range(ndim)) if axis is None else [operator.index(axis)]
    axes = sorted({a + ndim if a < 0 else a for a in given})
    if len(axes) != len(given) or any(not 0 <= a < ndim for a in axes):
        raise AxisError(f"axis {axis} is out of range for a value of shape {x.shape}")
    if kind.startswith("arg") and len(axes) not in (1, ndim):
        raise InvalidArgument(f"{kind} takes one axis or none, got {axis}")
    if not axes and kind in ("any", "all"):
        return Value(graph, graph.cast(node, np.bool_))
    if not axes and not kind.startswith("arg") and ndim:
        return x if kind in ("max", "min") else Value(graph, graph.cast(node, _dtype(kind, node)))
    out = [None if a in axes else a for a in range(ndim) if keepdims or a not in axes]
    return Value(graph, graph.reduce(kind, node, tuple(axes), out))


def _dtype(kind: str, node: Node) -> Any:
    return np.result_type(getattr(np, kind)(np.empty(1, node.held)))


def _operator(name: str) -> Any:
    def method(self: Value, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        return apply(name, self, other)

    return method


def _reflected(name: str) -> Any:
    def method(self: Value, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        return apply(name, other, self)

    return method


def _in_place(name: str) -> Any:
    def method(self: Value, other: Any) -> Value:
        if self._node.op == "leaf":
            raise InvalidArgument(
                f"a fused function does not change its arguments ({name} in place): write "
                "x = x + 1 and return what it is"
            )
        return apply(name, self, other)

    return method


def _operand(other: Any) -> bool:
    return isinstance(other, (Value, bool, int, float, complex, np.generic, np.ndarray)) or hasattr(
        other, "__dlpack__"
    )


def _reduction(kind: str) -> Any:
    def method(self: Value, axis: Any = None, *, keepdims: bool = False) -> Value:
        return reduce(kind, self, axis, keepdims)

    return method


def _unary(name: str) -> Any:
    return lambda self: apply(name, self)


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
for _short, _name in _BINARY.items():
    setattr(Value, f"__{_short}__", _operator(_name))
    setattr(Value, f"__r{_short}__", _reflected(_name))
    setattr(Value, f"__i{_short}__", _in_place(_name))
for _short, _name in (("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"),
                      ("gt", "greater"), ("ge", "greater_equal")):  # fmt: skip
    setattr(Value, f"__{_short}__", _operator(_name))
for _short, _name in (("neg", "negative"), ("pos", "positive"), ("abs", "abs"),
                      ("invert", "bitwise_invert")):  # fmt: skip
    setattr(Value, f"__{_short}__", _unary(_name))
for _name in REDUCTIONS:
    setattr(Value, _name, _reduction(_name))
