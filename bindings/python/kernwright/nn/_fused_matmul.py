"""A product of matrices that ends in an expression of one's own.

>>> import kernwright as kw
>>> a, b = kw.ones((2, 16), "float16"), kw.ones((16, 3), "float16")
>>> kw.nn.fused_matmul(a, b, "fminf(x, 9.5) + bias", bias=kw.arange(3, dtype="float16")).numpy()
array([[ 9.5, 10.5, 11.5],
       [ 9.5, 10.5, 11.5]], dtype=float16)
"""

from __future__ import annotations

import re
from typing import Any

from kernwright._core import Array, _gemm
from kernwright.errors import ArgumentError

__all__ = ["fused_matmul"]

_NAMES = re.compile(r"[A-Za-z_]\w*")
# Numbers with a point or an exponent and no suffix: CUDA would compute in double with them.
_DOUBLES = re.compile(r"(?<![\w.])(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])")


def fused_matmul(
    a: Any,
    b: Any,
    epilogue: str,
    *,
    bias: Any = None,
    c: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    dtype: Any = None,
    precision: str | None = None,
) -> Array:
    """a @ b with `epilogue`, an expression of CUDA, in place of each sum before it is stored.

    a (..., m, k) and b (..., k, n) of float16, bfloat16, float8 or float32, which precision="tf32"
    rounds for the tensor cores. The expression is computed in float and may name

    - x: the sum, in float32;
    - bias: of the column; `bias` is (n,), float16, bfloat16 or float32;
    - c: the element of `c`, of the result's shape, of such a dtype;
    - alpha, beta: these numbers, which may change from call to call;
    - CUDA's functions (fmaxf, expf, tanhf ...) and relu, silu, gelu, gelu_tanh, sigmoid, softplus,
      clip(x, low, high). Numbers like 0.5 count as 0.5f.

    The result is `dtype`, or that of a @ b. float8_e4m3fn, float8_e5m2 and int8 are for quantised
    outputs, where the expression multiplies by 1 / scale: rounded to the nearest, ties to even,
    int8 within -128 to 127 and 0 for NaN. They go with no `c`.

    One kernel, on tensor cores where linear() and matmul() use them; it is compiled at an
    expression's first use. Products that are split along k end in a second kernel. Raises
    CompileError, with the line of the expression, for what does not compile; ArgumentError for bias
    or c that are named and not given, or given and not named; and InvalidArgument for shapes and
    dtypes.

    >>> x, w = kw.ones((2, 16), "bfloat16"), kw.ones((4, 16), "bfloat16")
    >>> kw.nn.fused_matmul(x, w.T, "relu(x) * c", c=kw.ones((2, 4), "bfloat16")).shape
    (2, 4)
    """
    if not isinstance(epilogue, str) or not epilogue.strip():
        raise ArgumentError(
            f"fused_matmul: the epilogue is an expression of CUDA, not {epilogue!r}"
        )
    _require_balanced(epilogue)
    names = set(_NAMES.findall(epilogue))
    for name, given in (("bias", bias), ("c", c)):
        if (given is not None) != (name in names):
            state = "names it, and none is given" if given is None else "does not name it"
            raise ArgumentError(f"fused_matmul: {name}: the epilogue {epilogue!r} {state}")
    expression = _DOUBLES.sub(lambda number: number.group() + "f", epilogue)
    return _gemm(
        a,
        b,
        bias=bias,
        c=c,
        alpha=alpha,
        beta=beta,
        dtype=dtype,
        precision=precision,
        expression=expression,
    )


def _require_balanced(epilogue: str) -> None:
    """An expression that closes more parentheses than it opened would end the kernel's own."""
    depth = 0
    for sign in epilogue:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            break
    if depth:
        raise ArgumentError(f"fused_matmul: parentheses of the epilogue {epilogue!r} do not match")
