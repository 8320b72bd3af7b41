"""Softmax and its logarithm, forward and backward."""

from __future__ import annotations

from typing import Any

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["gumbel_softmax", "log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


def softmax(
    x: Array,
    axis: int = -1,
    *,
    scale: float = 1.0,
    mask: Array | None = None,
    dtype: Any = None,
    out: Array | None = None,
) -> Array:
    """exp(s - max(s)) / sum(exp(s - max(s))) along `axis`, where s = x * scale + mask.

    `x` is of float16, bfloat16 or float32, which are computed in float32, or of float64; any shape
    but (), any strides. The result has its shape, and its dtype unless `dtype` names another of
    these. `mask` is broadcast to the shape of `x`: where a bool mask is False an element counts as
    -inf, a mask of numbers is added. `out` takes the result, and is returned; it may be `x`.

    A row that holds NaN or +inf, or -inf only, becomes NaN; with a mask a row of -inf only becomes
    0. Raises InvalidArgument for other dtypes, for an axis out of range and for shapes that do not
    match.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([[1.0, 1.0, 3.0]], np.float32))
    >>> keep = kw.asarray(np.array([True, True, False]))
    >>> kw.nn.softmax(x, mask=keep).numpy().tolist()
    [[0.5, 0.5, 0.0]]
    """
    return _core._softmax(x, axis, scale, mask, dtype, out, False)


def log_softmax(
    x: Array,
    axis: int = -1,
    *,
    scale: float = 1.0,
    mask: Array | None = None,
    dtype: Any = None,
    out: Array | None = None,
) -> Array:
    """The logarithm of softmax(): s - max(s) - log(sum(exp(s - max(s)))).

    Finite where softmax() itself would be too small for its dtype. Arguments and errors are those
    of softmax(); with a mask a row of -inf only becomes -inf.

    >>> import numpy as np, kernwright as kw
    >>> x = kw.asarray(np.array([0.0, -1000.0], np.float32))
    >>> kw.nn.log_softmax(x).numpy().tolist()
    [0.0, -1000.0]
    """
    return _core._softmax(x, axis, scale, mask, dtype, out, True)


def softmax_backward(dy: Array, y: Array, axis: int = -1, *, scale: float = 1.0) -> Array:
    """The gradient of x for the gradient `dy` of y = softmax(x, axis, scale=scale).

    dx = scale * y * (dy - sum(dy * y)), the sum along `axis`. `dy` and `y` have one shape and
    dtype, which the result takes. What a mask hid has a gradient of 0. Raises InvalidArgument for
    other dtypes than those of softmax(), and for shapes or dtypes that differ.

    >>> import numpy as np, kernwright as kw
    >>> y = kw.asarray(np.array([0.5, 0.5], np.float32))
    >>> dy = kw.asarray(np.array([1.0, 0.0], np.float32))
    >>> kw.nn.softmax_backward(dy, y).numpy().tolist()
    [0.25, -0.25]
    """
    return _core._softmax_backward(dy, y, axis, scale, False)


def log_softmax_backward(dy: Array, y: Array, axis: int = -1, *, scale: float = 1.0) -> Array:
    """The gradient of x for the gradient `dy` of y = log_softmax(x, axis, scale=scale).

    dx = scale * (dy - exp(y) * sum(dy)), the sum along `axis`. Arguments and errors are those of
    softmax_backward().

    >>> import numpy as np, kernwright as kw
    >>> y = kw.asarray(np.log(np.array([0.5, 0.5], np.float32)))
    >>> dy = kw.asarray(np.array([1.0, 0.0], np.float32))
    >>> kw.nn.log_softmax_backward(dy, y).numpy().tolist()
    [0.5, -0.5]
    """
    return _core._softmax_backward(dy, y, axis, scale, True)


def gumbel_softmax(
    logits: Any, tau: float = 1.0, hard: bool = False, axis: int = -1, *,
    seed: int | None = None,
) -> Array:  # fmt: skip
    """softmax((logits + g) / tau) along `axis` with Gumbel numbers g: a sample of categories that
    has a gradient (E. Jang et al., "Categorical reparameterization with Gumbel-softmax", 2017).

    With `hard` 1 at its largest element and 0 elsewhere. `tau` is above 0. Without a seed the
    default generator of kw.random gives g. Raises InvalidArgument.

    >>> kw.nn.gumbel_softmax(kw.asarray([[0.0, 50.0]]), hard=True, seed=1).numpy()
    array([[0., 1.]], dtype=float32)
    """
    array = device_array(logits, "logits")
    if not 0 < float(tau) < float("inf"):
        raise InvalidArgument(f"tau is above 0 and finite, got {tau}")
    if not kernwright.isdtype(array.dtype, "real floating"):
        raise InvalidArgument(f"logits are floating-point numbers, not {array.dtype}")
    wide = "float64" if array.dtype.name == "float64" else "float32"
    noise = kernwright.random.gumbel(array.shape, wide, seed=seed, device=array.device)
    soft = softmax((array.astype(wide) + noise) / float(tau), axis)
    if not hard:
        return soft.astype(array.dtype)
    chosen = kernwright.argmax(soft, axis=axis, keepdims=True)
    places = kernwright.arange(array.shape[axis], device=array.device)
    shape = [1] * array.ndim
    shape[axis] = array.shape[axis]
    return (places.reshape(shape) == chosen).astype(array.dtype)
