"""Types of the extension module: softmax and norms, to which kernwright.nn gives names."""

from typing import Any

from kernwright._core_array import Array

def _softmax(
    x: Any, axis: int, scale: float, mask: Any, dtype: Any, out: Any, log: bool, /
) -> Array: ...
def _softmax_backward(dy: Any, y: Any, axis: int, scale: float, log: bool, /) -> Array: ...
def _norm(
    kind: str,
    x: Any,
    weight: Any,
    bias: Any,
    eps: float,
    residual: Any,
    quantize: Any,
    groups: int | None,
    /,
    out: tuple[Any, Any, Any] | None = None,
) -> tuple[Array, Array | None, Array | None]: ...
def _norm_backward(
    kind: str,
    dy: Any,
    x: Any,
    weight: Any,
    eps: float,
    bias: bool,
    groups: int | None,
    /,
    added: Any = None,
    columns: bool = False,
) -> tuple[Array, Array | None, Array | None, Array | None]: ...
def _l2_norm(x: Any, axis: int, eps: float, /, out: Any = None) -> Array: ...
def _l2_norm_backward(dy: Any, x: Any, axis: int, eps: float, /) -> Array: ...
