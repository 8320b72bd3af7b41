"""kw.reduction: reductions of a user's own making, from expression strings, CuPy's and PyCUDA's
signatures."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np

from kernwright._core import Array
from kernwright._fuse import types
from kernwright._fuse.arguments import is_aligned, signature_of
from kernwright._fuse.elementwise import ElementwiseKernel
from kernwright._fuse.fused import Fused, _identifier
from kernwright._fuse.graph import Graph, Node, broadcast
from kernwright._fuse.parameters import (
    Parameter,
    decide_types,
    parse_c_parameters,
    parse_parameters,
    type_names,
    type_of,
)
from kernwright._fuse.plan import FusionPlan, _leaf
from kernwright._fuse.pycuda import c_arguments
from kernwright._fuse.trace import Statements
from kernwright._fuse.values import Value
from kernwright.errors import ArgumentError, AxisError, InvalidArgument

_KINDS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")


def reduction(*args: Any, **kwargs: Any) -> Any:
    """A kernel that reduces along axes; three forms, told apart by the arguments.

    * ``reduction("sum(x * y)", name=None)``: one of sum, prod, max, min, mean, any, all, argmax and
    argmin of an expression of kw.fuse(), or an expression of several: ``reduction("sqrt(sum(x *
    x))")``. Call it with the names of its inputs, and ``axis=`` (None: all) and ``keepdims=`` for
    all its reductions: ``f(x=x, axis=-1)``.
    * ``reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm", reduce_type=None,
      preamble="")``: CuPy's ReductionKernel; called with the inputs, ``axis=``, ``keepdims=``,
      ``out=``. Without an identity ("" or None) no elements are refused.
    * ``reduction(dtype_out, neutral, "a + b", map_expr="x[i] * y[i]", arguments="const float *x,
      const float *y", name=, preamble=)``: PyCUDA's ReductionKernel, over all elements.

    The order of combination is fixed by the shape: the same arguments give the same result.

    >>> dot = kw.reduction("sum(x * y)")
    >>> dot(x=kw.asarray([1, 2]), y=kw.asarray([10, 1])).item()
    12
    """
    own = {"reduce_expr", "map_expr", "identity", "neutral", "arguments", "in_params", "dtype_out"}
    if len(args) == 1 and isinstance(args[0], str) and not kwargs.keys() & own:
        return _Expression(args[0], **kwargs)
    if "in_params" in kwargs or (len(args) > 1 and isinstance(args[0], str) and
                                 not kwargs.keys() & {"arguments", "neutral"}
                                 and not _is_dtype(args[0])):  # fmt: skip
        return ReductionKernel(*args, **kwargs)
    return CReduction(*args, **kwargs)


def _is_dtype(text: str) -> bool:
    return text in types._TYPES


class _Expression:
    """The expression form: a fused function whose reductions take the call's axes."""

    def __init__(self, text: str, name: str | None = None) -> None:
        self._statements = Statements(text)
        self._name = _identifier(name or "reduction")
        self._made: dict[Any, Fused] = {}

    def __call__(self, *args: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        return self._fused(axis, keepdims)(*args, **kwargs)

    def source(self, *args: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> str:
        """The CUDA text that a call with these arguments runs."""
        return self._fused(axis, keepdims).source(*args, **kwargs)

    @property
    def kernels(self) -> list[Any]:
        """The kernels that calls so far have made."""
        return [kernel for fused in self._made.values() for kernel in fused.kernels]

    def _fused(self, axis: Any, keepdims: bool) -> Fused:
        key = (tuple(axis) if isinstance(axis, (tuple, list)) else axis, keepdims)
        if key not in self._made:
            self._made[key] = Fused(_Axes(self._statements, *key), self._statements.parameters,
                                    self._name)  # fmt: skip
        return self._made[key]


class _Axes:
    """Statements whose reductions have the axes of a call."""

    def __init__(self, statements: Statements, axis: Any, keepdims: bool) -> None:
        self._statements, self._axis, self._keepdims = statements, axis, keepdims

    def __call__(self, **values: Any) -> Any:
        from kernwright._fuse.namespace import NAMESPACE

        used: list[str] = []

        def bound(kind: str) -> Any:
            def function(x: Value) -> Value:
                used.append(kind)
                if not isinstance(x, Value):
                    raise InvalidArgument(f"{kind}() takes a value of the arguments")
                reduce: Any = getattr(NAMESPACE, kind)
                return reduce(x, self._axis, keepdims=self._keepdims)  # type: ignore[no-any-return]

            return function

        result = self._statements(**values, **{kind: bound(kind) for kind in _KINDS})
        if not used:
            raise InvalidArgument(
                f"{self._statements.text!r} reduces nothing: use {', '.join(_KINDS)}, or "
                "kw.elementwise()"
            )
        return result


class ReductionKernel:
    """CuPy's form; made by kw.reduction()."""

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str,
        identity: Any, name: str = "reduce_kernel", reduce_type: str | None = None,
        reduce_dims: bool = True, preamble: str = "", options: Any = (),
    ) -> None:  # fmt: skip
        self.inputs = parse_parameters(in_params, "in_params")
        self.outputs = parse_parameters(out_params, "out_params")
        raw = [p.name for p in self.inputs + self.outputs if p.raw]
        if raw:
            raise InvalidArgument(f"{name}: raw parameters ({', '.join(raw)}) have no place in a "
                                  "reduction here: write a kernel with kw.kernel()")  # fmt: skip
        if not self.inputs or not self.outputs:
            raise InvalidArgument(f"{name}: a reduction has inputs and outputs")
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = None if identity is None or str(identity) == "" else str(identity)
        self.name, self.reduce_type, self.preamble = _identifier(name), reduce_type, preamble
        self._plans: dict[Any, FusionPlan] = {}

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False,
        stream: Any = None,
    ) -> Any:  # fmt: skip
        """The outputs: the inputs broadcast to one shape, reduced over `axis`, by default all."""
        if stream is not None:
            with stream:
                return self(*args, out=out, axis=axis, keepdims=keepdims)
        if len(args) == len(self.inputs) + len(self.outputs) and out is None:
            args, out = args[: len(self.inputs)], args[len(self.inputs) :]
        values = self._values(args)
        plan = self._plan(values, axis, keepdims)
        return plan.run(values, self._outs(plan, out))

    def source(self, *args: Any, axis: Any = None, keepdims: bool = False) -> str:
        """The CUDA text that a call with these arguments runs."""
        launches = self._plan(self._values(args), axis, keepdims).launches
        return "\n".join(dict.fromkeys(launch.text for launch in launches))

    def _values(self, args: tuple[Any, ...]) -> dict[str, Any]:
        if len(args) != len(self.inputs):
            wanted = ", ".join(f"{p.type} {p.name}" for p in self.inputs)
            raise ArgumentError(
                f"{self.name}({wanted}) takes {len(self.inputs)} inputs, got {len(args)}"
            )
        taken = ElementwiseKernel._values(self, args)  # type: ignore[arg-type]
        return {p.name: v for p, v in zip(self.inputs, taken, strict=True)}

    @property
    def params(self) -> list[Parameter]:
        return [*self.inputs, *self.outputs]

    def _outs(self, plan: FusionPlan, out: Any) -> list[Array] | None:
        if out is None:
            return None
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        for array, (shape, dtype) in zip(outs, plan.results, strict=True):
            fits = isinstance(array, Array) and array.shape == shape and array.dtype == dtype
            if not fits or not array.is_contiguous or array.read_only:
                raise InvalidArgument(
                    f"{self.name}: out= is an array of {dtype}, of shape {shape}, without gaps"
                )
        return outs

    def _plan(self, values: dict[str, Any], axis: Any, keepdims: bool) -> FusionPlan:
        key = (signature_of(values), tuple(axis) if isinstance(axis, list) else axis, keepdims)
        if key not in self._plans:
            self._plans[key] = self._make(values, axis, keepdims)
        return self._plans[key]

    def _make(self, values: dict[str, Any], axis: Any, keepdims: bool) -> FusionPlan:
        graph = Graph()
        arrays = [k for k, v in values.items() if isinstance(v, Array)]
        scalars = [k for k in values if k not in arrays]
        decided = decide_types(self.name, self.inputs, list(values.values()))
        inputs = [type_of(self.name, p, decided) for p in self.inputs]
        outputs = [type_of(self.name, p, decided) for p in self.outputs]
        wide = self._reduce_dtype(decided, outputs)
        copied = {k for k in arrays if not is_aligned(values[k])}
        nodes = []
        for p, dtype in zip(self.inputs, inputs, strict=True):
            if p.name in arrays:
                nodes.append(_leaf(graph, arrays.index(p.name), values[p.name], p.name in copied))
            else:
                scalar = graph.scalar(scalars.index(p.name), None, types.weak_kind(values[p.name]))
                nodes.append(graph.cast(scalar, dtype))
        shape = broadcast(self.name, [n.shape for n in nodes])
        axes, kept = _axes(self.name, shape, axis, keepdims)
        if self.identity is None and any(shape[a] == 0 for a in axes):
            raise InvalidArgument(f"{self.name}() of no elements needs an identity: shape {shape}")
        mapped = graph.call("map_element", tuple(nodes), shape, wide)
        combined = graph.combine(mapped, axes, kept, wide, ("CombineTwo", self.identity))
        plain = tuple(n for n in nodes if n.shape == ())
        roots = [graph.call(f"finish_{p.name}", (combined, *plain), combined.shape, dtype)
                 for p, dtype in zip(self.outputs, outputs, strict=True)]  # fmt: skip
        plan = FusionPlan(self.name, arrays, copied, scalars)
        plan.preamble = self._text(decided, wide, [n.shape == () for n in nodes])
        plan.build_nodes(roots, graph, values)
        plan._is_tuple = len(roots) > 1
        return plan

    def _reduce_dtype(self, decided: dict[str, Any], outputs: list[Any]) -> Any:
        if self.reduce_type is None:
            return outputs[0]
        if self.reduce_type in decided:
            return decided[self.reduce_type]
        try:
            return types.as_dtype(self.reduce_type)
        except Exception:
            raise InvalidArgument(
                f"{self.name}: reduce_type {self.reduce_type!r} is no dtype and none of the types"
            ) from None

    def _text(self, decided: dict[str, Any], wide: Any, is_scalar: list[bool]) -> str:
        kind = types.compute_type(wide)
        inputs = [f"const {p.type if p.dtype is None else types.compute_type(p.dtype)} {p.name}"
                  for p in self.inputs]  # fmt: skip
        plain = [text for text, scalar in zip(inputs, is_scalar, strict=True) if scalar]
        text = type_names(decided, self.params) + (f"{self.preamble}\n" if self.preamble else "")
        text += (
            f"\n__device__ __forceinline__ {kind} map_element({', '.join(inputs)}) {{\n"
            f"  return {self.map_expr};\n}}\n\n" + _combine_text(self.reduce_expr, kind)
        )
        for p in self.outputs:
            others = [f"  {_type_text(q)} {q.name}{{}};\n" for q in self.outputs]
            text += (
                f"__device__ __forceinline__ {_type_text(p)} "
                f"finish_{p.name}({', '.join([f'const {kind} a', *plain])}) {{\n"
                f"{''.join(others)}  {self.post_map_expr};\n  return {p.name};\n}}\n\n"
            )
        return text


def _type_text(p: Parameter) -> str:
    return p.type if p.dtype is None else types.compute_type(p.dtype)


def _combine_text(expression: str, kind: str) -> str:
    return (
        "struct CombineTwo {\n"
        f"  __device__ __forceinline__ {kind} operator()(const {kind} a, const {kind} b) const {{\n"
        f"    return {expression};\n  }}\n}};\n\n"
    )


def _axes(
    name: str, shape: tuple[int, ...], axis: Any, keepdims: bool
) -> tuple[tuple[int, ...], list[int | None]]:
    ndim = len(shape)
    given = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = sorted({operator.index(a) + (ndim if a < 0 else 0) for a in given})
    if len(axes) != len(given) or any(not 0 <= a < ndim for a in axes):
        raise AxisError(f"{name}: axis {axis} is out of range for shape {shape}")
    kept = [None if a in axes else a for a in range(ndim) if keepdims or a not in axes]
    return tuple(axes), kept


class CReduction:
    """PyCUDA's form; made by kw.reduction()."""

    def __init__(
        self, dtype_out: Any, neutral: Any, reduce_expr: str, map_expr: str | None = None,
        arguments: str | None = None, name: str = "reduce_kernel", keep: bool = False,
        options: Any = None, preamble: str = "", allocator: Any = None,
    ) -> None:  # fmt: skip
        self.dtype = types.as_dtype(dtype_out)
        kind = types.compute_type(self.dtype)
        if arguments is None:
            raise InvalidArgument(f"{name}: arguments= is needed, such as 'const float *x'")
        self.parameters = parse_c_parameters(arguments)
        vectors = [p for p in self.parameters if p.is_pointer]
        if not vectors:
            raise InvalidArgument(f"{name}: no parameter is a pointer: {arguments!r}")
        mapped = map_expr if map_expr is not None else f"{vectors[0].name}[i]"
        self.name, self.neutral = _identifier(name), None if neutral is None else str(neutral)
        declared = [re.sub(r"^(?!const\b)", "const ", p.text) if p.is_pointer else p.text
                    for p in self.parameters]  # fmt: skip
        self._text = (
            (f"{preamble}\n" if preamble else "")
            + f"\n__device__ __forceinline__ {kind} map_element("
            + ", ".join([*declared, "const long long i"]) + f") {{\n  return {mapped};\n}}\n\n"
            + _combine_text(reduce_expr, kind)
        )  # fmt: skip
        self._plans: dict[Any, FusionPlan] = {}

    def __call__(self, *args: Any, stream: Any = None, out: Any = None) -> Array:
        """The result as an array of no dimensions."""
        if stream is not None:
            with stream:
                return self(*args, out=out)
        values = self._values(args)
        plan = self._plan(values)
        outs = None if out is None else [out]
        if out is not None and (not isinstance(out, Array) or out.shape != ()
                                or out.dtype != self.dtype):  # fmt: skip
            raise InvalidArgument(f"{self.name}: out= is an array of {self.dtype} of shape ()")
        return plan.run(values, outs)  # type: ignore[no-any-return]

    def source(self, *args: Any) -> str:
        """The CUDA text that a call with these arguments runs."""
        return "\n".join(launch.text for launch in self._plan(self._values(args)).launches)

    def _values(self, args: tuple[Any, ...]) -> dict[str, Any]:
        taken = c_arguments(self.name, self.parameters, args, copies=True)
        return {p.name: v for p, v in zip(self.parameters, taken, strict=True)}

    def _plan(self, values: dict[str, Any]) -> FusionPlan:
        key = signature_of(values)
        if key not in self._plans:
            self._plans[key] = self._make(values)
        return self._plans[key]

    def _make(self, values: dict[str, Any]) -> FusionPlan:
        graph = Graph()
        arrays = [p.name for p in self.parameters if p.is_pointer]
        scalars = [p.name for p in self.parameters if not p.is_pointer]
        count = values[arrays[0]].size
        if count == 0 and self.neutral is None:
            raise InvalidArgument(f"{self.name}() of no elements needs a neutral element")
        nodes: list[Node] = []
        for p in self.parameters:
            if p.is_pointer:
                nodes.append(graph.raw(arrays.index(p.name), p.dtype))
            else:
                weak = types.weak_kind(values[p.name])
                dtype = None if weak else np.dtype(values[p.name].dtype)
                nodes.append(graph.scalar(scalars.index(p.name), dtype, weak))
        mapped = graph.call("map_element", (*nodes, graph.place((count,))), (count,), self.dtype)
        root = graph.combine(mapped, (0,), [], self.dtype, ("CombineTwo", self.neutral))
        plan = FusionPlan(self.name, arrays, set(), scalars)
        plan.preamble = self._text
        plan.build_nodes([root], graph, values)
        return plan


__all__ = ["CReduction", "ReductionKernel", "reduction"]
