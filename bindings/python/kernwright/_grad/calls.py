"""Handlers made from rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kernwright._core import Array, _unrecorded
from kernwright._grad.recording import is_traced, note, note_extent, note_joint
from kernwright._support.cycles import require_no_cycle
from kernwright.errors import ArgumentError

Handler = Callable[..., Any]


def ruled_handler(function: Any, rule: Any, name: str) -> Handler:
    """Of a rule that returns pairs."""

    def handler(*args: Any, **kwargs: Any) -> Any:
        result = _unrecorded(function, *args, **kwargs)
        note(name, rule(result, *args, **kwargs), result)
        return result

    return handler


def joint_handler(function: Any, rule: Any, name: str) -> Handler:
    """Of a rule that returns operands, results and one pullback for all."""

    def handler(*args: Any, **kwargs: Any) -> Any:
        result = _unrecorded(function, *args, **kwargs)
        note_joint(name, *rule(result, *args, **kwargs))
        return result

    return handler


def constant_handler(function: Any) -> Handler:
    """Of a function whose results have no gradient; it may write into its arguments."""

    def handler(*args: Any, **kwargs: Any) -> Any:
        may_write((*args, *kwargs.values()))
        return _unrecorded(function, *args, **kwargs)

    return handler


def may_write(values: Iterable[Any]) -> None:
    """Tells who wants to know that these arrays may have been written."""
    for each in members(values):
        if isinstance(each, Array):
            note_extent(each)


def refused_handler(function: Any, name: str) -> Handler:
    """Of a function without a gradient."""

    def handler(*args: Any, **kwargs: Any) -> Any:
        if any(is_traced(each) for each in members((*args, *kwargs.values()))):
            raise ArgumentError(
                f"{name} has no gradient: make its argument a constant by kw.stop_gradient(), or "
                "give it a gradient by kw.custom_gradient()"
            )
        may_write((*args, *kwargs.values()))
        return _unrecorded(function, *args, **kwargs)

    return handler


def members(values: Any) -> Iterator[Any]:
    """What is in tuples and lists, however deep."""
    try:
        yield from _members(values)
    except RecursionError:
        require_no_cycle(values, "the arguments")
        raise


def _members(values: Any) -> Iterator[Any]:
    for each in values:
        if isinstance(each, (tuple, list)):
            yield from _members(each)
        else:
            yield each
