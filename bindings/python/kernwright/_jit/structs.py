"""Layouts of structs: as NumPy dtypes, and what differs between the dtype of an argument and them.

Used when a struct, an array of structs or a variable meets NumPy; no launch of other kinds needs
it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Layouts that were found equal, kept alive since a launch plan remembers them by address.
_kept: list[Any] = []
_MOST_KEPT = 4096


class _Run(NamedTuple):
    """Numbers of one type, one behind the other."""

    name: str
    dtype: np.dtype[Any]
    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length * self.dtype.itemsize

    def __str__(self) -> str:
        name = self.name and f" {self.name}"
        count = f"[{self.length}]" if self.length > 1 else ""
        return f"{self.dtype}{name}{count} at byte {self.offset}"


def struct_dtype(fields: list[tuple[str, Any, tuple[int, ...], int, int]], size: int) -> Any:
    """The dtype of a struct: (name, dtype or None, shape, offset, bytes) of each member.

    A member whose type has no dtype is so many bytes.
    """
    formats = [
        np.dtype((dtype, shape)) if dtype is not None else np.dtype(f"V{nbytes}")
        for _, dtype, shape, _, nbytes in fields
    ]
    return np.dtype(
        {
            "names": [field[0] for field in fields],
            "formats": formats,
            "offsets": [field[3] for field in fields],
            "itemsize": size,
        }
    )


def _runs(dtype: np.dtype[Any], name: str = "", offset: int = 0) -> list[_Run]:
    if dtype.fields is not None:
        runs = []
        for key, entry in dtype.fields.items():
            runs += _runs(entry[0], f"{name}.{key}" if name else key, offset + entry[1])
        return runs
    if dtype.subdtype is None:
        return [_Run(name, dtype, offset, 1)]
    base, shape = dtype.subdtype
    count = int(np.prod(shape, dtype=np.int64))
    if base.fields is None:
        return [_Run(name, base, offset, count)] if count else []
    return _runs(base, name, offset) if count else []


def _agree(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    if wanted.kind == "V" or (given.kind in "SV" and given.fields is None):
        return True  # bytes
    if given == wanted:
        return True
    if given.itemsize == wanted.itemsize == 1:
        return given.kind in "iub" and wanted.kind in "iub"
    if wanted == np.uint64 and given == np.int64:
        return True  # an address
    return given.kind == "c" and given.isnative and wanted == given.type(0).real.dtype


def _fits(given: _Run, wanted: _Run) -> bool:
    distance = given.offset - wanted.offset
    if wanted.dtype.kind == "V":  # a member of its own members, which the compiler does not tell
        return True
    return distance % wanted.dtype.itemsize == 0 and _agree(given.dtype, wanted.dtype)


def mismatch(given: Any, wanted: np.dtype[Any]) -> str | None:
    """What is wrong with a dtype, or ctypes structure, for a struct of layout `wanted`.

    Members that `wanted` does not have (private ones, bit-fields, padding) may be anything.
    """
    try:
        dtype = np.dtype(given)
    except (TypeError, ValueError, NotImplementedError):
        return None  # a ctypes structure that NumPy cannot describe
    if dtype.fields is None and dtype.kind in "SVU":
        return None
    if dtype.fields is not None and dtype.itemsize != wanted.itemsize:
        return f"has items of {dtype.itemsize} bytes, the struct has {wanted.itemsize}"
    problem = _compare(dtype, wanted)
    if problem is None and len(_kept) < _MOST_KEPT:
        _kept.append(given)
    return problem


def _compare(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> str | None:
    runs = _runs(wanted)
    by_name = {run.name: run for run in runs}
    if dtype.fields is None:
        other = next((run for run in runs if not _agree(dtype.base, run.dtype)), None)
        return other and f"is of {dtype.base}, the struct has {other}"
    for run in _runs(dtype):
        same = by_name.get(run.name)
        if same is not None and same.offset != run.offset:
            return f"has {run}, the struct has {same}"
        there = [w for w in runs if w.offset < run.end and run.offset < w.end]
        if there and not any(_fits(run, w) for w in there):
            return f"has {run}, the struct has {same or there[0]}"
    return None


def is_kept(layout: Any) -> bool:
    """Whether the object lives as long as the process."""
    return bool(_kept) and _kept[-1] is layout
