"""The part of the extension module that records calls for gradients."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kernwright._core_array import Array

class _Node:
    """An operation in a recording. It holds no array but those that its pullbacks hold."""

    @property
    def name(self) -> str:
        """How errors call the operation."""

    @property
    def order(self) -> int:
        """Later nodes and writes have larger numbers."""

    @property
    def joint(self) -> Callable[..., Sequence[Any]] | None:
        """The pullback of all results at once."""

    @property
    def edges(self) -> list[tuple[_Node, int, Any]]:
        """Of each operand with a gradient: its node, its number among the results of this node, and
        its pullback; beside a joint one, the position in what that returns."""

    @property
    def size(self) -> int:
        """The number of results."""

    def outline(self, number: int, /) -> Array | None:
        """An array without memory that has the shape, dtype and device of a result."""

    def fits(self, number: int, array: Array, /) -> bool:
        """Whether an array has the shape and dtype of a result."""

class _GradientRecording:
    """Which node made each array. An array is known by identity, and only while it lives."""

    @property
    def found(self) -> list[Array]:
        """The arrays of other recordings that it was asked for, after look_through()."""

    def enter(self, array: Array, name: str, /) -> _Node:
        """A new node without operands makes the array."""

    def place(self, array: Array, /) -> tuple[_Node, int] | None:
        """The node that made an array, and the array's number among its results."""

    def add_seen_write(
        self, target: Array, first: int, end: int, order: int, traced: bool, /
    ) -> None:
        """Memory was written through an array, `traced`: by what has a gradient. The caller
        keeps the array. Operands made before it, in the same memory, are handed to refuse_stale(),
        a method of the class derived from this one."""

    def close(self) -> None:
        """Forgets all arrays."""

    def look_through(self, recordings: Iterable[_GradientRecording], /) -> None:
        """From here on it knows no array, and notes which arrays of these it was asked for."""

def _extent(array: Array, /) -> tuple[int, int]:
    """The first byte of an array's elements, and the one behind the last."""

def _forget(array: Array, /) -> None:
    """Makes an array a constant of all open recordings."""

def _is_recording() -> bool:
    """Whether calls of this thread are recorded."""

def _is_traced(value: Any, /) -> bool:
    """Whether an open recording of this thread has a gradient for it."""

def _next_order() -> int:
    """The number of a write among nodes and writes."""

def _note(name: str, pairs: Iterable[tuple[Any, Any]], result: Array, /) -> None:
    """Records an operation in all open recordings of this thread, from its operands and their
    pullbacks. Raises InvalidArgument where memory of an operand was written through another
    array."""

def _note_checked(name: str, pairs: Iterable[tuple[Any, Any]], result: Array, /) -> None:
    """The same without a look at writes."""

def _note_joint(
    name: str,
    operands: Sequence[Any],
    results: Sequence[Array | None],
    pullback: Callable[..., Sequence[Any]],
    /,
) -> None:
    """Records an operation whose pullback takes the gradients of all results (None: not needed
    further on), and returns those of all operands."""

def _recordings() -> tuple[Any, ...]:
    """The open recordings of this thread, the outermost first."""

def _set_handlers(
    functions: dict[Any, Any],
    elementwise: dict[str, Callable[..., Any]],
    in_place: Callable[..., Any],
    launches: Callable[..., Any],
) -> None:
    """The rules and handlers of functions, the rules of operators, and what sees operators in place
    and launches; kept for good."""

def _set_recording(value: bool) -> bool:
    """Sets whether calls of this thread are recorded; returns whether they were."""

def _set_recordings(recordings: Iterable[_GradientRecording], /) -> None:
    """Replaces the open recordings of this thread."""

def _unrecorded(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls a function without a recording."""
