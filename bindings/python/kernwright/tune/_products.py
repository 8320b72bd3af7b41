"""products(): measures which kernel each matrix product takes, and how it is cut."""

from __future__ import annotations

import functools
import os
import pathlib
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kernwright import _core
from kernwright._measure.product_plans import SECONDS, measure_plans, write_plans
from kernwright._support.files import read_text
from kernwright.errors import ArgumentError
from kernwright.tune._product_operands import KINDS, NARROW, operands

_SQUARES = (1024, 2048, 4096, 8192)
# Hidden size, that of keys and values, inner size of the feed-forward part: 1B, 3B, 8B, 70B.
_MODELS = ((2048, 512, 8192), (3072, 1024, 8192), (4096, 1024, 14336), (8192, 1024, 28672))
_ROWS = tuple(1 << i for i in range(14))
_FEW_ROWS = 64
_NARROW_ROWS = (16, 64, 128, 512, 4096)
# Columns and inner dimensions of DeepGEMM's lists, by rows.
_DEEP_ROWS = (64, 128, 4096)
_DEEP = ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))
_RAGGED = (
    (1000, 1000, 1000),
    (4000, 4000, 4000),
    (129, 4096, 4096),
    (4095, 4097, 4093),
    (8191, 1023, 2049),
    (33, 11008, 4096),
    (513, 32000, 2048),
)
_TINY = ((40, 48, 64), (100, 72, 130))

Shape = tuple[int, int, int]


def product_shapes(kind: str = "bfloat16") -> list[tuple[Shape, bool]]:
    """Rows, columns and inner dimension of public lists, and whether b is a transposed view of
    (n, k), as the weights of a layer are: squares, layers of language models, ragged. For the
    kinds of _product_operands.NARROW those of DeepGEMM instead of ragged ones, and fewer rows."""
    rows = _NARROW_ROWS if kind in NARROW else _ROWS
    layers = []
    for hidden, kv, inner in _MODELS:
        for n, k in (
            (hidden + 2 * kv, hidden),
            (hidden, hidden),
            (2 * inner, hidden),
            (hidden, inner),
        ):
            layers += [((m, n, k), True) for m in rows]
        # With few rows models also have the two of the feed-forward part apart.
        layers += [((m, inner, hidden), True) for m in rows if m <= _FEW_ROWS]
    layers.sort(key=lambda of: of[0])
    if kind in NARROW:
        deep = [((m, n, k), True) for m in _DEEP_ROWS for n, k in _DEEP]
        return list(dict.fromkeys([*(((n, n, n), True) for n in _SQUARES), *layers, *deep]))
    squares = [((n, n, n), turned) for n in _SQUARES for turned in (False, True)]
    ragged = [(shape, turned) for shape in _RAGGED for turned in (False, True)]
    return list(dict.fromkeys([*squares, *layers, *ragged]))


def products(
    shapes: Iterable[Sequence[int]] | None = None,
    *,
    device: Any = None,
    dtypes: Sequence[str] = KINDS,
    part: tuple[int, int] | None = None,
    renew: bool = False,
    path: str | os.PathLike[str] | None = None,
    save: bool = True,
    seconds: float = SECONDS,
    on_row: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Measures the possible kernels, tiles and splits of a matrix product for each shape, and keeps
    the fastest in the table of the device.

    Without `shapes`, (rows, columns, inner) each, the list is squares, the layers of language
    models of 1B to 70B parameters for 1 to 8192 rows, and ragged ones; on the simulated device two
    small ones. Weights of layers are (n, k), read as their transposed view; shapes that are given
    are measured both ways. `dtypes` may name float8_e4m3fn, also with ".fast" (accumulators of the
    tensor cores alone) or ".blocks" (scales of blocks), int8 and tf32 besides 16-bit floats and
    float32; their weights are always (n, k), and their lists shorter. `part` (i, n) takes the i-th
    of n parts of the list, counted from 1.

    The file is written after every shape, for the shape itself and for its bucket: shapes whose
    extents have the same next power of two. It is the one of library(). Without `renew` shapes in
    the table are left out, so an interrupted run can go on. A plan must be faster than the rule by
    more than 2 %. Otherwise the table says: use the rule. Products of less than 50 us are launched
    from graphs over copies of the operands, of four times the L2 in all; longer ones each for at
    most `seconds`, after a flush of the L2.

    Returns a row for each shape: types, shape, bucket, the milliseconds of each plan, those of the
    rule and of the best, and what the table says ("plan", [] for the rule); `on_row` gets each as
    it comes. Raises ArgumentError for an invalid part or shape, InvalidArgument for a file that is
    no table, StoreError if it cannot be written.

    >>> rows = kw.tune.products([(16, 16, 16)], dtypes=["float16"], save=False, seconds=0.01)
    >>> [row["types"] for row in rows]
    ['float16.float16.float16.nn', 'float16.float16.float16.nt']
    """
    chosen = _core.current_device() if device is None else device
    work = _work(shapes, chosen, dtypes, part)
    target = _target(path) if save else None
    if target is not None and target.exists():
        _core._use_launch_table(read_text(target))
    rows = []
    for shape, turned, kind in work:
        copy = functools.partial(operands, kind, shape, turned, chosen)
        product = copy()
        if save and not renew and _core._has_product(*product.key):
            continue
        row = measure_plans(product, seconds, copy)
        if target is not None:
            write_plans(target, [row], bucket=True)
        if on_row is not None:
            on_row(row)
        rows.append(row)
    return rows


def _work(
    shapes: Iterable[Sequence[int]] | None,
    device: Any,
    dtypes: Sequence[str],
    part: tuple[int, int] | None,
) -> list[tuple[Shape, bool, str]]:
    given = _TINY if shapes is None else [_checked(shape) for shape in shapes]
    work = []
    for kind in dtypes:
        ways = (True,) if kind in NARROW else (False, True)
        pairs = [(shape, turned) for shape in given for turned in ways]
        if shapes is None and not device.is_simulated:
            pairs = product_shapes(kind)
        work += [(*pair, kind) for pair in pairs]
    if part is None:
        return work
    number, parts = part
    if not 1 <= number <= parts:
        raise ArgumentError(f"products(): part {number} of {parts} is none; they count from 1")
    return work[number - 1 :: parts]


def _checked(shape: Sequence[int]) -> Shape:
    extents = tuple(shape) if isinstance(shape, Sequence) else ()
    if len(extents) != 3 or not all(isinstance(e, int) and e > 0 for e in extents):
        raise ArgumentError(f"products(): {shape!r} is no (rows, columns, inner) above 0")
    return extents


def _target(path: str | os.PathLike[str] | None) -> pathlib.Path:
    name = str(_core._launch_table_path() if path is None else path)
    if not name:
        raise ArgumentError("products(): there is no folder of a cache: give path= or save=False")
    return pathlib.Path(name)


def ratios(rows: Iterable[dict[str, Any]]) -> tuple[float, float]:
    """The times of the rule divided by those of the table: their mean and the worst; 1 without
    rows."""
    all_of = [row["rule_ms"] / row["best_ms"] for row in rows if row["best_ms"] > 0]
    return (statistics.fmean(all_of), max(all_of)) if all_of else (1.0, 1.0)
