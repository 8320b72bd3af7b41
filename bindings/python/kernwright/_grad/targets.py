"""Handlers of functions that write results to arrays of the caller, their keyword `out`."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array
from kernwright._grad.calls import Handler
from kernwright._grad.writes import written
from kernwright.errors import InvalidArgument


def into(function: Handler, call: str) -> Handler:
    """A function that is recorded without `out`; then its results are written there."""

    def handler(*args: Any, out: Any = None, **options: Any) -> Any:
        made = function(*args, **options)
        return made if out is None else _put(out, made, call)

    return handler


def _put(out: Any, made: Any, call: str) -> Any:
    if isinstance(out, tuple):
        results = made if isinstance(made, tuple) else (made,)
        for to, result in zip(out, results, strict=False):  # of rope() without k
            if to is not None:
                _put(to, result, call)
        return made
    if isinstance(out, Array) and (out.shape != made.shape or out.dtype != made.dtype):
        raise InvalidArgument(
            f"{call} cannot write {made.dtype} of shape {made.shape} to {out.dtype} of shape "
            f"{out.shape}"
        )
    return written(out, made, call)
