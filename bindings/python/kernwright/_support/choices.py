"""Kernels of a block of code by choices that were pinned before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernwright import _core


@contextmanager
def planned_by(choices: _core._PinnedChoices | None) -> Iterator[None]:
    """This thread launches kernels of these choices in the block; None: of those in use."""
    if choices is None:
        yield
        return
    before = _core._set_choices(choices)
    try:
        yield
    finally:
        _core._set_choices(before)
