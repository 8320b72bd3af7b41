"""Kernwright runs CUDA kernels that are written as strings.

>>> import numpy as np, kernwright as kw
>>> scale = kw.kernel('''__global__ void scale(float* x, float a, int n) {
...     int i = blockIdx.x * blockDim.x + threadIdx.x;
...     if (i < n) x[i] *= a;
... }''')
>>> x = kw.asarray(np.ones(1000, np.float32))
>>> scale[4, 256](x, 3.0, x.size)
>>> float(x.numpy().sum())
3000.0
"""

from kernwright import _core, errors  # the extension first: it says where it cannot be used
from kernwright._array.counting import argwhere, bincount, flatnonzero, histogram, nonzero
from kernwright._array.creation import (
    arange,
    asarray,
    empty_like,
    from_dlpack,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from kernwright._array.sorting import (
    argsort,
    isin,
    searchsorted,
    sort,
    topk,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from kernwright._core import (
    Array,
    CudaArray,
    Device,
    Event,
    Graph,
    GraphNode,
    In,
    InOut,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Out,
    Pointer,
    Stream,
    Surface,
    TensorMap,
    Texture,
    Transfer,
    TransferEngine,
    __version__,
    checked,
    current_device,
    current_stream,
    devices,
    empty,
    pinned,
    strided,
    synchronize,
)
from kernwright._jit.kernels import Module, Program, kernel, module, warmup
from kernwright._jit.options import ProgramOptions
from kernwright._support.typed import publish, typed
from kernwright.errors import (
    ArgumentError,
    ArgumentRangeError,
    CaptureError,
    CompileError,
    DeviceFault,
    DeviceLost,
    DeviceNotFound,
    DriverError,
    DriverNotFound,
    Error,
    InvalidArgument,
    LaunchConfigError,
    NameNotFound,
    NvrtcNotFound,
    OutOfMemory,
    StoreError,
    Timeout,
    UnsupportedInstruction,
)

# The element types under their names; looked up when first asked for, because three of them are
# of ml_dtypes, which is imported no sooner than they are needed.
_DTYPES = (
    *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
    *("complex64", "complex128"),
)

__all__ = [
    "ArgumentError",
    "ArgumentRangeError",
    "Array",
    "CaptureError",
    "CompileError",
    "CudaArray",
    "Device",
    "DeviceFault",
    "DeviceLost",
    "DeviceNotFound",
    "DriverError",
    "DriverNotFound",
    "Error",
    "Event",
    "Graph",
    "GraphNode",
    "In",
    "InOut",
    "Inputs",
    "InvalidArgument",
    "Judge",
    "Kernel",
    "LaunchConfig",
    "LaunchConfigError",
    "Module",
    "NameNotFound",
    "NvrtcNotFound",
    "ObjectCode",
    "Out",
    "OutOfMemory",
    "Pointer",
    "Program",
    "ProgramOptions",
    "StoreError",
    "Stream",
    "Surface",
    "Task",
    "TensorMap",
    "Texture",
    "Timeout",
    "Transfer",
    "TransferEngine",
    "UnsupportedInstruction",
    "Verdict",
    "__version__",
    "annotate",
    "arange",
    "argsort",
    "argwhere",
    "asarray",
    "bench",
    "bincount",
    "cache",
    "checked",
    "checks",
    "current_device",
    "current_stream",
    "devices",
    "empty",
    "empty_like",
    "errors",
    "flatnonzero",
    "from_dlpack",
    "full",
    "full_like",
    "histogram",
    "isin",
    "judge",
    "kernel",
    "libcuda_path",
    "line_profile",
    "linspace",
    "lint",
    "memory",
    "module",
    "nonzero",
    "ones",
    "ones_like",
    "pack",
    "pinned",
    "profile",
    "searchsorted",
    "sort",
    "strided",
    "synchronize",
    "time_kernel",
    "topk",
    "trace",
    "tune",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "use_pack",
    "warmup",
    "zeros",
    "zeros_like",
]


# What most programs never use is imported when it is asked for.
_MODULES = ("bench", "cache", "checks", "memory", "tune")
_LATER = {
    "Inputs": "_judging.inputs",
    "Judge": "_judging.judge",
    "Task": "_judging.task",
    "Verdict": "_judging.verdict",
    "annotate": "_measure.profile",
    "bench": "bench",
    "cache": "cache",
    "checks": "checks",
    "judge": "_judging.judge",
    "libcuda_path": "_support.libcuda",
    "line_profile": "_sim.line_profile",
    "lint": "_jit.lint",
    "memory": "memory",
    "pack": "_jit.pack",
    "profile": "_measure.profile",
    "time_kernel": "_measure.timing",
    "trace": "_sim.trace",
    "tune": "tune",
    "use_pack": "_jit.pack",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        import importlib

        module = importlib.import_module(f"kernwright.{_LATER[name]}")
        value = module if name in _MODULES else typed(getattr(module, name))
        globals()[name] = value
        return value
    if name not in _DTYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = _core._dtype(name).type
    globals()[name] = value
    return value


publish(globals(), __all__)
del publish


def __dir__() -> list[str]:
    return sorted([*__all__, *_DTYPES])
