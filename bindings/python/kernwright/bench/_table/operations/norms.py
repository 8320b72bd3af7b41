"""Softmax and norms, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernwright import nn, rsqrt
from kernwright.bench._table.work import (
    FLOATS,
    TOLERANCES,
    Operation,
    Shape,
    Work,
    by_rows,
    bytes_of,
    matrix,
    normal,
)

_EPSILON = 1e-5
_BOTH = ("float32", "bfloat16")
_TRITON_ROW = 1 << 15


def softmax_of(x: Any) -> Any:
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def normalised(x: Any, centred: bool) -> tuple[Any, Any]:
    """x_hat and its divisor."""
    if centred:
        x = x - x.mean(-1, keepdims=True)
    divisor = np.sqrt((x * x).mean(-1, keepdims=True) + _EPSILON)
    return x / divisor, divisor


def _in_triton(shape: Shape, call: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """For rows that one program holds in its registers."""
    return {"triton": call} if shape[-1] <= _TRITON_ROW else {}


def _softmax(shape: Shape, dtype: str) -> Work:
    x = normal(shape, dtype)

    def peer(torch: Any, x: Any) -> Any:
        return torch.softmax(x, -1)

    return Work(
        [x],
        nn.softmax,
        2 * x.nbytes,
        by_rows(softmax_of, [x]),
        tolerance=TOLERANCES[dtype],
        peers={
            "torch": peer,
            "compile": peer,
            **_in_triton(shape, lambda kernels, x: kernels.softmax(x)),
        },
    )


def _softmax_backward(shape: Shape, dtype: str) -> Work:
    dy, y = normal(shape, dtype), nn.softmax(normal(shape, dtype, 1))
    arrays = [dy, y]
    return Work(
        arrays,
        nn.softmax_backward,
        3 * y.nbytes,
        by_rows(lambda dy, y: y * (dy - (dy * y).sum(-1, keepdims=True)), arrays),
        tolerance=TOLERANCES[dtype],
        peers={"torch": lambda torch, dy, y: torch._softmax_backward_data(dy, y, -1, y.dtype)},
    )


def _rms_norm(shape: Shape, dtype: str) -> Work:
    x, weight = normal(shape, dtype), normal(shape[-1:], dtype, 1)
    arrays = [x, weight]

    def peer(torch: Any, x: Any, weight: Any) -> Any:
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, _EPSILON)

    return Work(
        arrays,
        lambda x, weight: nn.rms_norm(x, weight, _EPSILON),
        2 * x.nbytes + weight.nbytes,
        by_rows(lambda x, weight: normalised(x, False)[0] * weight, arrays, shared=[1]),
        tolerance=TOLERANCES[dtype],
        peers={
            "torch": peer,
            "compile": peer,
            **_in_triton(shape, lambda kernels, x, w: kernels.rms_norm(x, w, _EPSILON)),
        },
    )


def _layer_norm(shape: Shape, dtype: str) -> Work:
    x, weight, bias = normal(shape, dtype), *(normal(shape[-1:], dtype, i) for i in (1, 2))
    arrays = [x, weight, bias]

    def peer(torch: Any, x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, _EPSILON)

    return Work(
        arrays,
        lambda x, weight, bias: nn.layer_norm(x, weight, bias, _EPSILON),
        bytes_of(x, x, weight, bias),
        by_rows(lambda x, w, b: normalised(x, True)[0] * w + b, arrays, shared=[1, 2]),
        tolerance=TOLERANCES[dtype],
        peers={"torch": peer, "compile": peer},
    )


def _backward_reference(centred: bool) -> Callable[..., Any]:
    def dx(dy: Any, x: Any, weight: Any) -> Any:
        hat, divisor = normalised(x, centred)
        g = dy * weight
        mean = g.mean(-1, keepdims=True) if centred else 0
        return (g - mean - hat * (g * hat).mean(-1, keepdims=True)) / divisor

    return dx


def _statistics(x: Any, centred: bool) -> list[Any]:
    """Mean, where it is wanted, and 1 / divisor in float32, which torch's gradients begin with."""
    wide = x.astype("float32") if x.dtype.name != "float64" else x
    mean = wide.mean(axis=-1, keepdims=True)
    if not centred:
        return [rsqrt((wide * wide).mean(axis=-1, keepdims=True) + _EPSILON)]
    wide = wide - mean
    return [mean, rsqrt((wide * wide).mean(axis=-1, keepdims=True) + _EPSILON)]


def _rms_norm_backward(shape: Shape, dtype: str) -> Work:
    dy, x, weight = normal(shape, dtype), normal(shape, dtype, 1), normal(shape[-1:], dtype, 2)

    def peer(torch: Any, dy: Any, x: Any, weight: Any, inverse: Any) -> Any:
        return torch.ops.aten._fused_rms_norm_backward(
            dy, x, list(x.shape[-1:]), inverse, weight, [True, True]
        )

    def expect() -> Iterator[Any]:
        return by_rows(_backward_reference(False), [dy, x, weight], shared=[2])()

    return Work(
        [dy, x, weight, *_statistics(x, False)],
        lambda dy, x, weight, _: nn.rms_norm_backward(dy, x, weight, _EPSILON),
        3 * x.nbytes,
        expect,
        tolerance=TOLERANCES[dtype],
        peers={"torch": peer},
    )


def _layer_norm_backward(shape: Shape, dtype: str) -> Work:
    dy, x, weight = normal(shape, dtype), normal(shape, dtype, 1), normal(shape[-1:], dtype, 2)

    def peer(torch: Any, dy: Any, x: Any, weight: Any, mean: Any, inverse: Any) -> Any:
        return torch.ops.aten.native_layer_norm_backward(
            dy, x, list(x.shape[-1:]), mean, inverse, weight, weight, [True, True, True]
        )

    def expect() -> Iterator[Any]:
        return by_rows(_backward_reference(True), [dy, x, weight], shared=[2])()

    return Work(
        [dy, x, weight, *_statistics(x, True)],
        lambda dy, x, weight, *_: nn.layer_norm_backward(dy, x, weight, _EPSILON),
        3 * x.nbytes,
        expect,
        tolerance=TOLERANCES[dtype],
        peers={"torch": peer},
    )


def _operation(name: str, make: Any, shapes: Any, dtypes: Any = _BOTH) -> Operation:
    return Operation(name, "norms", make, shapes, (16, 300), matrix, dtypes, FLOATS)


OPERATIONS = [
    _operation("softmax", _softmax, ((8192, 8192), (32768, 4096), (4096, 65536), (1, 128256),
                                     (256, 4096))),
    _operation("softmax backward", _softmax_backward, ((8192, 8192), (32768, 4096))),
    _operation("rms_norm", _rms_norm, ((8192, 8192), (16384, 4096), (131072, 128), (256, 4096))),
    _operation("layer_norm", _layer_norm, ((8192, 8192), (16384, 4096))),
    _operation("rms_norm backward", _rms_norm_backward, ((8192, 8192), (4096, 16384))),
    _operation("layer_norm backward", _layer_norm_backward, ((8192, 8192),)),
]  # fmt: skip
