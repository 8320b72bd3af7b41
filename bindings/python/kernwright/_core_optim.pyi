"""Optimisers, sampling and quantised rows in the extension module, for `optim` and `nn`."""

from typing import Any

from kernwright._core_array import Array

def _optimizer_step(
    rule: str,
    params: list[Any],
    grads: list[Any],
    first: list[Any],
    second: list[Any],
    third: list[Any],
    masters: list[Any],
    options: dict[str, Any],
    /,
) -> None: ...
def _optimizer_steps(parts: list[Any], advance: dict[str, Any], /) -> None: ...
def _gradient_factor(
    near: Array,
    norm: Array | None,
    loss_scale: Array | None,
    given: Array | None,
    tokens: Array | None,
    limit: float,
    /,
) -> tuple[Array, Array, Array]: ...
def _blend_tensors(
    to: list[Any],
    from_: list[Any],
    alpha: float,
    beta: float,
    total: Array | None,
    weight: Array | None,
    number: int,
    is_factor: bool,
    /,
) -> None: ...
def _gradient_norm(grads: list[Any], limit: float, order: float, /) -> tuple[Array, Array]: ...
def _scale_tensors(tensors: list[Any], scale: Array, /) -> None: ...
def _sample(
    out: Array,
    logits: Array,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    min_p: Any,
    penalty: Any,
    previous: Array | None,
    seed: Any,
    step: Any,
    counter: Array | None,
    /,
) -> None: ...
def _quantize_rows(
    x: Array, dtype: Any, per_tensor: bool, scale: Array | None, /
) -> tuple[Array, Array]: ...
def _quantize_blocks(x: Array, block: int, dtype: Any, /) -> tuple[Array, Array]: ...
def _dequantize_rows(values: Array, scale: Array, dtype: Any, /) -> Array: ...
