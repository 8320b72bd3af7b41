"""kw.scan: prefix scans by an associative expression of `a` and `b`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from kernwright._core import Array, current_device, empty
from kernwright._fuse import types
from kernwright._fuse.arguments import adopt
from kernwright._fuse.fused import Fused, _identifier
from kernwright._fuse.plan import compiled
from kernwright._fuse.trace import Statements
from kernwright.errors import ArgumentError, AxisError, InvalidArgument

_THREADS, _TILE = 256, 2048


def scan(*args: Any, **kwargs: Any) -> Any:
    """A kernel of prefix scans; two forms, told apart by the first argument.

    * ``scan("a + b", input=None, *, neutral=None, exclusive=False, name="scan", preamble="")``:
      called with an array and ``axis=`` (-1). ``input="x * y"`` is an expression of kw.fuse()
      whose values are scanned; then the call has its names: ``f(x=x, y=y, axis=0)``.
    * ``scan(dtype, "a + b", neutral=None, name_prefix="scan", options=None, preamble="",
      exclusive=False)``: PyCUDA's InclusiveScanKernel, with exclusive=True its
      ExclusiveScanKernel; call it with an array of that dtype and ``output_ary=``. The array is
      scanned as one row: None scans in place, as PyCUDA does, "new" makes an array.

    The expression is device code in `a`, what is before, and `b`; it must be associative and need
    not commute. An exclusive scan has a neutral element. Results have the input's
    shape and dtype, and are the same in every run.

    >>> kw.scan("a * b")(kw.asarray([1, 2, 3])).numpy()
    array([1, 2, 6])
    """
    if args and isinstance(args[0], str) and args[0] not in types._TYPES:
        return Scan(*args, **kwargs)
    return DtypeScan(*args, **kwargs)


class _Kernels:
    """The kernels of one expression for each dtype."""

    def __init__(self, expression: str, neutral: Any, exclusive: bool, name: str, preamble: str,
                 options: Any) -> None:  # fmt: skip
        if exclusive and neutral is None:
            raise InvalidArgument(f"{name}: an exclusive scan needs a neutral element")
        self.expression, self.exclusive, self.name = expression, exclusive, _identifier(name)
        self.neutral = None if neutral is None else str(neutral)
        self.preamble, self.options = preamble, tuple(options or ())

    def text(self, dtype: Any, pack: int) -> str:
        element, wide = types.element_type(dtype), types.compute_type(dtype)
        wide = "int" if wide in ("bool", "Int8", "Int16", "UInt8", "UInt16") else wide
        total, combine = (wide, "CombineTwo") if self.neutral is not None else (
            f"Maybe<{wide}>", "CombinePresent<CombineTwo>")  # fmt: skip
        none = f"static_cast<{wide}>({self.neutral})" if self.neutral is not None else "{0, 0}"
        bounds = f"__global__ void __launch_bounds__({_THREADS})\n{self.name}"
        exclusive = "true" if self.exclusive else "false"
        return (
            "#include <kernwright/ordered_scan.cuh>\n\nusing namespace kernwright;\n\n"
            + (f"{self.preamble}\n\n" if self.preamble else "")
            + "struct CombineTwo {\n"
            f"  __device__ {wide} operator()(const {wide} a, const {wide} b) const {{\n"
            f"    return {self.expression};\n  }}\n}};\n"
            f"struct None {{\n  __device__ {total} operator()() const {{ return {none}; }}\n}};\n\n"
            f"{bounds}_totals(const void* from, void* totals, long long length, "
            "long long tiles) {\n"
            f"  store_tile_total<{element}, {total}, {combine}, {pack}>(\n"
            f"      static_cast<const {element}*>(from), static_cast<{total}*>(totals), length, "
            "tiles, None());\n}\n\n"
            f"{bounds}_before(void* totals, long long tiles) {{\n"
            f"  before_each_tile<{total}, {combine}>(static_cast<{total}*>(totals), tiles, "
            "None());\n}\n\n"
            f"{bounds}(const void* from, void* to, const void* totals, long long length, "
            "long long tiles) {\n"
            f"  scan_tile<{element}, {total}, {combine}, {pack}, {exclusive}>(\n"
            f"      static_cast<const {element}*>(from), static_cast<{element}*>(to),\n"
            f"      static_cast<const {total}*>(totals), length, tiles, None());\n}}\n"
        )

    def run(self, x: Array, out: Array) -> None:
        """Scans the rows of `x`, its last axis; both have no gaps and may be the same."""
        if x.size == 0:
            return
        length = x.shape[-1] if x.ndim else 1
        rows = x.size // length
        text = self.text(x.dtype, _pack(x, out, length))
        tiles = -(-length // _TILE)
        blocks = rows * tiles
        main = compiled(text, self.name, self.options)
        if tiles == 1:
            main[blocks, _THREADS](x, out, None, length, tiles)
            return
        totals = empty((blocks * 16,), np.uint8, device=x.device)
        of_tiles = compiled(text, f"{self.name}_totals", self.options)
        before = compiled(text, f"{self.name}_before", self.options)
        of_tiles[blocks, _THREADS](x, totals, length, tiles)
        before[rows, _THREADS](totals, tiles)
        main[blocks, _THREADS](x, out, totals, length, tiles)


def _pack(x: Array, out: Array, length: int) -> int:
    """Neighbours that one access moves, in every row."""
    pack = min(8, 16 // x.dtype.itemsize)
    while pack > 1 and (
        length % pack or (x.ptr | out.ptr) % (pack * x.dtype.itemsize)
    ):  # fmt: skip
        pack //= 2
    return pack


def _checked(name: str, x: Any) -> Array:
    if isinstance(x, np.ndarray):
        raise ArgumentError(f"{name}: a NumPy array is in host memory: bring it to the device with "
                            "kw.asarray(x)")  # fmt: skip
    array = adopt(name, "its argument", x)
    types.element_type(array.dtype)
    return array


def _scanned(kernels: _Kernels, x: Array, out: Array) -> None:
    if x.device != current_device():
        with x.device:
            kernels.run(x, out)
    else:
        kernels.run(x, out)


class Scan:
    """The expression form; made by kw.scan()."""

    def __init__(
        self, expression: str, input: str | None = None, *, neutral: Any = None,
        exclusive: bool = False, name: str = "scan", preamble: str = "",
    ) -> None:  # fmt: skip
        self._kernels = _Kernels(expression, neutral, exclusive, name, preamble, None)
        self._mapped: Fused | None = None
        if input is not None:
            statements = Statements(input)
            self._mapped = Fused(statements, statements.parameters, f"{self._kernels.name}_input")

    def __call__(self, *args: Any, axis: int = -1, **kwargs: Any) -> Array:
        """The scan along an axis."""
        name = self._kernels.name
        if self._mapped is not None:
            x = self._mapped(*args, **kwargs)
        elif len(args) == 1 and not kwargs:
            x = _checked(name, args[0])
        else:
            raise ArgumentError(f"{name} takes one array and axis=, got {len(args) + len(kwargs)}")
        at = operator.index(axis)
        if not -max(x.ndim, 1) <= at < max(x.ndim, 1):
            raise AxisError(f"{name}: axis {axis} is out of range for shape {x.shape}")
        at %= max(x.ndim, 1)
        order = [d for d in range(x.ndim) if d != at] + [at] if x.ndim else []
        rows = x.transpose(order) if x.ndim > 1 else x
        aligned = rows.ptr % rows.itemsize == 0
        rows = rows if rows.is_contiguous and aligned else rows.copy()
        out = empty(rows.shape, rows.dtype, device=rows.device)
        _scanned(self._kernels, rows, out)
        if x.ndim <= 1:
            return out
        return out.transpose([order.index(d) for d in range(x.ndim)])

    def source(self, dtype: Any = np.float32) -> str:
        """The CUDA text for arrays of that dtype."""
        return self._kernels.text(types.as_dtype(dtype), 1)


class DtypeScan:
    """PyCUDA's form; made by kw.scan()."""

    def __init__(self, dtype: Any, scan_expr: str, neutral: Any = None, name_prefix: str = "scan",
                 options: Any = None, preamble: str = "", devices: Any = None, *,
                 exclusive: bool = False) -> None:  # fmt: skip
        self.dtype = types.as_dtype(dtype)
        self._kernels = _Kernels(scan_expr, neutral, exclusive, name_prefix, preamble, options)

    def __call__(self, input_ary: Any, output_ary: Any = None, stream: Any = None) -> Array:
        """The scan over all elements in their flat order, into `output_ary`: None is the input,
        "new" a new array."""
        if stream is not None:
            with stream:
                return self(input_ary, output_ary)
        name = self._kernels.name
        x = _checked(name, input_ary)
        if x.dtype != self.dtype:
            raise ArgumentError(f"{name} is a scan of {self.dtype}, got an array of {x.dtype}: "
                                f"convert with .astype({str(self.dtype)!r})")  # fmt: skip
        if isinstance(output_ary, str) and output_ary == "new":
            output_ary = empty(x.shape, x.dtype, device=x.device)
        out = x if output_ary is None else output_ary
        fits = isinstance(out, Array) and out.shape == x.shape and out.dtype == x.dtype
        if not fits or not out.is_contiguous or out.read_only:
            raise InvalidArgument(
                f"{name}: output_ary is an array of {x.dtype}, of shape {x.shape}, without gaps"
            )
        rows = x if x.is_contiguous and x.ptr % x.itemsize == 0 else x.copy()
        _scanned(self._kernels, rows.reshape(-1), out.reshape(-1))
        return out

    def source(self) -> str:
        """The CUDA text."""
        return self._kernels.text(self.dtype, 1)


__all__ = ["DtypeScan", "Scan", "scan"]
