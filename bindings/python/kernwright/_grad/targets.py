"""Handlers of functions that write results to arrays of the caller, their keyword `out`."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array
from kernwright._grad.calls import Handler
from kernwright._grad.writes import written
from kernwright.errors import InvalidArgument


def target_handler(function: Handler, call: str) -> Handler:
    """Records the function without `out`, then writes its results there."""

    def handler(*args: Any, out: Any = None, **options: Any) -> Any:
        made = function(*args, **options)
        return made if out is None else _put(out, made, call)

    return handler


def _put(out: Any, made: Any, call: str) -> Any:
    if isinstance(out, tuple):
        results = made if isinstance(made, tuple) else (made,)
        # rope() without k has two targets and one result.
        for target, result in zip(out, results, strict=False):
            if target is not None:
                _put(target, result, call)
        return made
    if isinstance(out, Array) and (out.shape != made.shape or out.dtype != made.dtype):
        raise InvalidArgument(
            f"{call} cannot write {made.dtype} of shape {made.shape} to {out.dtype} of shape "
            f"{out.shape}"
        )
    return written(out, made, call)
