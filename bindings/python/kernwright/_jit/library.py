"""Operations of the kernel library by name, called with arrays of a shape and without a launch."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kernwright import _core
from kernwright.errors import ArgumentError

Call = Callable[[], object]


class Operands:
    """Makes the arrays of one call; their values are of no account."""

    def __init__(self, dtype: Any, shape: tuple[int, ...], device: Any) -> None:
        self.dtype, self.shape, self.device = dtype, shape, device

    def array(self, *shape: int, dtype: Any = None) -> _core.Array:
        return _core.empty(shape or self.shape, dtype or self.dtype, device=self.device)

    def row(self) -> _core.Array:
        return self.array(self.shape[-1])


def _words(text: str) -> list[str]:
    return text.split()


_UNARY = _words(
    "abs acos acosh asin asinh atan atanh cbrt ceil cos cosh erf exp exp2 expm1 floor log log1p "
    "log2 log10 negative reciprocal round rsqrt sign sin sinh sqrt square tan tanh trunc isfinite "
    "isinf isnan sum mean prod max min std var logsumexp argmax argmin count_nonzero nansum "
    "nanmean nanprod nanmax nanmin nanstd nanvar"
)
_BINARY = _words(
    "add subtract multiply divide maximum minimum pow atan2 hypot logaddexp equal not_equal less "
    "less_equal greater greater_equal"
)
_LAST_AXIS = _words("cumulative_sum cumulative_prod cumulative_max cumulative_min sort argsort")
_ACTIVATIONS = [name for name in _core._activations() if name not in ("gelu_tanh", "tanh")]
_NN_UNARY = [*_ACTIVATIONS, *_words("softmax log_softmax l2_norm")]
_NN_BINARY = [f"{name}_backward" for name in _ACTIVATIONS] + _words(
    "softmax_backward log_softmax_backward geglu glu reglu swiglu mse_loss l1_loss huber_loss "
    "mse_loss_grad"
)


def _matrix(of: Operands) -> tuple[int, int]:
    rows = 1
    for extent in of.shape[:-1]:
        rows *= extent
    return rows, of.shape[-1]


def _cross_entropy(grad: bool) -> Callable[[Any, Operands], Call]:
    def make(kw: Any, of: Operands) -> Call:
        rows, classes = _matrix(of)
        logits, targets = of.array(rows, classes), of.array(rows, dtype="int64")
        function = kw.nn.cross_entropy_grad if grad else kw.nn.cross_entropy
        return lambda: function(logits, targets)

    return make


def _norm(name: str, backward: bool) -> Callable[[Any, Operands], Call]:
    def make(kw: Any, of: Operands) -> Call:
        x, weight = of.array(), of.row()
        if backward:
            dy = of.array()
            return lambda: getattr(kw.nn, f"{name}_backward")(dy, x, weight)
        return lambda: getattr(kw.nn, name)(x, weight)

    return make


def _of_one(name: str, within: str = "", **options: Any) -> Callable[[Any, Operands], Call]:
    def make(kw: Any, of: Operands) -> Call:
        x, function = of.array(), getattr(getattr(kw, within) if within else kw, name)
        return lambda: function(x, **options)

    return make


def _of_two(name: str, within: str = "") -> Callable[[Any, Operands], Call]:
    def make(kw: Any, of: Operands) -> Call:
        x, y, function = (
            of.array(),
            of.array(),
            getattr(getattr(kw, within) if within else kw, name),
        )
        return lambda: function(x, y)

    return make


def _embedding(kw: Any, of: Operands) -> Call:
    ids, table = of.array(64, dtype="int64"), of.array(*_matrix(of))
    return lambda: kw.nn.embedding(ids, table)


def _take(kw: Any, of: Operands) -> Call:
    x, places = of.array(*_matrix(of)), of.array(64, dtype="int64")
    return lambda: kw.take(x, places, axis=0)


def _matmul(kw: Any, of: Operands) -> Call:
    rows, cols = _matrix(of)
    a, b = of.array(rows, cols), of.array(cols, rows)
    return lambda: kw.matmul(a, b)


def _linear(kw: Any, of: Operands) -> Call:
    x, weight = of.array(*_matrix(of)), of.array(of.shape[-1], of.shape[-1])
    return lambda: kw.nn.linear(x, weight)


def _query(of: Operands) -> tuple[int, ...]:
    """The shape as that of a query: batch, heads, tokens, head_dim."""
    return (1,) * (4 - len(of.shape)) + of.shape


def _attention(kw: Any, of: Operands) -> Call:
    q, k, v = (of.array(*_query(of)) for _ in range(3))
    return lambda: [kw.nn.attention(q, k, v, is_causal=causal) for causal in (False, True)]


def _attention_backward(kw: Any, of: Operands) -> Call:
    arrays = [of.array(*_query(of)) for _ in range(5)]
    lse = of.array(*_query(of)[:-1], dtype="float32")
    gradients = kw.nn.attention_backward
    return lambda: [gradients(*arrays, lse, is_causal=causal) for causal in (False, True)]


def _decode_attention(kw: Any, of: Operands) -> Call:
    *rest, _, dim = _query(of)
    query, k, v = of.array(*rest, 1, dim), of.array(*_query(of)), of.array(*_query(of))
    lengths = of.array(rest[0], dtype="int32")
    return lambda: kw.nn.decode_attention(query, k, v, lengths)


def _astype(kw: Any, of: Operands) -> Call:
    x, y = of.array(), of.array(dtype="float32")
    return lambda: (kw.astype(x, "float32", copy=True), kw.astype(y, of.dtype, copy=True))


def _copy(kw: Any, of: Operands) -> Call:
    view = of.array()[..., ::2]
    return lambda: view.copy()


def _transpose(kw: Any, of: Operands) -> Call:
    view = of.array(*_matrix(of)).T
    return lambda: view.copy()


OPERATIONS: dict[str, Callable[[Any, Operands], Call]] = {
    **{name: _of_one(name) for name in _UNARY},
    **{name: _of_two(name) for name in _BINARY},
    **{name: _of_one(name, axis=-1) for name in _LAST_AXIS},
    **{name: _of_one(name, "nn") for name in _NN_UNARY},
    **{name: _of_two(name, "nn") for name in _NN_BINARY},
    **{name: _norm(name, False) for name in ("rms_norm", "layer_norm")},
    **{f"{name}_backward": _norm(name, True) for name in ("rms_norm", "layer_norm")},
    "sum_rows": _of_one("sum", axis=-1),
    "sum_columns": _of_one("sum", axis=0),
    "astype": _astype,
    "copy": _copy,
    "transpose": _transpose,
    "cross_entropy": _cross_entropy(False),
    "cross_entropy_grad": _cross_entropy(True),
    "embedding": _embedding,
    "take": _take,
    "matmul": _matmul,
    "linear": _linear,
    "attention": _attention,
    "attention_backward": _attention_backward,
    "decode_attention": _decode_attention,
}

DTYPES = ("float32", "float16", "bfloat16")
SHAPES = ((256, 1024), (256, 4096), (256, 8192))


class Prepared(NamedTuple):
    """One operation with its arguments; `run` compiles what it needs, or launches."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    device: Any

    def make(self) -> Call:
        import kernwright as kw

        return OPERATIONS[self.name](kw, Operands(self.dtype, self.shape, self.device))

    def compile(self) -> None:
        """Compiles and loads the kernels that the call launches, and launches none."""
        _core._compile_only(self.make())


def check_name(name: str, what: str) -> str:
    """The name of an operation. Throws ArgumentError, with a name like it, for another str."""
    if name in OPERATIONS:
        return name
    near = difflib.get_close_matches(name, OPERATIONS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; operations are {', '.join(OPERATIONS)}"
    raise ArgumentError(
        f"{what} takes kernels, modules and names of operations, got a str that names none: "
        f"{name[:60]!r}{hint}"
    )


def prepared(
    names: Iterable[str], dtypes: Any, shapes: Any, device: Any, what: str
) -> list[Prepared]:
    """Every operation with every element type and shape. Throws ArgumentError."""
    chosen_dtypes = DTYPES if dtypes is None else dtypes
    if isinstance(chosen_dtypes, str) or not isinstance(chosen_dtypes, Sequence):
        raise ArgumentError(f'{what} takes a list of element types, such as dtypes=["float16"]')
    chosen_shapes = SHAPES if shapes is None else shapes
    if not isinstance(chosen_shapes, Sequence) or isinstance(chosen_shapes, str):
        raise ArgumentError(f"{what} takes a list of shapes, such as shapes=[(64, 4096)]")
    for shape in chosen_shapes:
        extents = tuple(shape) if isinstance(shape, Sequence) else ()
        if not extents or not all(isinstance(e, int) and e > 0 for e in extents):
            raise ArgumentError(f"{what}: {shape!r} is no shape of whole numbers above 0")
    texts = [str(getattr(dtype, "__name__", dtype)) for dtype in chosen_dtypes]
    return [
        Prepared(check_name(name, what), dtype, tuple(shape), device)
        for name in names
        for dtype in texts
        for shape in chosen_shapes
    ]


def record(path: str, calls: Iterable[Prepared]) -> None:
    """Appends the compiles of these calls to the file, as KERNWRIGHT_RECORD does: in a process of
    its own, which has compiled nothing yet."""
    import json
    import os
    import subprocess
    import sys

    rows = json.dumps([call[:3] for call in calls])
    code = (
        "import json, sys; from kernwright import _core; from kernwright._jit import library\n"
        "for name, dtype, shape in json.loads(sys.stdin.read()):\n"
        "    library.Prepared(name, dtype, tuple(shape), _core.current_device()).compile()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=rows, env={**os.environ, "KERNWRIGHT_RECORD": path}, capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        raise ArgumentError(f"the library's operations were not compiled: {run.stderr[-500:]}")
