"""Types of the extension module: attention, to which kernwright.nn gives names."""

from typing import Any, NamedTuple

from kernwright._core_array import Array

# Arrays for the result and its logarithms, or None; the axes in front of the result's elements
# where they are others than the queries'.
_Targets = tuple[Any, Any, tuple[int, ...] | None]

# Of attention(), decode_attention(), paged_attention() and their gradients: made of the options'
# struct in C++, where bind_attention.cpp names its members.
class _AttentionOptions(NamedTuple):
    attn_mask: Any = None
    sinks: Any = None
    alibi: Any = None
    query_lengths: Any = None
    lengths: Any = None
    query_starts: Any = None
    key_starts: Any = None
    page_table: Any = None
    key_scale: Any = None
    value_scale: Any = None
    scale: float | None = None
    soft_cap: float = 0.0
    left: int = -1
    right: int = -1
    bottom: bool = False
    return_lse: bool = False
    dropout_p: float = 0.0
    seed: int = 0
    offset: int = 0
    splits: int = 0
    max_queries: int = 0

def _attention(
    decode: bool,
    query: Any,
    key: Any,
    value: Any,
    options: _AttentionOptions,
    out: _Targets | None,
    /,
) -> tuple[Array, Any]: ...
def _paged_attention(
    query: Any,
    key_cache: Any,
    value_cache: Any,
    options: _AttentionOptions,
    out: _Targets | None,
    /,
) -> tuple[Array, Any]: ...
def _float8_attention(
    query: Any,
    key: Any,
    value: Any,
    options: _AttentionOptions,
    scales: list[Any],
    scores: float,
    values: float,
    fast_accum: bool,
    out: _Targets | None,
    /,
) -> tuple[Array, Any] | None: ...
def _append_cache(
    key: Any,
    value: Any,
    key_cache: Any,
    value_cache: Any,
    positions: Any,
    places: list[Any],
    /,
) -> None: ...
def _append_qkv(
    tokens: list[Any],
    key_cache: Any,
    value_cache: Any,
    positions: Any,
    arrays: list[Any],
    places: list[Any],
    eps: float,
    interleaved: bool,
    /,
) -> Array: ...
def _attention_backward(
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    lse: Any,
    options: _AttentionOptions,
    in_rows: bool,
    /,
) -> tuple[Array, ...]: ...
