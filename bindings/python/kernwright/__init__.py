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
from kernwright._array import data_types, inspection, linear
from kernwright._array import elementwise as _arithmetic
from kernwright._array import functions as _functions
from kernwright._array import logic as _logic
from kernwright._array import promotion as _promotion
from kernwright._array import reductions as _reductions
from kernwright._array import scans as _scans
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
from kernwright._array.data_types import *
from kernwright._array.inspection import *
from kernwright._array.linear import *
from kernwright._array.reductions import *
from kernwright._array.elementwise import *
from kernwright._array.functions import *
from kernwright._array.logic import *
from kernwright._array.promotion import *
from kernwright._array.reductions import *  # noqa: F403
from kernwright._array.scans import *  # noqa: F403
from kernwright._array.reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    logsumexp,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from kernwright._array.scans import (
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
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
    "bool",
    *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
    *("complex64", "complex128"),
)

__array_api_version__ = "2025.12"

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
    "all",
    "annotate",
    "any",
    "arange",
    "argmax",
    "argmin",
    "asarray",
    "bench",
    "broadcast_arrays",
    "broadcast_to",
    "argsort",
    "argwhere",
    "bincount",
    "cache",
    "checked",
    "checks",
    "concat",
    "count_nonzero",
    "cumulative_max",
    "cumulative_min",
    "cumulative_prod",
    "cumulative_sum",
    "current_device",
    "current_stream",
    "devices",
    "diag",
    "elementwise",
    "empty",
    "empty_like",
    "errors",
    "expand_dims",
    "eye",
    "flip",
    "from_dlpack",
    "full",
    "full_like",
    "gather",
    "fuse",
    "flatnonzero",
    "histogram",
    "isin",
    "judge",
    "kernel",
    "libcuda_path",
    "linalg",
    "line_profile",
    "linspace",
    "lint",
    "matrix_transpose",
    "memory",
    "meshgrid",
    "logsumexp",
    "max",
    "mean",
    "min",
    "module",
    "nn",
    "moveaxis",
    "nonzero",
    "ones",
    "ones_like",
    "optim",
    "pack",
    "pad",
    "permute_dims",
    "pinned",
    "prod",
    "profile",
    "put",
    "put_along_axis",
    "repeat",
    "repeat_interleave",
    "reshape",
    "roll",
    "scatter",
    "split",
    "squeeze",
    "stack",
    "reduction",
    "scan",
    "random",
    "searchsorted",
    "sort",
    "strided",
    "swapaxes",
    "std",
    "sum",
    "synchronize",
    "take",
    "take_along_axis",
    "tile",
    "time_kernel",
    "topk",
    "trace",
    "tril",
    "triu",
    "tune",
    "unstack",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "use_pack",
    "var",
    "warmup",
    "zeros",
    "zeros_like",
    *_arithmetic.__all__,
    *_functions.__all__,
    *_logic.__all__,
    *_promotion.__all__,
]
# The array library, a module a topic.
__all__ += data_types.__all__
__all__ += inspection.__all__
__all__ += linear.__all__
__all__ += [*_reductions.__all__, *_scans.__all__]


# What most programs never use is imported when it is asked for.
_MODULES = (
    "bench",
    "cache",
    "checks",
    "fft",
    "linalg",
    "memory",
    "nn",
    "optim",
    "random",
    "tune",
)
_LATER = {
    "Inputs": "_judging.inputs",
    "Judge": "_judging.judge",
    "Task": "_judging.task",
    "Verdict": "_judging.verdict",
    "annotate": "_measure.profile",
    "bench": "bench",
    "broadcast_arrays": "_array.manipulation",
    "broadcast_to": "_array.manipulation",
    "cache": "cache",
    "checks": "checks",
    "fft": "fft",
    "concat": "_array.manipulation",
    "diag": "_array.matrices",
    "expand_dims": "_array.manipulation",
    "eye": "_array.matrices",
    "flip": "_array.manipulation",
    "gather": "_array.indexing",
    "elementwise": "_fuse.elementwise",
    "fuse": "_fuse.fused",
    "judge": "_judging.judge",
    "libcuda_path": "_support.libcuda",
    "linalg": "linalg",
    "line_profile": "_sim.line_profile",
    "lint": "_jit.lint",
    "matrix_transpose": "_array.manipulation",
    "memory": "memory",
    "nn": "nn",
    "meshgrid": "_array.manipulation",
    "moveaxis": "_array.manipulation",
    "optim": "optim",
    "pack": "_jit.pack",
    "pad": "_array.matrices",
    "permute_dims": "_array.manipulation",
    "profile": "_measure.profile",
    "put": "_array.indexing",
    "put_along_axis": "_array.indexing",
    "repeat": "_array.manipulation",
    "repeat_interleave": "_array.manipulation",
    "reshape": "_array.manipulation",
    "roll": "_array.manipulation",
    "scatter": "_array.indexing",
    "split": "_array.manipulation",
    "squeeze": "_array.manipulation",
    "stack": "_array.manipulation",
    "swapaxes": "_array.manipulation",
    "take": "_array.indexing",
    "take_along_axis": "_array.indexing",
    "tile": "_array.manipulation",
    "reduction": "_fuse.reduction",
    "scan": "_fuse.scan",
    "random": "random",
    "time_kernel": "_measure.timing",
    "trace": "_sim.trace",
    "tril": "_array.matrices",
    "triu": "_array.matrices",
    "tune": "tune",
    "unstack": "_array.manipulation",
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
