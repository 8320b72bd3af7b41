"""The kernel library in the extension module; the packages above it name and explain it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernwright._core_array import Array

def _matmul(a: Array, b: Array, precision: str | None = None) -> Array: ...
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
    tile: Sequence[int] | None = None,
    splits: int = 0,
    precision: str | None = None,
    kernel: str = "auto",
    mma_tile: tuple[int, int, int] | None = None,
    line_scales: tuple[Array, Array] | None = None,
    block_scales: tuple[Array, Array] | None = None,
    fast_sums: bool = False,
    expression: str = "",
    fma_tile: tuple[int, int, int, int, int, int] | None = None,
) -> Array:
    """activation(alpha * (a @ b) + bias + beta * c); with x = alpha * (a @ b) + bias of n columns,
    gate(x[..., :n/2]) * x[..., n/2:]. `tile`: rows, columns, stages, groups, whether they take
    turns, blocks of a cluster, and True if these gather their sums; `mma_tile`: rows, columns,
    stages; `fma_tile`: rows, columns, those of a thread, depth, stages."""

def _scaled_matmul(
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None,
    dtype: Any,
    fast_sums: bool,
    /,
) -> Array: ...
def _force_attention(
    kernel: str, tile: tuple[int, int, int, bool] | None = None, splits: int = 1
) -> None:
    """Of 16-bit elements: "auto", "mma" or "hopper", for all later calls. `tile`: keys, stages,
    warpgroups, whether blocks stay."""

def _as_number(x: Array, /) -> Array:
    """An array of one element as a number of the host, which takes the type of what is beside."""

def _is_number(x: Array, /) -> bool: ...
def _attention_tiles() -> list[tuple[int, int, int, bool]]: ...
def _force_attention_backward(kernel: str, heads: int | None = None) -> None:
    """As _force_attention(), of gradients. `heads`: heads of keys that blocks work on at a time."""

def _mma_tiles() -> list[tuple[int, int, int]]: ...
def _fma_tiles(element: int) -> list[tuple[int, int, int, int, int, int]]: ...
def _product(
    a: Array, b: Array, dtype: Any = None, sums: str = "plain"
) -> tuple[str, str, str, list[list[Any]]]: ...
def _has_product(a: Array, b: Array, dtype: Any = None, sums: str = "plain") -> bool: ...
def _product_plan(
    a: Array, b: Array, dtype: Any = None, sums: str = "plain"
) -> list[Any] | None: ...
def _layer_operands(x: Any, weight: Any) -> tuple[Array, Array]: ...
def _with_product(plan: list[Any], work: Callable[[], object]) -> Any: ...
def _gemm_tiles(
    promotes: bool = False, block_scales: bool = False, gathers: bool = False
) -> list[tuple[int, ...]]: ...
def _gemm_choice(
    rows: int,
    columns: int,
    inner: int,
    batches: int = 1,
    multiprocessors: int = 132,
    in_bytes: int = 2,
    promotes: bool = False,
    b_turned: bool = True,
    block_scales: bool = False,
    bandwidth: int = 3352,
) -> str: ...
def _diagonal_view(array: Array, offset: int, first: int, second: int) -> Array: ...
def _launch_choices() -> list[tuple[str, str, bool, list[int], str]]: ...
def _shape_class(by_row: bool, extent: int, element: int) -> str: ...
def _use_launch_table(text: str | None) -> None: ...
def _force_launch_choice(index: int, value: int | None) -> None: ...
def _launch_table_path() -> str: ...
def _compile_only(work: Callable[[], object]) -> object: ...

class _PinnedChoices:
    @staticmethod
    def now() -> _PinnedChoices: ...

def _set_choices(pinned: _PinnedChoices | None) -> _PinnedChoices | None: ...
def _lu_factor(x: Array) -> tuple[Array, Array, Array]: ...
def _lu_solve(factors: Array, pivots: Array, sides: Array) -> Array: ...
def _cholesky(x: Array) -> tuple[Array, Array]: ...
def _qr(x: Array, complete: bool) -> tuple[Array, Array]: ...
def _svd(x: Array, vectors: bool, full: bool) -> tuple[Array, Array, Array]: ...
def _eigen(x: Array, hermitian: bool, vectors: bool) -> tuple[Array, Array]: ...
def _elementwise(name: str, operands: tuple[Any, ...], out: Any = None) -> Array: ...
def _result_type(*values: Any) -> np.dtype[Any]: ...
def _promote_types(a: Any, b: Any) -> np.dtype[Any]: ...
def _set_default_dtype(dtype: Any) -> None: ...
def _can_cast(from_: Any, to: Any, casting: str) -> bool: ...
