"""Layouts of structs: as NumPy dtypes, and their differences from the dtype of an argument.

Used when a struct, an array of structs or a variable meets NumPy; no launch of other kinds needs
it. Both sides become members, then runs of numbers with paths ("pos.y", "points[3].x"), and bytes
are compared with bytes: how members are grouped and named is free where names do not contradict.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

# Dtypes whose layout was found right, kept alive since a launch plan remembers them by address.
_kept: list[Any] = []
_MOST_KEPT = 4096
# Arrays of structs with more elements are compared by one element where both sides have them.
_MOST_ELEMENTS = 16
_MOST_RUNS = 1 << 13


class _Member(NamedTuple):
    """A number, an array, a struct or, without dtype and members, bytes of unknown use.

    One without a name is bytes of a union: anything may be there besides the known members.
    """

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    members: tuple[_Member, ...]

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def step(self) -> int:
        """Bytes of one element."""
        return self.nbytes // (self.elements or 1)


class _Run(NamedTuple):
    """Numbers of one type, one behind the other."""

    name: str
    dtype: np.dtype[Any]
    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length * self.dtype.itemsize

    def element(self, byte: int) -> tuple[str, int]:
        """Name and offset of the owner of a byte."""
        index = max(byte - self.offset, 0) // self.dtype.itemsize
        name = f"{self.name}[{index}]" if self.length > 1 and self.name else self.name
        return name, self.offset + index * self.dtype.itemsize


_Row = tuple[str, Any, tuple[int, ...], int, int]


def _nested(rows: list[_Row]) -> tuple[_Member, ...]:
    """From rows with paths for names and offsets from the outermost struct on."""
    inner: dict[str, list[_Row]] = {}
    for row in rows:
        inner.setdefault(row[0].rpartition(".")[0], []).append(row)

    def members(path: str, start: int) -> tuple[_Member, ...]:
        found = []
        for name, dtype, shape, offset, nbytes in inner.get(path, ()):
            own = name.rpartition(".")[2]
            parts = members(name, offset) if own else ()
            found.append(_Member(own, dtype, shape, offset - start, nbytes, parts))
        return tuple(found)

    return members("", 0)


def _members_of(dtype: np.dtype[Any]) -> tuple[_Member, ...]:
    members = []
    fields: Any = dtype.fields
    for name in dtype.names or ():
        entry = fields[name]
        base, shape = entry[0].subdtype or (entry[0], ())
        inner = _members_of(base)
        number = None if base.names is not None else base
        members.append(_Member(name, number, shape, entry[1], entry[0].itemsize, inner))
    return tuple(members)


def _dtype_of(members: tuple[_Member, ...], size: int) -> np.dtype[Any]:
    shown = [member for member in members if member.name and member.nbytes]
    formats = []
    for member in shown:
        base = member.dtype
        if base is None and member.members:
            base = _dtype_of(member.members, member.step)
        if base is None:
            base = np.dtype(f"V{member.step}")
        formats.append(np.dtype((base, member.shape)))
    return np.dtype(
        {
            "names": [member.name for member in shown],
            "formats": formats,
            "offsets": [member.offset for member in shown],
            "itemsize": size,
        }
    )


def _untold(members: tuple[_Member, ...], size: int, path: str) -> list[str]:
    """The unknown parts of a struct at `path`: bytes of no member, and members by their paths."""
    end, gaps = 0, []
    for member in members:
        if member.name and member.offset > end:
            gaps.append((end, member.offset))
        if member.name:
            end = max(end, member.offset + member.nbytes)
        else:
            gaps.append((member.offset, member.offset + member.nbytes))
    if end < size:
        gaps.append((end, size))
    if (0, size) in gaps:
        return [path or f"bytes 0:{size}"]
    behind = path and f" of {path}"
    found = [f"bytes {first}:{last}{behind}" for first, last in dict.fromkeys(gaps)]
    for member in members:
        if member.name and member.dtype is None and member.nbytes:
            inner = f"{path}.{member.name}" if path else member.name
            found += _untold(member.members, member.step, inner)
    return found


class _Flat:
    """The runs of a struct, and its members of all levels by path. `once`: see _repeated()."""

    def __init__(self, members: tuple[_Member, ...], once: frozenset[tuple[int, int, int]]) -> None:
        self.runs: list[_Run] = []
        self.nodes: dict[str, tuple[int, int]] = {}
        self._once = once
        self._add(members, "", 0)

    def _add(self, members: tuple[_Member, ...], path: str, offset: int) -> None:
        for member in members:
            name = f"{path}.{member.name}" if path else member.name
            start = offset + member.offset
            if not member.nbytes or len(self.runs) > _MOST_RUNS:
                continue
            if member.name:
                self.nodes[name] = start, member.nbytes
            if not member.members:
                dtype = member.dtype
                if dtype is None:
                    dtype = np.dtype(f"V{member.step}")
                if dtype.itemsize:
                    self.runs.append(_Run(name, dtype, start, member.elements))
                continue
            is_once = (start, member.step, member.elements) in self._once
            for i in range(1 if is_once else member.elements):
                element = f"{name}[{i}]" if member.shape else name
                self._add(member.members, element, start + i * member.step)


def _repeated(members: tuple[_Member, ...], offset: int = 0) -> set[tuple[int, int, int]]:
    """(offset, bytes of each, count) of long arrays of structs, outermost ones alone."""
    found = set()
    for member in members:
        if member.elements > _MOST_ELEMENTS and member.members:
            found.add((offset + member.offset, member.step, member.elements))
        elif member.members and not member.shape:
            found |= _repeated(member.members, offset + member.offset)
    return found


def _is_bytes(dtype: np.dtype[Any]) -> bool:
    return dtype.type in (np.void, np.bytes_)  # bfloat16 and its kin have kind V too


def _agree(given: _Run, wanted: _Run) -> bool:
    a, b = given.dtype, wanted.dtype
    if _is_bytes(a) or _is_bytes(b):
        return True
    if (given.offset - wanted.offset) % min(a.itemsize, b.itemsize):
        return False
    if a == b:
        return True
    if a.itemsize == b.itemsize == 1:
        return a.kind in "iub" and b.kind in "iub"
    if b == np.uint64 and a == np.int64:
        return True  # an address
    for pair, part in ((a, b), (b, a)):
        if pair.kind == "c" and pair.isnative and part == pair.type(0).real.dtype:
            return True
    return False


def _differing_name(given: _Flat, wanted: _Flat) -> str | None:
    """Differences of members of one name: another place, another size of bytes, another type."""
    for name, (here, _) in given.nodes.items():
        there = wanted.nodes.get(name, (here, 0))[0]
        if here != there:
            return f"{name} is at offset {there} in the kernel, at offset {here} in the value"
    by_name = {run.name: run for run in given.runs}
    for run in wanted.runs:
        same = run.name and given.nodes.get(run.name)
        if same and _is_bytes(run.dtype) and same[1] != run.end - run.offset:
            return (
                f"{run.name} at offset {run.offset} has {run.end - run.offset} opaque bytes in the "
                f"kernel, {same[1]} in the value"
            )
        twin = by_name.get(run.name)
        if run.name and twin and not _agree(twin, run):
            return _difference(twin, run, run.offset)
    return None


def _difference(given: _Run, wanted: _Run, byte: int) -> str:
    name, offset = wanted.element(byte)
    other, place = given.element(byte)
    known = "opaque bytes" if _is_bytes(wanted.dtype) else str(wanted.dtype)
    where = f" at offset {place}" if place != offset else ""
    called = f" ({other})" if other and other != name else ""
    what = f"{name} at offset {offset}" if name else f"what is at offset {offset}"
    return f"{what} is {known} in the kernel, {given.dtype}{where} in the value{called}"


def _differing_bytes(given: _Flat, wanted: _Flat, size: int) -> str | None:
    """A byte is right where any of its members agrees: unions have several."""
    starts = np.array([run.offset for run in wanted.runs])
    ends = np.array([run.end for run in wanted.runs])
    right = np.zeros(size, bool)
    wrong: list[tuple[int, int, _Run, _Run]] = []
    for run in given.runs:
        for index in np.nonzero((starts < run.end) & (ends > run.offset))[0]:
            other = wanted.runs[index]
            first, last = max(run.offset, other.offset), min(run.end, other.end)
            if _agree(run, other):
                right[first:last] = True
            else:
                wrong.append((first, last, run, other))
    for first, last, run, other in wrong:
        if not right[first:last].all():
            return _difference(run, other, first + int(np.argmin(right[first:last])))
    return None


class Layout:
    """The layout of a struct as the compiler tells it.

    `dtype` is NumPy's, with the accessible members at all levels; what the compiler does not tell
    more of is there as bytes (V). `opaque` names it: members by their paths, and bytes that no
    member is known to have (padding, bit-fields, private members, members of unions).
    """

    __slots__ = ("_members", "dtype", "opaque", "size")

    def __init__(self, members: tuple[_Member, ...], size: int) -> None:
        self._members = members
        self.size = size
        self.dtype = _dtype_of(self._members, size)
        self.opaque = tuple(_untold(self._members, size, ""))

    @staticmethod
    def told(rows: list[_Row], size: int) -> Layout:
        """From the compiler's rows: path, dtype or None, shape, offset, bytes."""
        return Layout(_nested(rows), size)

    @staticmethod
    def of(dtype: np.dtype[Any]) -> Layout:
        """The layout in a dtype."""
        return Layout(_members_of(dtype), dtype.itemsize)

    def repeated(self, count: int) -> Layout:
        """Of an array of so many."""
        nbytes = count * self.size
        return Layout((_Member("", None, (count,), 0, nbytes, self._members),), nbytes)

    def mismatch(self, given: Any) -> str | None:
        """The mistakes of a dtype, or ctypes structure, for the struct.

        Members without a place in the layout (private ones, bit-fields, padding) may be anything;
        members it has as bytes are compared by their sizes.
        """
        try:
            dtype = np.dtype(given)
        except (TypeError, ValueError, NotImplementedError):
            return None  # a ctypes structure that NumPy cannot describe
        if dtype.fields is None and (_is_bytes(dtype) or dtype.kind == "U"):
            return None
        problem = None if dtype == self.dtype else self._compare(dtype)
        if problem is None and len(_kept) < _MOST_KEPT:
            _kept.append(given)
        return problem

    def _compare(self, dtype: np.dtype[Any]) -> str | None:
        members = _members_of(dtype)
        if dtype.fields is None:  # an array of numbers that is as long as the struct
            base, shape = dtype.base, (self.size // dtype.base.itemsize,)
            members = (_Member("", base, shape, 0, shape[0] * base.itemsize, ()),)
        elif dtype.itemsize != self.size:
            return f"its items have {dtype.itemsize} bytes, the struct has {self.size}"
        once = frozenset(_repeated(members) & _repeated(self._members))
        given, wanted = _Flat(members, once), _Flat(self._members, once)
        if max(len(given.runs), len(wanted.runs)) > _MOST_RUNS:
            return "it has more members than can be compared: use the dtype of the struct itself"
        return _differing_name(given, wanted) or _differing_bytes(given, wanted, self.size)


def is_kept(layout: Any) -> bool:
    """Whether the object lives as long as the process."""
    return bool(_kept) and _kept[-1] is layout
