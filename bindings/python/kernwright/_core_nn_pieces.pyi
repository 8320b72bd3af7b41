"""Types of the extension module: activations, embeddings, losses, positions."""

from collections.abc import Sequence
from typing import Any

from kernwright._core_array import Array

def _activations() -> dict[str, int]: ...
def _activate(name: str, x: Any, a: float, b: float) -> Array: ...
def _activate_backward(name: str, grad: Any, x: Any, a: float, b: float) -> Array: ...
def _bias_activate(name: str, x: Any, bias: Any, a: float, b: float) -> Array: ...
def _bias_activate_backward(
    name: str, grad: Any, x: Any, bias: Any, a: float, b: float
) -> tuple[Array, Array]: ...
def _gate(name: str, gate: Any, up: Any) -> Array: ...
def _gate_backward(name: str, grad: Any, gate: Any, up: Any) -> Array | tuple[Array, Array]: ...
def _dropout(x: Any, p: float, seed: int, offset: int, counter: Any) -> Array: ...
def _recurrent(
    cell: str,
    gates: Sequence[Any],
    weights: Sequence[Any],
    biases: Sequence[Any],
    first: tuple[Any, Any],
    last: tuple[Any, Any],
    batch_first: bool,
    keep: bool,
    plan: tuple[int, int] | None,
) -> tuple[Array, list[Array], list[Array]]: ...
def _recurrent_backward(
    cell: str,
    grad_output: Any,
    grad_last: tuple[Any, Any],
    weights: Sequence[Any],
    saved: Sequence[Any],
    cells: Sequence[Any],
    output: Any,
    first: tuple[Any, Any],
    grad_first: tuple[Any, Any],
    batch_first: bool,
    plan: tuple[int, int] | None,
) -> tuple[list[Array], list[Array]]: ...
def _embedding(ids: Any, table: Any, scale: float, check: bool) -> Array: ...
def _embedding_backward(
    grad: Any, ids: Any, vocabulary: int, padding: int | None, scale: float
) -> Array: ...
def _cross_entropy(
    logits: Any,
    target: Any,
    reduction: str,
    label_smoothing: float,
    z_loss: float,
    ignore_index: int,
    gradient: bool,
    in_place: bool,
    upstream: Any,
    weight: Any = None,
) -> tuple[Array, Array]: ...  # the second is None without `gradient`
def _pointwise_loss(
    name: str,
    x: Any,
    target: Any,
    reduction: str,
    knob: float,
    value: bool,
    gradient: bool,
    upstream: Any,
) -> tuple[Array, Array]: ...  # the second is None without `gradient`
def _rope_attention_factor(
    dim: int, base: float, scaling: str, numbers: list[float], attention: float | None
) -> float: ...
def _rope_frequencies(
    device: Any, dim: int, base: float, scaling: str, numbers: list[float], divisors: Any
) -> Array: ...
def _rope_tables(
    device: Any,
    rows: int,
    first: int,
    dim: int,
    base: float,
    scaling: str,
    numbers: list[float],
    attention: float | None,
    divisors: Any,
) -> tuple[Array, Array]: ...
def _rope(
    q: Any,
    k: Any,
    cos: Any,
    sin: Any,
    positions: Any,
    offset: int,
    interleaved: bool,
    heads_first: bool,
    in_place: bool,
    inverse: bool,
    out: tuple[Any, Any] | None = None,
) -> Array | tuple[Array, Array]: ...
def _pope(
    x: Any,
    cos: Any,
    sin: Any,
    shifts: Any,
    grad: Any,
    positions: Any,
    offset: int,
    heads_first: bool,
) -> Array: ...
def _pope_shifts(
    grad: Any,
    x: Any,
    cos: Any,
    sin: Any,
    shifts: Any,
    positions: Any,
    offset: int,
    heads_first: bool,
) -> Array: ...
def _scale_tokens(
    x: Any, floor_scale: float, slope: float, positions: Any, offset: int, heads_first: bool
) -> Array: ...
def _alibi_slopes(device: Any, heads: int) -> Array: ...
def _alibi_bias(device: Any, heads: int, queries: int, keys: int, dtype: Any) -> Array: ...
def _split_qkv(
    qkv: Any, heads: int, kv_heads: int, heads_first: bool
) -> tuple[Array, Array, Array]: ...
def _merge_qkv(q: Any, k: Any, v: Any, heads_first: bool) -> Array: ...
def _linear(
    x: Any,
    weight: Any,
    bias: Any,
    scale: Any,
    residual: Any,
    activation: str,
    precision: str | None = None,
    norm: Any = None,
    eps: float = 0.0,
    gate: str = "",
) -> Array: ...
def _linear_into(
    out: Any,
    x: Any,
    weight: Any,
    bias: Any,
    scale: Any,
    residual: Any,
    activation: str,
    gate: str,
    precision: str | None,
    /,
) -> None: ...
def _skinny_product(
    x: Any,
    weight: Any,
    scale: Any = ...,
    bias: Any = ...,
    residual: Any = ...,
    activation: str = "",
    factor: float = 1.0,
    plan: list[int] = ...,
) -> Array: ...
def _grouped_product(
    x: Any,
    weights: Any,
    numbers: Any,
    kind: str,
    bias: Any = None,
    activation: str | None = None,
    gate: str | None = None,
    tile: tuple[int, int, int, int, bool, int] | None = None,
    mma_tile: tuple[int, int, int] | None = None,
    by_mma: bool = False,
    scale_a: Any = None,
    scale_b: Any = None,
    dtype: Any = None,
    fast_accum: bool = False,
    fma_tile: tuple[int, int, int, int, int, int] | None = None,
    out: Any = None,
) -> Array: ...
def _grouped_choice(
    rows: int,
    columns: int,
    inner: int,
    groups: int,
    gated: bool = False,
    multiprocessors: int = 132,
    of_blocks: bool = False,
    capacity: int = 0,
) -> str: ...
def _grouped_gradient(
    grad: Any,
    x: Any,
    numbers: Any,
    kind: str,
    dtype: Any = None,
    tile: tuple[int, int, int, int, bool, int] | None = None,
    by_mma: bool = False,
) -> Array: ...
def _route(
    logits: Any,
    chosen: int,
    sigmoid: bool,
    renormalize: bool,
    bias: Any,
    groups: int,
    groups_kept: int,
    scale: float,
) -> tuple[Array, Array]: ...
def _permute(x: Any, experts: Any, count: int) -> tuple[Array, Array, Array, Array]: ...
def _unpermute(rows: Any, positions: Any, weights: Any, out: Any = None) -> Array: ...
def _pool_largest(
    x: Array, windows: dict[str, Any], places: bool, /
) -> tuple[Array, Array | None]: ...
def _pool_average(x: Array, windows: dict[str, Any], /) -> Array: ...
def _pool_backward(dy: Array, places: Array | None, windows: dict[str, Any], /) -> Array: ...
def _resample(
    x: Array,
    axis: int,
    extent: int,
    mode: int,
    scale: float,
    align_corners: bool,
    dtype: Any,
    backward: bool,
    /,
) -> Array: ...
def _convolve(
    x: Array,
    weight: Array,
    bias: Array | None,
    geometry: dict[str, Any],
    transposed: bool,
    precision: str | None,
    /,
) -> Array: ...
def _convolve_weight_gradient(
    x: Array, dy: Array, geometry: dict[str, Any], precision: str | None, /
) -> Array: ...
