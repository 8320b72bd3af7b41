"""The part of the extension module that hands calls to a recording of gradients."""

from collections.abc import Callable
from typing import Any

def _is_recording() -> bool:
    """Whether calls of this thread are recorded."""

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
