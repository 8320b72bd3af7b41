"""library(): measures the numbers in the plans of the library's kernels on the device at hand."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kernwright import _core
from kernwright._jit.library import Prepared
from kernwright._measure.choice_table import update
from kernwright._measure.timing import time_kernel
from kernwright._support.choices import planned_by
from kernwright._support.progress import Progress
from kernwright.errors import ArgumentError

# What is called to measure a number, and the bytes of the arrays on a GPU.
_CALLS = {
    "elementwise.packs": "add",
    "copy.units": "copy",
    "cast.packs": "astype",
    "transpose.pack": "transpose",
    "reduce.all_blocks": "sum",
    "reduce.row_blocks": "sum_rows",
    "reduce.column_blocks": "sum_columns",
    "softmax.values": "softmax",
    "softmax.kept_threads": "softmax",
    "softmax.gradient_values": "softmax_backward",
    "norm.values": "rms_norm",
    "norm.gradient_values": "rms_norm_backward",
    "norm.gradient_rows": "rms_norm_backward",
    "activation.packs": "gelu",
    "gate.packs": "swiglu",
    "cross_entropy.packs": "cross_entropy_grad",
}
# Rows of random numbers: what it takes to sort them depends on their values.
_SORTS = {
    **dict.fromkeys(("sort.threads", "sort.words"), "sort"),
    **dict.fromkeys(("argsort.threads", "argsort.words"), "argsort"),
}
_SHORTEST_SORT = 5000  # shorter rows are a block's
# Rows of 1024, 4096 and 16384 elements, and wholes of 2^19, 2^23 and 2^26, one for each class.
_ROWS = (1024, 4096, 16384)
_WHOLES = (1 << 19, 1 << 23, 1 << 26)
_ELEMENTS = 1 << 26
# What is chosen for rows that registers do not hold is measured with these only.
_LONG_ROW = 32768
_OF_LONG_ROWS = ("cross_entropy.packs", "softmax.kept_threads")
# Rows of logits that begin at a multiple of 16 bytes are streamed, where they are not too long.
_ASKEW = {"cross_entropy.packs": 3}
# What another number must be for a number to count: its place is found by its key.
_WITH = {"norm.gradient_values": ("norm.gradient_rows", 1)}
# A candidate replaces the rule where it is faster by more than this.
_GAIN = 0.02


class _Number(NamedTuple):
    place: int
    key: str  # "softmax.values"
    by_row: bool
    candidates: list[int]


def _numbers(families: Iterable[str] | None) -> list[_Number]:
    rows = [
        _Number(place, f"{family}.{name}", by_row, candidates)
        for place, (family, name, by_row, candidates, _) in enumerate(_core._launch_choices())
    ]
    if families is None:
        return rows
    known = list(dict.fromkeys(row.key.split(".")[0] for row in rows))
    wanted = [families] if isinstance(families, str) else list(families)
    for family in wanted:
        if family not in known:
            raise ArgumentError(f"library(): no family {family!r}; there are {', '.join(known)}")
    return [row for row in rows if row.key.split(".")[0] in wanted]


def _shapes(number: _Number, tiny: bool) -> list[tuple[tuple[int, ...], int]]:
    """Shapes to measure, with the extent that tells their class."""
    if number.key in _SORTS:
        return [((count,), count) for count in ((_SHORTEST_SORT,) if tiny else _WHOLES)]
    if not number.by_row and tiny:
        return [((16, 256), 4096)]
    if not number.by_row:
        return [((count // 4096, 4096), count) for count in _WHOLES]
    lengths: tuple[int, ...] = (_LONG_ROW,) if number.key in _OF_LONG_ROWS else _ROWS
    if number.key == "reduce.all_blocks":
        return [((count,), count) for count in ((4096,) if tiny else _WHOLES)]
    lengths = tuple(n + _ASKEW.get(number.key, 0) for n in lengths)
    rows = [(2, n) if tiny else (_ELEMENTS // n, n) for n in lengths]
    if number.key == "reduce.column_blocks":  # the length of a column
        return [((n, m), n) for m, n in rows]
    return [((m, n), n) for m, n in rows]


def library(
    families: Iterable[str] | None = None,
    *,
    device: Any = None,
    dtypes: Sequence[str] = ("float16", "float32"),
    tiny: bool | None = None,
    path: str | os.PathLike[str] | None = None,
    save: bool = True,
    seconds: float = 0.2,
) -> list[dict[str, Any]]:
    """Measures launch numbers of the kernel library on a device, and keeps those that win.

    For each number that a family of kernels leaves open (blocks for each multiprocessor, elements
    of a thread ...), each class of shapes and each size of elements, an operation is timed with
    every candidate and as it is launched now. A candidate that is faster by more than 2 % goes into
    the table of the device, in `path`: the file of KERNWRIGHT_KERNEL_CHOICES, or
    kernel_choices.json in the folder of the cache. Other devices in that file stay. This process
    uses the table from then on, others from their first launch.

    `families` are some of "elementwise", "copy", "cast", "transpose", "reduce", "softmax", "norm",
    "activation", "gate", "cross_entropy", "sort" and "argsort"; `tiny` takes small arrays, for the
    simulated device (the default there). Their times tell nothing about a GPU. Each candidate gets
    `seconds`.

    Returns a row for each measurement: number, class, dtype, the candidates' milliseconds, those of
    the launch until now, and what the table says ("value", None for the rule). The values of a
    norm's gradient are measured, and compared, with its rows in registers. Raises ArgumentError for
    an unknown family, StoreError where the file cannot be written.

    >>> [row] = kw.tune.library(["cast"], dtypes=["float16"], save=False, seconds=0.01)
    >>> row["number"], sorted(row["ms"])
    ('cast.packs', ['1', '2', '4'])
    """
    numbers = _numbers(families)
    chosen = _core.current_device() if device is None else device
    small = chosen.is_simulated if tiny is None else tiny
    target = pathlib.Path(_core._launch_table_path() if path is None else path)
    if save and not str(path if path is not None else _core._launch_table_path()):
        raise ArgumentError("library(): there is no folder of a cache: give path= or save=False")
    work = [
        (number, shape, extent, dtype)
        for number in numbers
        for shape, extent in _shapes(number, small)
        for dtype in dtypes
    ]
    rows = []
    with Progress("measuring", len(work)) as progress:
        for number, shape, extent, dtype in work:
            rows.append(_measure(number, shape, extent, dtype, chosen, seconds))
            progress.advance()
    if save:
        _write(target, chosen.name, rows)
    return rows


def _call(number: _Number, dtype: str, shape: tuple[int, ...], device: Any) -> Any:
    if number.key not in _SORTS:
        return Prepared(_CALLS[number.key], dtype, shape, device).make()
    import kernwright as kw

    with device:
        x = kw.astype(kw.random.normal(shape, seed=1), dtype)
    function = getattr(kw, _SORTS[number.key])
    return lambda: function(x)


def _measure(
    number: _Number,
    shape: tuple[int, ...],
    extent: int,
    dtype: str,
    device: Any,
    seconds: float,
) -> dict[str, Any]:
    run = _call(number, dtype, shape, device)
    key, needed = _WITH.get(number.key, (None, None))
    other = next((row.place for row in _numbers(None) if row.key == key), None)

    before = {} if other is None or needed is None else {other: needed}

    def timed(candidates: dict[int, int]) -> float:
        with planned_by(_core._PinnedChoices(candidates)):
            return time_kernel(
                run, device=device, warmup=1, min_samples=3, max_seconds=seconds
            ).median

    now = timed(before)
    times = {value: timed({**before, number.place: value}) for value in number.candidates}
    best = min(times, key=lambda value: times[value])
    size = _core.empty(0, dtype, device=device).dtype.itemsize
    wins = times[best] < (1 - _GAIN) * now
    return {
        "number": number.key,
        "class": _core._shape_class(number.by_row, extent, size),
        "dtype": dtype,
        "shape": list(shape),
        "ms": {str(value): time for value, time in times.items()},
        "now_ms": now,
        "value": best if wins else None,
    }


def _write(path: pathlib.Path, device: str, rows: list[dict[str, Any]]) -> None:
    """Puts what won into the file, and has this process use it."""

    def change(table: dict[str, Any]) -> None:
        mine = table["devices"].setdefault(device, {})
        for row in rows:
            # A rule that none of the candidates beats stays; so does what an earlier run has found.
            if row["value"] is not None:
                mine.setdefault(row["number"], {})[row["class"]] = row["value"]

    update(path, change)
