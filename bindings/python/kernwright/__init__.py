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

import sys as _sys

# The extension first: it says where it cannot be used. The log next: it closes after all others.
from kernwright import _core, errors
from kernwright._support import logger as _logger

# isort: split
from kernwright._array.creation import (
    arange,
    asarray,
    empty_like,
    from_dlpack,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from kernwright._core import (
    Array,
    CudaArray,
    Device,
    Event,
    Graph,
    GraphNode,
    GraphPool,
    In,
    InOut,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Out,
    Partition,
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
    slices,
    strided,
    synchronize,
)
from kernwright._jit.kernels import Module, Program, kernel, module, warmup
from kernwright._jit.options import ProgramOptions
from kernwright._support.names import array_attribute as _array_attribute
from kernwright._support.names import missing as _missing
from kernwright._support.typed import publish as _publish
from kernwright._support.typed import typed as _typed
from kernwright.errors import (
    ArgumentError,
    ArgumentRangeError,
    AxisError,
    CaptureError,
    CompileError,
    DeviceFault,
    DeviceLost,
    DeviceNotFound,
    DivisionByZero,
    DriverError,
    DriverNotFound,
    Error,
    InvalidArgument,
    LaunchConfigError,
    NameNotFound,
    NotSliceable,
    NvrtcNotFound,
    OutOfBounds,
    OutOfMemory,
    PartitionError,
    PerformanceWarning,
    StoreError,
    Timeout,
    UnsupportedInstruction,
)

_logger.begin()
setattr(Array, "__getattr__", _array_attribute)  # noqa: B010 (the stub has none, on purpose)

# The element types under their names; looked up when first asked for, because three of them are
# of ml_dtypes, which is imported no sooner than they are needed.
_DTYPES = (
    "bool",
    *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
    *("complex64", "complex128"),
)

__array_api_version__ = "2025.12"

# Every import above is public, unless its name begins with an underscore.
_IMPORTED = [name for name in globals() if not name.startswith("_")]

# The array library by module; each name is imported when it is asked for.
_TOPICS = {
    home: names.split()
    for home, names in {
        "_array.aliases": (
            "absolute amax amin arccos arccosh arcsin arcsinh arctan arctan2 arctanh around "
            "bitwise_not concatenate conjugate degrees invert left_shift mod power radians "
            "right_shift true_divide"
        ),
        "_array.composed.applying": "apply_along_axis vectorize",
        "_array.composed.binning": "digitize histogram2d histogram_bin_edges",
        "_array.composed.bits": "packbits unpackbits",
        "_array.composed.closeness": "allclose array_equal array_equiv isclose",
        "_array.composed.convolution": "convolve correlate",
        "_array.composed.differences": "ediff1d gradient interp trapezoid unwrap",
        "_array.composed.float_parts": "frexp modf nan_to_num",
        "_array.composed.joining": (
            "append atleast_1d atleast_2d atleast_3d block column_stack delete dstack hstack "
            "insert resize trim_zeros vstack"
        ),
        "_array.composed.making": (
            "array ascontiguousarray copy diagflat diagonal identity tri vander"
        ),
        "_array.composed.nan_functions": "nanargmax nanargmin nancumprod nancumsum",
        "_array.composed.ordering": (
            "argpartition choose compress extract lexsort partition piecewise select"
        ),
        "_array.composed.padding": "pad",
        "_array.composed.polynomials": "polyfit polyval",
        "_array.composed.positions": (
            "diag_indices diag_indices_from indices ix_ ravel_multi_index tril_indices "
            "tril_indices_from triu_indices triu_indices_from unravel_index"
        ),
        "_array.composed.products": "cross dot inner kron outer vdot",
        "_array.composed.quantiles": (
            "median nanmedian nanpercentile nanquantile percentile quantile"
        ),
        "_array.composed.sequences": "geomspace linspace logspace",
        "_array.composed.sets": "intersect1d setdiff1d setxor1d union1d unique",
        "_array.composed.statistics": "average corrcoef cov ptp",
        "_array.composed.turning": (
            "array_split dsplit fliplr flipud hsplit ravel rollaxis rot90 transpose vsplit"
        ),
        "_array.counting": "argwhere bincount flatnonzero histogram nonzero",
        "_array.data_types": (
            "astype e finfo get_default_dtype iinfo inf isdtype nan newaxis pi set_default_dtype"
        ),
        "_array.einsum": "einsum",
        "_array.elementwise": (
            "abs add clip conj copysign divide floor_divide fmod hypot imag maximum minimum "
            "multiply negative nextafter positive pow real reciprocal remainder sign square "
            "subtract where"
        ),
        "_array.functions": (
            "acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf exp exp2 expm1 floor "
            "log log1p log2 log10 logaddexp round rsqrt sin sinh sqrt tan tanh trunc"
        ),
        "_array.indexing": "gather put put_along_axis scatter take take_along_axis",
        "_array.inspection": "__array_namespace_info__",
        "_array.linear": "matmul tensordot vecdot",
        "_array.logic": (
            "bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift "
            "bitwise_xor equal greater greater_equal iscomplex isfinite isinf isnan isneginf "
            "isposinf isreal less less_equal logical_and logical_not logical_or logical_xor "
            "not_equal signbit"
        ),
        "_array.manipulation": (
            "broadcast_arrays broadcast_shapes broadcast_to cat concat expand_dims flip "
            "matrix_transpose meshgrid moveaxis permute_dims repeat repeat_interleave reshape "
            "roll split squeeze stack swapaxes tile unstack"
        ),
        "_array.matrices": "diag eye tril triu",
        "_array.promotion": "can_cast promote_types result_type",
        "_array.reductions": (
            "all any argmax argmin count_nonzero logsumexp max mean min nanmax nanmean nanmin "
            "nanprod nanstd nansum nanvar prod std sum var"
        ),
        "_array.scans": (
            "cumprod cumsum cumulative_max cumulative_min cumulative_prod cumulative_sum diff"
        ),
        "_array.sorting": (
            "argsort isin searchsorted sort topk unique_all unique_counts unique_inverse "
            "unique_values"
        ),
        "_array.special": (
            "angle bitwise_count deg2rad fabs fix float_power fmax fmin gcd heaviside i0 lcm "
            "ldexp logaddexp2 rad2deg rint sinc"
        ),
        "_files.gguf": "Gguf",
        "_files.gguf_writing": "save_gguf",
        "_files.npy": "load_npy save_npy",
        "_files.npz": "load_npz savez savez_compressed",
        "_files.safetensors": "SafeTensors load_safetensors save_safetensors",
        "_fuse.elementwise": "elementwise",
        "_fuse.fused": "fuse",
        "_fuse.reduction": "reduction",
        "_fuse.scan": "scan",
        "_grad.captured": "captured",
        "_grad.gradcheck": "gradcheck",
        "_grad.transforms": ("checkpoint custom_gradient grad stop_gradient value_and_grad vjp"),
    }.items()
}
# What most programs never use is imported when it is asked for, too: modules, and names of modules.
_MODULES = (
    *("bench", "cache", "checks", "fft", "linalg", "llm", "memory", "nn", "optim", "random"),
    *("schedule", "train", "tune"),
)
_RARE = {
    "_jit.lint": "lint",
    "_jit.pack": "pack use_pack",
    "_jit.slices": "slice_blocks",
    "_judging.inputs": "Inputs",
    "_judging.judge": "Judge judge",
    "_judging.task": "Task",
    "_judging.verdict": "Verdict",
    "_measure.profile": "annotate profile",
    "_measure.timing": "time time_kernel",
    "_sim.line_profile": "line_profile",
    "_sim.trace": "trace",
    "_support.libcuda": "libcuda_path",
}
_LATER = {name: name for name in _MODULES}
_LATER |= {name: home for home, names in _RARE.items() for name in names.split()}
_LATER |= {name: home for home, names in _TOPICS.items() for name in names}

__all__ = [*_IMPORTED, "__version__", *_LATER]


def __getattr__(name: str) -> object:
    if name in _LATER:
        import importlib

        module = importlib.import_module(f"kernwright.{_LATER[name]}")
        value = module if name in _MODULES else _typed(getattr(module, name))
        globals()[name] = value
        return value
    if name not in _DTYPES:
        raise _missing(__name__, name, __dir__())
    value = _core._dtype(name).type
    globals()[name] = value
    return value


_publish(globals(), __all__)

# A program that has imported einops wants it to know our arrays. Others import kernwright.einops.
if "einops" in _sys.modules:
    import kernwright.einops as _einops


def __dir__() -> list[str]:
    return sorted([*__all__, *_DTYPES])
