"""PythonKernel: Kernel Tuner's object that calls one configuration of a kernel as a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.creation import asarray
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._kernel_tuner.options import block_names, compile_fields, own_device, refuse
from kernwright.tune._kernel_tuner.run_kernel import module_of
from kernwright.tune._kernel_tuner.source import KernelTunerLaunch, KernelTunerSource

__all__ = ["PythonKernel"]


class PythonKernel:
    """A kernel with the values `params`, called with its arguments, as Kernel Tuner's class.

    Arrays of `arguments` have memory on the device for as long as the object lives. A call copies
    the arrays for which `inputs` is true there, launches, waits, and returns those for which
    `outputs` is true in a list; without the two all are both. Memory that is no input keeps what
    the last launch left. Not thread-safe.

    Raises what the compile and the launch raise, ArgumentError for arrays of another shape or dtype
    than those of `arguments`, and InvalidArgument for what has no meaning here.

    >>> text = "__global__ void twice(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }"
    >>> x = np.ones(64, np.float32)
    >>> twice = kw.tune.PythonKernel("twice", text, 64, [x], {"block_size_x": 32})
    >>> twice(x)[0].sum()
    np.float32(128.0)
    """

    def __init__(
        self, kernel_name: str, kernel_string: Any, problem_size: Any, arguments: Sequence[Any],
        params: Mapping[str, Any] | None = None, inputs: Sequence[bool] | None = None,
        outputs: Sequence[bool] | None = None, device: int = 0, platform: int = 0,
        block_size_names: Sequence[str] | None = None, grid_div_x: Any = None,
        grid_div_y: Any = None, grid_div_z: Any = None, verbose: bool = True,
        lang: str | None = None, results_file: Any = None,
    ) -> None:  # fmt: skip
        refuse(lang, platform, None, None)
        if results_file is not None:
            raise InvalidArgument(
                "results_file= reads files of Kernel Tuner's integration: pass the values as "
                "params=, or launch kernel.tuned(store)"
            )
        given = list(arguments)
        for name, flags in (("inputs", inputs), ("outputs", outputs)):
            if flags is not None and len(flags) != len(given):
                raise ArgumentError(
                    f"{name} has a flag for each argument: {len(given)}, not {len(flags)}"
                )
        self._inputs = [True] * len(given) if inputs is None else list(map(bool, inputs))
        self._outputs = [True] * len(given) if outputs is None else list(map(bool, outputs))
        launch = KernelTunerLaunch(
            problem_size, (grid_div_x, grid_div_y, grid_div_z), block_names(block_size_names)
        )
        source = KernelTunerSource(kernel_name, kernel_string, launch, None, compile_fields(None))
        config = Config({**(params or {})})
        self.params = dict(config)
        self._device = device
        self._extents = launch.grid(config), launch.block(config)
        with own_device(device):
            self._kernel = module_of(source, config)[1]
            self._memory = [asarray(a) if _is_array(a) else a for a in given]

    def __call__(self, *args: Any) -> list[np.ndarray]:
        return self.run_kernel(args)

    def run_kernel(self, args: Sequence[Any]) -> list[np.ndarray]:
        """The outputs of one launch with these arguments."""
        if len(args) != len(self._memory):
            raise ArgumentError(f"the kernel takes {len(self._memory)} arguments, got {len(args)}")
        values = list(self._memory)
        for i, (memory, value) in enumerate(zip(self._memory, args, strict=True)):
            if not isinstance(memory, _core.Array):
                values[i] = value if self._inputs[i] else memory
            elif not _is_array(value):
                raise ArgumentError(f"argument {i} is an array, got {type(value).__name__}")
            elif value.shape != memory.shape or value.dtype != memory.dtype:
                raise ArgumentError(
                    f"argument {i} is {memory.dtype} of {memory.shape}, got {value.dtype} of "
                    f"{value.shape}"
                )
        with own_device(self._device):
            for memory, value, is_input in zip(self._memory, args, self._inputs, strict=True):
                if is_input and isinstance(memory, _core.Array):
                    memory[...] = asarray(value)
            grid, block = self._extents
            self._kernel[grid, block](*values)
            return [
                memory.numpy()
                for memory, is_output in zip(self._memory, self._outputs, strict=True)
                if is_output and isinstance(memory, _core.Array)
            ]


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0
