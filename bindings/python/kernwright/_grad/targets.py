"""Handlers of functions that write results to arrays of the caller, their keyword `out`."""

from __future__ import annotations

from typing import Any

import kernwright as kw
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


def attention_handler(function: Handler, call: str) -> Handler:
    """The same of a function whose last argument is an `out` as of_attention() makes it."""

    def handler(*args: Any) -> Any:
        *given, out = args
        made = function(*given, None)
        if out is None or made is None:
            return made
        *targets, rows = out
        result, logarithms = made
        if rows is not None:
            result = result.reshape((*rows, result.shape[-1]))
            logarithms = None if logarithms is None else logarithms.reshape(rows)
        _put(tuple(targets), (result, logarithms), call)
        return result, logarithms

    return handler


def linear_into(
    out: Any, x: Any, weight: Any, bias: Any, scale: Any, residual: Any, activation: Any, gate: Any,
    precision: Any,
) -> None:  # fmt: skip
    """The handler of linear() with `out`."""
    made = kw.nn.linear(
        x, weight, bias, activation=activation or None, gate=gate or None, residual=residual,
        scale=scale, precision=precision,
    )  # fmt: skip
    _put(out, made, "linear(out=...)")


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
