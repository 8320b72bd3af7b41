"""Packs: one file with the code of many kernels for many architectures, used without a compiler."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kernwright import _core
from kernwright._jit.kernels import Module, Program
from kernwright._jit.library import prepared, record
from kernwright._support.progress import Progress
from kernwright.errors import ArgumentError


def pack(
    path: str | os.PathLike[str],
    kernels: Iterable[Any] = (),
    *,
    archs: Sequence[str],
    records: Iterable[str | os.PathLike[str]] = (),
    library: Iterable[str] = (),
    dtypes: Sequence[Any] | None = None,
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> list[dict[str, Any]]:
    """Compiles kernels for every architecture into one file; returns a row for each code in it.

    `kernels` are kernels, modules and programs of a source, source texts or paths, and results of
    kernel.tuned(). For the latter the pack has the code of winners and defaults, and the results of
    tuning. With the pack in use, kernel.tuned() needs neither store nor compiler. `records` are
    files written by KERNWRIGHT_RECORD. `archs` are "sm_90", "sm_90a", "compute_90", or "sim" for
    the simulated device. As many codes are compiled at a time as there are processors. Equal inputs
    and an equal NVRTC give equal bytes.

    `library` are names of the library's operations, with `dtypes` and `shapes` as warmup() takes
    them: the kernels that these calls launch on the current device come along.

    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }")
    >>> rows = kw.pack("fill.kwpack", [fill], archs=["sm_80", "sm_90"])
    >>> [row["arch"] for row in rows]
    ['sm_80', 'sm_90']
    """
    if isinstance(archs, str):
        raise ArgumentError('archs= is a list of str, such as ["sm_80", "sm_90"], got one str')
    items = [item for kernel in kernels for item in _items(kernel)]
    programs = [(item.program, item.names) for item in items]
    rows = b"".join(item.rows for item in items)
    paths = [_core._path(each, "pack(records=)") for each in records]
    if isinstance(library, str):
        raise ArgumentError('library= is a list of names, such as ["softmax"], got one str')
    with tempfile.TemporaryDirectory() as folder, Progress("compiling") as progress:
        if calls := prepared(library, dtypes, shapes, None, "pack(library=)"):
            paths.append(os.path.join(folder, "library.jsonl"))
            record(paths[-1], calls)
        return _core._pack_write(
            _core._path(path, "pack()"), programs, paths, [*archs], progress.advance, rows
        )


def use_pack(path: str | os.PathLike[str]) -> None:
    """Takes compiled code from that pack from now on. Other kernels are compiled as before.

    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }")
    >>> rows = kw.pack("fill.kwpack", [fill], archs=["sim"])
    >>> kw.use_pack("fill.kwpack")
    """
    _core._pack_use(_core._path(path, "use_pack()"))


def _with_source(program: _core._Program | None, item: Any) -> _core._Program:
    if program is None or program.code is not None:
        raise ArgumentError(f"{item!r} was loaded from object code and has no source")
    return program


class _Item(NamedTuple):
    program: _core._Program
    names: list[str]
    rows: bytes = b""


def _items(kernel: Any) -> list[_Item]:
    if isinstance(kernel, _core.Kernel):
        return [_Item(_with_source(kernel._program, kernel), [kernel.name])]
    if isinstance(kernel, (Module, Program)):
        return [_Item(_with_source(kernel._program, kernel), [])]
    if isinstance(kernel, (str, os.PathLike)):
        return [_Item(Program(kernel)._program, [])]
    if isinstance(kernel, _core.TunedCall) and hasattr(kernel, "packed"):
        kernels, rows = kernel.packed()
        items = [_Item(chosen._program, [chosen.name]) for chosen in kernels]
        return [items[0]._replace(rows=rows), *items[1:]]
    raise ArgumentError(
        "pack() takes kernels, tuned kernels, modules, programs, texts and paths, got a "
        f"{type(kernel).__name__}"
    )


class PackedRows:
    """The rows of a tuning store that a pack brought along."""

    def __init__(self, path: str, rows: bytes) -> None:
        self._path, self._rows = path, rows

    def read_bytes(self) -> bytes:
        return self._rows

    def __str__(self) -> str:
        return self._path


def rows_in_use() -> list[PackedRows]:
    """Those of the packs in use, the newest pack first."""
    return [PackedRows(path, rows) for path, rows in _core._pack_rows()]
