"""Batch normalisation, and its gradient: channels lie along the second axis."""

from __future__ import annotations

import functools
from typing import Any

import kernwright
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["batch_norm", "batch_norm_backward"]

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def batch_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Array:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) * weight + bias of an array (N, C, ...), for each channel.

    In training mean and variance are those of the channel in `x`, summed in float32 (float64 for
    float64), and the running ones, (C,) of floats, are moved in place: running = (1 - momentum)
    running + momentum * new, with the unbiased variance. Else the running ones are used. The
    result has the dtype of `x`; weight and bias are (C,) of floats or None. Raises InvalidArgument.

    >>> x = kw.asarray([[1.0, 10.0], [3.0, 30.0]])
    >>> kw.nn.batch_norm(x, training=True).numpy().round(3)
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """
    array, channels = _channels(x, "x")
    named = {"running_mean": running_mean, "running_var": running_var,
             "weight": weight, "bias": bias}  # fmt: skip
    given = {name: _of_channels(value, name, channels) for name, value in named.items()}
    mean, variance = given["running_mean"], given["running_var"]
    eps = _not_negative(eps)
    if (mean is None) != (variance is None):
        raise InvalidArgument("pass running_mean and running_var, or neither")
    if training:
        if not 0 <= float(momentum) <= 1:
            raise InvalidArgument(f"momentum is from 0 to 1, got {momentum}")
        own_mean, own_variance, count = _statistics(array)
        if mean is not None and variance is not None:
            _move(mean, own_mean, momentum)
            _move(variance, own_variance * (count / (count - 1)), momentum)
        mean, variance = own_mean, own_variance
    elif mean is None or variance is None:
        raise InvalidArgument("without training there must be running_mean and running_var")
    made: Array = _fused()[0](
        array, *(_spread(each, array.ndim) for each in (mean, variance, given["weight"],
                                                       given["bias"])), eps,
    )  # fmt: skip
    return made


def batch_norm_backward(
    dy: Any, x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    training: bool = True, eps: float = 1e-5,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """(dx, dweight, dbias) for the gradient `dy` of y = batch_norm(x, ...) with these arguments.

    In training, with x_hat = (x - mean) / sqrt(variance + eps): dx = weight / sqrt(variance + eps)
    * (dy - mean(dy) - x_hat * mean(dy * x_hat)); else without the means. dweight = sum(dy * x_hat)
    and dbias = sum(dy) over all but the channels, float32 (float64 for float64), in a fixed order.

    >>> x = kw.asarray([[1.0], [3.0]])
    >>> dx, dweight, dbias = kw.nn.batch_norm_backward(x, x)
    >>> dweight.numpy().round(3).tolist(), dbias.numpy().tolist()
    ([2.0], [4.0])
    """
    array, channels = _channels(x, "x")
    gradient, _ = _channels(dy, "dy")
    if gradient.shape != array.shape:
        raise InvalidArgument(f"dy has the shape of x, {array.shape}, got {gradient.shape}")
    scale = _of_channels(weight, "weight", channels)
    if training:
        mean, variance, count = _statistics(array)
    else:
        named = {"running_mean": running_mean, "running_var": running_var}
        found = [_of_channels(value, name, channels) for name, value in named.items()]
        if found[0] is None or found[1] is None:
            raise InvalidArgument("without training there must be running_mean and running_var")
        mean, variance, count = found[0], found[1], 1
    over = _axes(array)
    _, products, slope = _fused()
    ndim, eps = array.ndim, _not_negative(eps)
    wide = _wide(array)
    spread = [_spread(each, ndim) for each in (mean, variance)]
    dbias = kernwright.sum(gradient.astype(wide), axis=over)
    dweight = kernwright.sum(products(gradient, array, *spread, eps), axis=over)
    share = 1.0 / count if training else 0.0
    dx = slope(
        gradient, array, *spread, _spread(scale, ndim), _spread(dbias, ndim),
        _spread(dweight, ndim), share, eps,
    )  # fmt: skip
    return dx, dweight, dbias


def _channels(value: Any, name: str) -> tuple[Array, int]:
    array = device_array(value, name)
    if array.ndim < 2 or array.dtype.name not in _FLOATS:
        raise InvalidArgument(f"{name} is (N, C, ...) of floats, got {array.shape} {array.dtype}")
    return array, array.shape[1]


def _of_channels(value: Any, name: str, channels: int) -> Array | None:
    if value is None:
        return None
    array = device_array(value, name)
    if array.shape != (channels,) or array.dtype.name not in _FLOATS:
        raise InvalidArgument(f"{name} is ({channels},) of floats, got {array.shape} {array.dtype}")
    return array


def _axes(array: Array) -> tuple[int, ...]:
    return tuple(axis for axis in range(array.ndim) if axis != 1)


def _wide(array: Array) -> str:
    return "float64" if array.dtype.name == "float64" else "float32"


def _statistics(array: Array) -> tuple[Array, Array, int]:
    """Mean and variance of each channel, and of how many elements."""
    count = array.size // array.shape[1] if array.shape[1] else 0
    if count < 2:
        raise InvalidArgument(f"training takes more than one element a channel, got {array.shape}")
    values = array.astype(_wide(array), copy=False)
    over = _axes(array)
    return kernwright.mean(values, axis=over), kernwright.var(values, axis=over), count


def _move(running: Array, new: Array, momentum: float) -> None:
    kept = running.astype(new.dtype) * (1 - momentum) + new * momentum
    running[...] = kept.astype(running.dtype)


def _spread(value: Array | None, ndim: int) -> Array | None:
    """(C,) as (1, C, 1, ...)."""
    return None if value is None else value.reshape((1, -1, *(1,) * (ndim - 2)))


def _not_negative(eps: Any) -> float:
    if not float(eps) >= 0:
        raise InvalidArgument(f"eps is not negative, got {eps}")
    return float(eps)


@functools.cache
def _fused() -> tuple[Any, Any, Any]:
    """The norm, dy * x_hat, and dx, each one kernel."""
    kw = kernwright

    def wide(*arrays: Any) -> Any:
        double = any(each is not None and each.dtype.name == "float64" for each in arrays[:1])
        dtype = "float64" if double else "float32"
        return [None if each is None else each.astype(dtype) for each in arrays]

    def norm(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: Any) -> Any:
        dtype = x.dtype
        x, mean, variance, weight, bias = wide(x, mean, variance, weight, bias)
        y = (x - mean) * kw.rsqrt(variance + eps)
        if weight is not None:
            y = y * weight
        if bias is not None:
            y = y + bias
        return y.astype(dtype)

    def products(dy: Any, x: Any, mean: Any, variance: Any, eps: Any) -> Any:
        x, dy, mean, variance = wide(x, dy, mean, variance)
        return dy * ((x - mean) * kw.rsqrt(variance + eps))

    def slope(
        dy: Any, x: Any, mean: Any, variance: Any, weight: Any, total: Any, product: Any,
        share: Any, eps: Any,
    ) -> Any:  # fmt: skip
        dtype = x.dtype
        x, dy, mean, variance, weight = wide(x, dy, mean, variance, weight)
        root = kw.rsqrt(variance + eps)
        inner = dy - total * share - (x - mean) * root * (product * share)
        if weight is not None:
            inner = inner * weight
        return (inner * root).astype(dtype)

    return kw.fuse(norm), kw.fuse(products), kw.fuse(slope)
