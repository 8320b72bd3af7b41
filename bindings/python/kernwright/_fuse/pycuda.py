"""PyCUDA's ElementwiseKernel: C's parameters, code that indexes them by `i`."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from kernwright._core import Array, current_device
from kernwright._fuse import types
from kernwright._fuse.arguments import adopt, same_device
from kernwright._fuse.parameters import CParameter, parse_c_parameters
from kernwright._fuse.plan import compiled
from kernwright.errors import ArgumentError, InvalidArgument

_BLOCK = 256
_MOST_BLOCKS = 132 * 8


class CKernel:
    """Made by kw.elementwise()."""

    def __init__(
        self, arguments: str, operation: str, name: str = "kernel", keep: bool = False,
        options: Any = None, preamble: str = "", loop_prep: str = "", after_loop: str = "",
    ) -> None:  # fmt: skip
        self.parameters = parse_c_parameters(arguments)
        if not any(p.is_pointer for p in self.parameters):
            raise InvalidArgument(f"{name}: no parameter is a pointer: {arguments!r}")
        self.name, self.options = name, tuple(options or ())
        declared = [p.text for p in self.parameters]
        declared += ["long long start", "long long stop", "long long step", "unsigned long long n"]
        self.text = f"{preamble}\n" if preamble else ""
        self.text += (
            f"__global__ void {name}({', '.join(declared)}) {{\n"
            "  const long long total = static_cast<long long>(gridDim.x) * blockDim.x;\n"
            f"  {loop_prep};\n"
            "  for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;\n"
            "       start + at * step < stop; at += total) {\n"
            "    const long long i = start + at * step;\n"
            f"    {operation};\n"
            "  }\n"
            f"  {after_loop};\n"
            "}\n"
        )

    def source(self) -> str:
        """The CUDA text."""
        return self.text

    def __call__(
        self, *args: Any, range: Any = None, slice: Any = None, stream: Any = None
    ) -> None:
        """Runs over the elements of the first array, or of those that a slice of them names."""
        values = c_arguments(self.name, self.parameters, args, copies=False)
        arrays = [v for v in values if isinstance(v, Array)]
        device = same_device(self.name, arrays)
        count = arrays[0].size
        chosen = range if range is not None else slice
        start, stop, step = (0, count, 1) if chosen is None else chosen.indices(count)
        if step < 0:
            raise InvalidArgument(f"{self.name}: a range has a positive step, got {step}")
        work = -(-max(stop - start, 0) // step)
        if work == 0:
            return
        grid = min(-(-work // _BLOCK), _MOST_BLOCKS)
        bound = compiled(self.text, self.name, self.options)[grid, _BLOCK]
        with contextlib.ExitStack() as stack:
            if device != current_device():
                stack.enter_context(device)
            if stream is not None:
                stack.enter_context(stream)
            bound(*values, start, stop, step, count)


def c_arguments(
    name: str, parameters: list[CParameter], args: tuple[Any, ...], copies: bool
) -> list[Any]:
    """The arguments, arrays without gaps and of the parameters' types."""
    if len(args) != len(parameters):
        wanted = ", ".join(p.text for p in parameters)
        raise ArgumentError(f"{name}({wanted}) takes {len(parameters)} arguments, got {len(args)}")
    values = []
    for p, value in zip(parameters, args, strict=True):
        number = types.weak_kind(value) is not None or isinstance(value, np.generic)
        if number and p.is_pointer:
            raise ArgumentError(f"{name}: {p.name} must be an array of {p.dtype}")
        if number:
            values.append(value)
            continue
        if not p.is_pointer:
            raise ArgumentError(f"{name}: {p.name} must be a number, got a {type(value).__name__}")
        if isinstance(value, np.ndarray):
            raise ArgumentError(f"{name}: {p.name} is a NumPy array in host memory: bring it to "
                                "the device with kw.asarray(x)")  # fmt: skip
        array = adopt(name, p.name, value)
        if array.dtype != p.dtype:
            raise ArgumentError(
                f"{name}: {p.name} ({p.text}) got an array of {array.dtype}: convert with "
                f".astype({str(p.dtype)!r})"
            )
        if not array.is_contiguous:
            if not copies:
                raise ArgumentError(f"{name}: {p.name} has gaps: pass {p.name}.copy()")
            array = array.copy()
        values.append(array)
    return values
