"""Operation and Work: what is measured, in which types and shapes, and what is the right result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import kernwright as kw
from kernwright.bench._table.layouts import laid

Shape: TypeAlias = tuple[int, ...]
Results: TypeAlias = Any  # an array, or a tuple of arrays

# ||result - reference|| / ||reference||: a few roundings of the dtype.
TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
FLOATS = ("float32", "bfloat16", "float16", "float64")
_PLACES = 5  # where a result is looked at
_WINDOW = 1 << 15  # elements of such a place, or one row


@dataclasses.dataclass(frozen=True)
class Expected:
    """What a part of a result is, in float64."""

    result: int
    part: Any  # an index of the result: a slice of its first axis, slices; or None for all
    values: np.ndarray[Any, Any]


@dataclasses.dataclass
class Work:
    """One operation on arrays.

    `ours(*arrays)` queues it. Bytes that must pass the memory are `moved`. `expect()` tells parts
    of the result, from the arrays as they are before it runs; or `check(results)` returns an error
    of its own kind. Peers are functions of their module and their arrays over the same memory.
    `inplace`: the arrays are written.
    """

    arrays: list[kw.Array]
    ours: Callable[..., Results]
    moved: float
    expect: Callable[[], Iterable[Expected]] | None = None
    check: Callable[[tuple[Any, ...]], float] | None = None
    tolerance: float = 0.0
    flops: float = 0.0  # of an operation that is bound by them
    peers: Mapping[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)
    inplace: bool = False
    layout: str = "contiguous"
    _known: list[Expected] | None = None

    def lay(self, layout: str) -> None:
        """Gives the arrays that layout in memory, with the same values."""
        self.layout, self.arrays = layout, laid(self.arrays, layout)

    def copies(self) -> list[kw.Array]:
        """Copies of the arrays, of the same layout."""
        return laid([array.copy() for array in self.arrays], self.layout)

    def expected(self) -> list[Expected]:
        """What expect() told, once: before anything ran, so of the arrays as they were."""
        if self._known is None:
            self._known = [] if self.expect is None else list(self.expect())
        return self._known

    def error(self, results: Results) -> float:
        """How far results are off, ours or a peer's."""
        if self.check is not None:
            return float(self.check(as_tuple(results)))
        return error_of(as_tuple(results), self.expected())


@dataclasses.dataclass(frozen=True)
class Operation:
    """A name with the shapes and dtypes of its rows in the table.

    `shapes` and `dtypes` are those measured without a choice; it takes all of `takes`. `small` is
    the shape for the simulated device, `of_size(n)` one of about n elements.
    """

    name: str
    group: str
    make: Callable[[Shape, str], Work]
    shapes: Sequence[Shape]
    small: Shape
    of_size: Callable[[int], Shape]
    dtypes: Sequence[str] = ("float32",)
    takes: Sequence[str] = ("float32",)


# ---- shapes


def flat(n: int) -> Shape:
    return (n,)


def matrix(n: int) -> Shape:
    """Rows of 4096, of fewer where there would be less than 16 rows."""
    columns = 4096
    while columns > 8 and n < 16 * columns:
        columns //= 2
    return (max(1, n // columns), columns)


def square(n: int) -> Shape:
    side = max(1, math.isqrt(n))
    return (side, side)


# ---- data: random, as zeros run faster; made on the device


def normal(shape: Shape, dtype: str = "float32", which: int = 0) -> kw.Array:
    return kw.random.normal(shape, dtype, seed=which + 1)


def whole(shape: Shape, dtype: str, which: int = 0) -> kw.Array:
    """Normal numbers, or integers of the dtype's full range."""
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        return kw.random.integers(
            limits.min, limits.max, shape, dtype, endpoint=True, seed=which + 1
        )
    return normal(shape, dtype, which)


def bytes_of(*arrays: kw.Array) -> int:
    return sum(array.nbytes for array in arrays)


# ---- right results


def as_tuple(results: Results) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def host(value: Any, part: Any = None) -> np.ndarray[Any, Any]:
    """An array of any library, or the part of it at that index; floats as float64."""
    piece = value if part is None else value[part]
    if isinstance(piece, kw.Array):
        piece = piece.numpy()
    elif hasattr(piece, "detach"):  # torch, whose bfloat16 NumPy does not know
        piece = piece.detach()
        piece = (piece.double() if piece.is_floating_point() else piece).cpu().numpy()
    elif hasattr(piece, "get"):
        piece = piece.get()
    found = np.asarray(piece)
    return found if found.dtype.kind in "biu" else found.astype(np.float64)


def places(shape: Shape, window: int = _WINDOW) -> list[slice]:
    """Parts along the first axis: the beginning, the end, and some between."""
    rows = shape[0]
    row = max(1, math.prod(shape[1:]))
    block = max(1, min(rows, window // row))
    last = rows - block
    between = np.random.default_rng(0).integers(0, last + 1, _PLACES - 2).tolist()
    return [slice(at, at + block) for at in sorted({0, last, *between})]


def by_rows(
    reference: Callable[..., Any], arrays: Sequence[kw.Array], shared: Sequence[int] = ()
) -> Callable[[], Iterator[Expected]]:
    """For results whose row i needs row i of the arrays, and all of those that are `shared`."""

    def expect() -> Iterator[Expected]:
        common = {i: host(arrays[i]) for i in shared}
        first = next(a for i, a in enumerate(arrays) if i not in common)
        for part in places(first.shape):
            own = [common[i] if i in common else host(a, part) for i, a in enumerate(arrays)]
            with np.errstate(all="ignore"):
                found = as_tuple(reference(*own))
            for i, values in enumerate(found):
                yield Expected(i, part, np.asarray(values))

    return expect


def whole_result(reference: Callable[..., Any], arrays: Sequence[kw.Array]) -> Callable[[], Any]:
    """For results that need all of the arrays."""

    def expect() -> Iterator[Expected]:
        for i, values in enumerate(as_tuple(reference(*map(host, arrays)))):
            yield Expected(i, None, np.asarray(values))

    return expect


def error_of(results: Sequence[Any], expected: Sequence[Expected]) -> float:
    """The largest ||result - reference|| / ||reference|| of the results; inf where one is NaN."""
    above: dict[int, float] = {}
    below: dict[int, float] = {}
    for one in expected:
        if one.result >= len(results):
            continue
        got = host(results[one.result], one.part)
        if got.shape != one.values.shape:
            return math.inf
        with np.errstate(all="ignore"):
            off = np.where(got == one.values, 0.0, got.astype(np.float64) - one.values)
        square_of = float((off * off).sum())
        above[one.result] = above.get(one.result, 0.0) + square_of
        size = one.values.astype(np.float64)
        below[one.result] = below.get(one.result, 0.0) + float((size * size).sum())
    worst = 0.0
    for i, off_by in above.items():
        if off_by != 0:  # of NaN too
            relative = math.sqrt(off_by / below[i]) if below[i] > 0 else math.inf
            worst = max(worst, relative if math.isfinite(relative) else math.inf)
    return worst
