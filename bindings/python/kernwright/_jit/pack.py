"""Packs: one file with the code of many kernels for many architectures, used without a compiler."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from kernwright import _core
from kernwright._jit.kernels import Module, Program
from kernwright._support.progress import Progress
from kernwright.errors import ArgumentError


def pack(
    path: str | os.PathLike[str],
    kernels: Iterable[Any] = (),
    *,
    archs: Sequence[str],
    records: Iterable[str | os.PathLike[str]] = (),
) -> list[dict[str, Any]]:
    """Compiles kernels for every architecture into one file; returns a row for each code in it.

    `kernels` are kernels, modules and programs of a source, source texts or paths; `records` files
    written by KERNWRIGHT_RECORD. `archs` are "sm_90", "sm_90a", "compute_90", or "sim" for the
    simulated device. Equal inputs and an equal NVRTC give equal bytes.
    """
    if isinstance(archs, str):
        raise ArgumentError('archs= is a list of str, such as ["sm_80", "sm_90"], got one str')
    programs = [_item(kernel) for kernel in kernels]
    paths = [_core._path(record, "pack(records=)") for record in records]
    with Progress("compiling") as progress:
        return _core._pack_write(
            _core._path(path, "pack()"), programs, paths, [*archs], progress.advance
        )


def use_pack(path: str | os.PathLike[str]) -> None:
    """Takes compiled code from that pack from now on; what it lacks is compiled as before."""
    _core._pack_use(_core._path(path, "use_pack()"))


def _with_source(program: _core._Program | None, item: Any) -> _core._Program:
    if program is None or program.code is not None:
        raise ArgumentError(f"{item!r} was loaded from object code and has no source")
    return program


def _item(kernel: Any) -> tuple[_core._Program, list[str]]:
    if isinstance(kernel, _core.Kernel):
        return _with_source(kernel._program, kernel), [kernel.name]
    if isinstance(kernel, (Module, Program)):
        return _with_source(kernel._program, kernel), []
    if isinstance(kernel, (str, os.PathLike)):
        return Program(kernel)._program, []
    raise ArgumentError(
        f"pack() takes kernels, modules, programs, texts and paths, got a {type(kernel).__name__}"
    )
