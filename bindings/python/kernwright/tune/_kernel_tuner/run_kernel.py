"""run_kernel(): Kernel Tuner's function that launches one configuration once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.creation import asarray
from kernwright._core import Kernel
from kernwright._jit.kernels import Module
from kernwright.errors import ArgumentError
from kernwright.tune._config import Config
from kernwright.tune._kernel_tuner.options import (
    block_names,
    compile_fields,
    own_device,
    refuse,
    selected,
    shared_bytes,
)
from kernwright.tune._kernel_tuner.source import KernelTunerLaunch, KernelTunerSource
from kernwright.tune._tuned import configured


def run_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    params: Mapping[str, Any],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    lang: str | None = None,
    device: int = 0,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Any = None,
    compiler: Any = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    log: Any = None,
) -> list[Any]:
    """Launches a kernel once with the values `params`, as Kernel Tuner's function of this name
    does; returns the arguments after the launch: copies of arrays, and values as they are.

    Raises what the compile and the launch raise, and InvalidArgument for what has no meaning here.

    >>> text = "__global__ void twice(float* x) { x[blockIdx.x * BLOCK + threadIdx.x] *= 2; }"
    >>> [x] = kw.tune.run_kernel(
    ...     "twice", text, 64, [np.ones(64, np.float32)], {"BLOCK": 32}, block_size_names=["BLOCK"])
    >>> x.sum()
    np.float32(128.0)
    """
    refuse(lang, platform, texmem_args, compiler)
    names = block_names(block_size_names)
    launch = KernelTunerLaunch(problem_size, (grid_div_x, grid_div_y, grid_div_z), names)
    fields = compile_fields(compiler_options)
    source = KernelTunerSource(kernel_name, kernel_source, launch, defines, fields)
    config = Config({**params})
    with own_device(device):
        module, kernel = module_of(source, config)
        fill_constants(module, cmem_args or {})
        given = selected(arguments, config)
        memory = [asarray(a) if isinstance(a, np.ndarray) and a.ndim else a for a in given]
        size = shared_bytes(smem_args)
        size = size(dict(config)) if callable(size) else size
        kernel[launch.grid(config), launch.block(config), None, int(size)](*memory)
        return [m.numpy() if isinstance(m, _core.Array) else m for m in memory]


def module_of(source: KernelTunerSource, config: Config) -> tuple[Module, Kernel]:
    """A configuration's module and its kernel."""
    made = configured(source(config), config)
    assert made._program is not None  # its text was given
    module = Module(made._program)
    return module, module.kernel(made.name)


def fill_constants(module: Module, constants: Mapping[str, Any]) -> None:
    for name, value in constants.items():
        contents = np.ascontiguousarray(value).reshape(-1)
        symbol = module.symbol(name)
        if not isinstance(symbol, _core.Array):
            raise ArgumentError(f"cmem_args fills variables of numbers; {name} holds structs")
        if contents.nbytes > symbol.nbytes:
            raise ArgumentError(
                f"cmem_args has {contents.nbytes} bytes for {name}, a variable of {symbol.nbytes}"
            )
        target = symbol.reshape((-1,)).view(contents.dtype.name)
        target[: contents.size] = contents
