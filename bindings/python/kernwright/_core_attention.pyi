"""Types of the extension module: attention, to which kernwright.nn gives names."""

from collections.abc import Sequence
from typing import Any

from kernwright._core_array import Array

# Arrays for the result and its logarithms, or None; the axes in front of the result's elements
# where they are others than the queries'.
_Targets = tuple[Any, Any, tuple[int, ...] | None]

def _attention(
    decode: bool,
    query: Any,
    key: Any,
    value: Any,
    arrays: list[Any],
    scale: float | None,
    soft_cap: float,
    left: int,
    right: int,
    bottom: bool,
    wants_lse: bool,
    dropout: float,
    seed: int,
    offset: int,
    splits: int,
    most_queries: int,
    out: _Targets | None,
    /,
) -> tuple[Array, Any]: ...
def _paged_attention(
    query: Any,
    key_cache: Any,
    value_cache: Any,
    arrays: list[Any],
    scale: float | None,
    soft_cap: float,
    left: int,
    right: int,
    wants_lse: bool,
    most_queries: int,
    out: _Targets | None,
    /,
) -> tuple[Array, Any]: ...
def _float8_attention(
    query: Any,
    key: Any,
    value: Any,
    arrays: Sequence[Any],
    scale: float | None,
    soft_cap: float,
    left: int,
    right: int,
    wants_lse: bool,
    most_queries: int,
    scales: list[Any],
    scores: float,
    values: float,
    fast_sums: bool,
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
    arrays: list[Any],
    scale: float | None,
    soft_cap: float,
    left: int,
    right: int,
    dropout: float,
    seed: int,
    offset: int,
    in_rows: bool,
    /,
) -> tuple[Array, ...]: ...
