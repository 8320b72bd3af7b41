"""What a recording does with a function: a rule for the extension, or a handler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kernwright._core import Array, _unrecorded
from kernwright._grad.recording import is_traced, note_extent
from kernwright._support.cycles import require_no_cycle
from kernwright.errors import ArgumentError

Handler = Callable[..., Any]


class Rule(NamedTuple):
    """The extension runs the function without a recording. Where an argument has a gradient, it
    calls rule(result, *arguments, **options), which returns pairs of an operand and its pullback;
    a joint rule returns operands, results, and one pullback for all. Calls with an `option` go to
    the handler: one that is neither None, nor the empty string, nor an index that makes a view."""

    rule: Callable[..., Any]
    name: str | None  # how errors call the function; None: its first argument
    joint: bool = False
    handler: Handler | None = None
    option: str = ""
    position: int = 0  # of the option among the arguments


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
