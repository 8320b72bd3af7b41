"""The kernel library in the extension module; the packages above it name and explain it."""

from typing import Any

from kernwright._core_array import Array

def _matmul(a: Array, b: Array) -> Array: ...
def _gemm(
    a: Array,
    b: Array,
    *,
    bias: Array | None = None,
    c: Array | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: str | None = None,
    gate: str | None = None,
    dtype: Any = None,
    tile: tuple[int, int, int, int, bool, int] | None = None,
    splits: int = 0,
) -> Array:
    """activation(alpha * (a @ b) + bias + beta * c) of 16-bit floats; with x = alpha * (a @ b) +
    bias of n columns, gate(x[..., :n/2]) * x[..., n/2:]. `tile`: rows, columns, stages, groups,
    whether they take turns, blocks of a cluster."""

def _gemm_tiles() -> list[tuple[int, int, int, int, bool, int]]: ...
def _gemm_choice(
    rows: int, columns: int, inner: int, batches: int = 1, multiprocessors: int = 132
) -> str: ...
def _diagonal_view(array: Array, offset: int, first: int, second: int) -> Array: ...
