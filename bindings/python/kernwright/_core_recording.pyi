"""The part of the extension module that hands calls to a recording of gradients."""

from collections.abc import Callable
from typing import Any

from kernwright._core_array import Array

def _is_like(x1: Any, x2: Any, /) -> bool:
    """Whether two arrays have one shape and dtype."""

def _is_recording() -> bool:
    """Whether calls of this thread are recorded."""

def _outline(x: Array, /) -> Array:
    """An array without memory that has the shape, dtype and device of another."""

def _set_handlers(
    functions: dict[Any, Callable[..., Any]],
    operators: Callable[..., Any],
    in_place: Callable[..., Any],
    launches: Callable[..., Any],
) -> None:
    """The handlers of functions, what notes operators, and what sees operators in place and
    launches; kept for good."""

def _set_recording(value: bool) -> bool:
    """Sets whether calls of this thread go to their handlers; returns whether they did."""

def _unrecorded(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls a function without a recording."""
