"""Formats of weights in the extension module, for `nn.quant`."""

from typing import Any

from kernwright._core import Array

def _gguf_formats() -> dict[str, list[int]]: ...
def _dequantize_gguf(blocks: Array, name: str, dtype: Any, /) -> Array: ...
def _quantize_gguf(x: Array, name: str, /) -> Array: ...
def _dequantize_codes(
    codes: Array,
    scales: tuple[Array, ...],
    kind: int,
    block: int,
    shape: tuple[int, ...],
    dtype: Any,
    /,
) -> Array: ...
def _quantize_codes(
    x: Array,
    factor: Array | None,
    kind: int,
    block: int,
    codes: tuple[int, ...],
    scales: tuple[int, ...],
    /,
) -> tuple[Array, Array]: ...
def _dequantize_tiles(
    values: Array, scales: Array, tile: tuple[int, int], dtype: Any, /
) -> Array: ...
def _quantize_tiles(x: Array, tile: tuple[int, int], /) -> tuple[Array, Array]: ...
def _dequantize_gptq(
    codes: Array,
    zeros: Array,
    scales: Array,
    groups: Array | None,
    zero_offset: int,
    dtype: Any,
    /,
) -> Array: ...
def _dequantize_awq(codes: Array, zeros: Array, scales: Array, dtype: Any, /) -> Array: ...

_PackedShape = tuple[str, int, int, int, int, int]
_PackedParts = tuple[Array | None, ...]

def _pack_weights(
    shape: _PackedShape,
    source: int,
    blocks: tuple[Array, ...],
    zero_offset: int,
    groups: Array | None,
    /,
) -> _PackedParts: ...
def _unpack_weights(shape: _PackedShape, parts: _PackedParts, dtype: Any, /) -> Array: ...
def _packed_linear(
    x: Any,
    shape: _PackedShape,
    parts: _PackedParts,
    bias: Any,
    residual: Any,
    activation: str,
    plan: list[int],
    out: Any = None,
    norm: Any = None,
    eps: float = 0.0,
    gate: str = "",
) -> Array: ...
def _pack_nibbles(x: Any) -> Array: ...
def _unpack_nibbles(packed: Any, is_signed: bool, length: int) -> Array: ...
