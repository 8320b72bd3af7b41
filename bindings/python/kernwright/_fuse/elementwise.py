"""kw.elementwise: kernels of one operation an element, from expression strings, CuPy's and
PyCUDA's signatures."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernwright._core import Array, current_device, empty, strided
from kernwright._fuse import types
from kernwright._fuse.arguments import adopt, is_aligned, same_device, signature_of
from kernwright._fuse.fused import Fused, _identifier
from kernwright._fuse.graph import broadcast
from kernwright._fuse.layout import Dims, Operand, coordinates, offset
from kernwright._fuse.parameters import (
    Parameter,
    decide_types,
    parse_parameters,
    type_names,
    type_of,
)
from kernwright._fuse.plan import compiled
from kernwright._fuse.pycuda import CKernel
from kernwright._fuse.trace import Statements
from kernwright.errors import ArgumentError, InvalidArgument

_BLOCK, _UNROLL = 256, 4


def elementwise(*args: Any, **kwargs: Any) -> Any:
    """A kernel that computes each element by itself; three forms, told apart by the arguments.

    * ``elementwise("z = a * x + y", name=None)``: statements of Python, called with the names
      that they read: ``f(x=x, y=y, a=2.0)``. The assigned names that no later statement reads are
      the results. Functions are those of kw.fuse(); dtypes and broadcasting are NumPy's.
    * ``elementwise("T x, raw T y", "T z", "z = x + y[i]", "name", preamble=, loop_prep=,
      after_loop=, options=, no_return=, return_tuple=)``: CuPy's ElementwiseKernel. Called with
      the inputs, and the outputs where they are given; `i`, `n` and ``_ind`` are there.
    * ``elementwise("float a, float *x, float *y", "y[i] = a * x[i]", "name", preamble=,
      loop_prep=, after_loop=, options=)``: PyCUDA's ElementwiseKernel, over the elements of the
      first array; called with all of them, ``range=`` or ``slice=``, ``stream=``.

    >>> axpy = kw.elementwise("z = a * x + y")
    >>> axpy(a=2.0, x=kw.asarray([1.0, 2.0]), y=kw.ones(2)).numpy()
    array([3., 5.], dtype=float32)
    """
    positional = [a for a in args if isinstance(a, str)]
    if len(positional) != len(args):
        raise ArgumentError("kw.elementwise() takes strings: an expression, or parameters and code")
    if len(args) == 1 and not kwargs.keys() & {"out_params", "operation"}:
        return _expression(args[0], **kwargs)
    if "arguments" in kwargs or _is_c(args):
        return CKernel(*args, **kwargs)
    return ElementwiseKernel(*args, **kwargs)


def _is_c(args: tuple[str, ...]) -> bool:
    return len(args) >= 2 and ("*" in args[0] or bool(re.search(r"[=\[;(]", args[1])))


def _expression(text: str, name: str | None = None) -> Fused:
    statements = Statements(text)
    return Fused(statements, statements.parameters, _identifier(name or "elementwise"),
                 "an elementwise kernel reduces nothing; use kw.fuse()")  # fmt: skip


class ElementwiseKernel:
    """CuPy's form; made by kw.elementwise()."""

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel",
        reduce_dims: bool = True, preamble: str = "", no_return: bool = False,
        return_tuple: bool = False, options: Any = (), loop_prep: str = "", after_loop: str = "",
    ) -> None:  # fmt: skip
        self.inputs = parse_parameters(in_params, "in_params")
        self.outputs = parse_parameters(out_params, "out_params")
        self.operation, self.name = operation, _identifier(name)
        self.preamble, self.loop_prep, self.after_loop = preamble, loop_prep, after_loop
        self.no_return, self.return_tuple = no_return, return_tuple
        self.options = tuple(options)
        self._plans: dict[Any, Any] = {}

    @property
    def params(self) -> list[Parameter]:
        return [*self.inputs, *self.outputs]

    @property
    def nin(self) -> int:
        return len(self.inputs)

    @property
    def nout(self) -> int:
        return len(self.outputs)

    def __call__(self, *args: Any, size: int | None = None, stream: Any = None) -> Any:
        """The outputs; those not given are made, of the broadcast shape of what is not raw."""
        if stream is not None:
            with stream:
                return self(*args, size=size)
        values = self._values(args)
        given = len(args) > len(self.inputs)
        plan = self._plan(values, given, size)
        arrays = [v for v in values if isinstance(v, Array)]
        device = same_device(self.name, arrays) if arrays else current_device()
        outs = values[len(self.inputs) :] if given else [
            empty(plan.shape, d, device=device) for d in plan.dtypes
        ]  # fmt: skip
        if device != current_device():
            with device:
                plan.launch([*values[: len(self.inputs)], *outs])
        else:
            plan.launch([*values[: len(self.inputs)], *outs])
        if self.no_return:
            return None
        return tuple(outs) if self.return_tuple or len(outs) != 1 else outs[0]

    def source(self, *args: Any, size: int | None = None) -> str:
        """The CUDA text that a call with these arguments runs."""
        given = len(args) > len(self.inputs)
        return str(self._plan(self._values(args), given, size).text)

    def _plan(self, values: list[Any], given: bool, size: int | None) -> _ElementwisePlan:
        named = {str(i): v for i, v in enumerate(values)}
        key = (signature_of(named), given, size)
        if key not in self._plans:
            self._plans[key] = _ElementwisePlan(self, values, given, size)
        return self._plans[key]  # type: ignore[no-any-return]

    def _values(self, args: tuple[Any, ...]) -> list[Any]:
        if len(args) not in (len(self.inputs), len(self.params)):
            wanted = ", ".join(f"{p.type} {p.name}" for p in self.params)
            raise ArgumentError(
                f"{self.name}({wanted}) takes {len(self.inputs)} inputs, or {len(self.params)} "
                f"with the outputs, got {len(args)}"
            )
        taken = []
        for p, value in zip(self.params, args, strict=False):
            if types.weak_kind(value) is None and not isinstance(value, np.generic):
                if isinstance(value, np.ndarray):
                    raise ArgumentError(f"{self.name}: {p.name} is a NumPy array in host memory: "
                                        "bring it to the device with kw.asarray(x)")  # fmt: skip
                value = adopt(self.name, p.name, value)
            elif p.raw or p in self.outputs:
                raise ArgumentError(f"{self.name}: {p.name} must be an array")
            taken.append(value)
        return taken


class _ElementwisePlan:
    """The kernel for one combination of shapes, dtypes and strides."""

    def __init__(
        self, kernel: ElementwiseKernel, values: list[Any], given: bool, size: int | None
    ) -> None:
        self.kernel = kernel
        parameters = kernel.params if given else kernel.inputs
        decided = decide_types(kernel.name, parameters, values)
        self.dtypes = [type_of(kernel.name, p, decided) for p in kernel.outputs]
        self.input_types = [type_of(kernel.name, p, decided) for p in kernel.inputs]
        self.decided = decided
        self.shape = self._shape(parameters, values, given, size)
        self._copied: list[int] = []
        self._operands(parameters, values)
        self.text = self._text()
        self.count = int(np.prod(self.shape, dtype=np.int64))
        self._bound: Any = None

    def _shape(
        self, parameters: list[Parameter], values: list[Any], given: bool, size: int | None
    ) -> tuple[int, ...]:
        name = self.kernel.name
        shapes = [v.shape for p, v in zip(parameters, values, strict=True)
                  if isinstance(v, Array) and not p.raw]  # fmt: skip
        if size is not None:
            if shapes:
                raise InvalidArgument(
                    f"{name}: size= is for calls with raw arrays and numbers alone"
                )
            return (int(size),)
        if not shapes:
            raise InvalidArgument(f"{name}: no argument has a shape: say size=")
        shape = broadcast(name, shapes)
        for p, v in zip(self.kernel.outputs, values[len(self.kernel.inputs) :], strict=False):
            if not p.raw and v.shape != shape:
                raise InvalidArgument(f"{name}: output {p.name} of shape {v.shape} holds no "
                                      f"result of shape {shape}")  # fmt: skip
            if v.read_only:
                raise InvalidArgument(f"{name}: output {p.name} is read-only")
        return shape

    def _operands(self, parameters: list[Parameter], values: list[Any]) -> None:
        """Operands of arrays that are walked; raw ones have no strides."""
        self.operands: dict[str, Operand] = {}
        self.raw: dict[str, tuple[int, ...]] = {}
        dtypes = [*self.input_types, *self.dtypes]
        inputs = len(self.kernel.inputs)
        for i, (p, dtype) in enumerate(zip(self.kernel.params, dtypes, strict=True)):
            value: Any = values[i] if i < len(values) else None
            if i < inputs and not isinstance(value, Array):
                continue
            shape = value.shape if value is not None else self.shape
            contiguous = value is None or value.is_contiguous
            if value is not None and (not is_aligned(value) or (p.raw and not contiguous)):
                if i >= inputs:
                    raise InvalidArgument(f"{self.kernel.name}: output {p.name} has gaps")
                self._copied.append(i)
                contiguous = True
            if p.raw:
                self.raw[p.name] = shape
                continue
            strides = (
                _strides(shape) if contiguous else [s // dtype.itemsize for s in value.strides]
            )
            along = [0] * (len(self.shape) - len(shape))
            along += [0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]
            self.operands[p.name] = Operand(p.name, dtype, along, p.name, 0, 0, i >= inputs)

    def _text(self) -> str:
        k, operands = self.kernel, list(self.operands.values())
        dims = Dims(self.shape, (), operands)
        text = "#include <kernwright/fused.cuh>\n\nusing namespace kernwright;\n\n"
        text += type_names(self.decided, k.params)
        text += f"{k.preamble}\n" if k.preamble else ""
        struct, self.layout = dims.struct(operands)
        extra = [n for shape in (self.shape, *self.raw.values()) for n in shape or (1,)]
        fields = "".join(f"  long long {n}_shape[{max(len(s), 1)}];\n" for n, s in self.raw.items())
        struct = struct.replace("};", f"  long long shape[{max(len(self.shape), 1)}];\n{fields}}};")
        self.layout += np.array(extra, np.int64).tobytes()
        text += f"\n{struct}\n__global__ void __launch_bounds__({_BLOCK})\n{k.name}("
        text += ",\n    ".join([*self._parameters(), "const Layout at", "const Int64 n"]) + ") {\n"
        body = [*self._raw_arrays(), *([k.loop_prep] if k.loop_prep else [])]
        body += ["#pragma unroll", f"for (int _u = 0; _u < {_UNROLL}; ++_u) {{",
                 f"  const Int64 i = static_cast<Int64>(blockIdx.x) * {_BLOCK * _UNROLL} + "
                 f"_u * {_BLOCK} + threadIdx.x;", "  if (i >= n) break;"]  # fmt: skip
        index = "UInt32" if int(np.prod(self.shape, dtype=np.int64)) < 2**31 else "Int64"
        lines, places = coordinates(dims.extents, 0, "_i", f"static_cast<{index}>(i)", index)
        body += [f"  {line}" for line in lines]
        for o in operands:
            body.append(
                f"  auto&& {o.name} = refer({o.name}_memory_ + ({offset(o, 0, places) or '0'}));"
            )
        body += [*self._indices(), f"  {k.operation};", "}"]
        body += [k.after_loop] if k.after_loop else []
        return text + "".join(f"  {line}\n" for line in body) + "}\n"

    def _parameters(self) -> list[str]:
        texts = []
        dtypes = [*self.input_types, *self.dtypes]
        for p, dtype in zip(self.kernel.params, dtypes, strict=True):
            if p.name in self.operands or p.name in self.raw:
                const = "const " if p in self.kernel.inputs and not p.raw else ""
                texts.append(f"{const}void* {p.name}_memory")
            else:
                texts.append(f"const {types.compute_type(dtype)} {p.name}")
        return texts

    def _raw_arrays(self) -> list[str]:
        lines = []
        dtypes = [*self.input_types, *self.dtypes]
        for p, dtype in zip(self.kernel.params, dtypes, strict=True):
            kind = types.element_type(dtype)
            if p.name in self.raw:
                count = int(np.prod(self.raw[p.name], dtype=np.int64))
                const = "const " if p in self.kernel.inputs else ""
                where = f"static_cast<{const}{kind}*>({p.name}_memory)"
                lines.append(
                    f"const RawArray<{const}{kind}> {p.name}{{{where}, "
                    f"{self._counted(p.name, count)}, at.{p.name}_shape, {len(self.raw[p.name])}}};"
                )
            elif p.name in self.operands:
                const = "const " if p in self.kernel.inputs else ""
                lines.append(f"{const}{kind}* const {p.name}_memory_ = "
                             f"static_cast<{const}{kind}*>({p.name}_memory);")  # fmt: skip
        return lines

    def _counted(self, name: str, count: int) -> str:
        dims = len(self.raw[name])
        return " * ".join(f"at.{name}_shape[{d}]" for d in range(dims)) if dims else str(count)

    def _indices(self) -> list[str]:
        if not re.search(r"\b_ind\b", self.kernel.operation):
            return []
        dims = len(self.shape)
        lines = [f"  Indices<{max(dims, 1)}> _ind = {{n}};", "  Int64 _rest = i;"]
        for d in reversed(range(dims)):
            lines.append(f"  _ind.coordinate[{d}] = _rest % at.shape[{d}]; _rest /= at.shape[{d}];")
        return lines

    def launch(self, values: list[Any]) -> None:
        if self.count == 0:
            return
        if self._bound is None:
            made = compiled(self.text, self.kernel.name, self.kernel.options)
            grid = -(-self.count // (_BLOCK * _UNROLL))
            self._bound = made[grid, _BLOCK]
        args: list[Any] = []
        for i, value in enumerate(values):
            if isinstance(value, Array):
                taken = value.copy() if i in self._copied else value
                args.append(taken if taken.is_contiguous else strided(taken))
            else:
                dtype = self.input_types[i]
                args.append(_number(value, dtype))
        self._bound(*args, self.layout, self.count)


def _number(value: Any, dtype: Any) -> Any:
    """A number as the kernel's parameter takes it."""
    kind = types.kind_of(dtype)
    return float(value) if kind == "f" else bool(value) if kind == "b" else int(value)


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return strides
