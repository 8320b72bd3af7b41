"""Arrays of a scheduler: on the device for tasks of a model, else perhaps on the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from kernwright import _core
from kernwright._core import Array
from kernwright._support.words import printable
from kernwright.errors import ArgumentError, InvalidArgument


class Kept:
    """The arrays of a model in the care of a scheduler. Scheduler.keep() makes it.

    In `with kept:` the arrays are on the device as within a task of the model. Thread-safe.

    >>> x = kw.ones(4)
    >>> scheduler = kw.schedule.Scheduler(memory=2**30)
    >>> with scheduler.keep(x, model="sum") as kept:
    ...     float(x.sum().numpy())
    4.0
    >>> kept.nbytes, kept.resident
    (16, 16)
    """

    def __init__(self, scheduler: Any, model: str, arrays: list[Array], qos: str) -> None:
        self.model = model
        self._scheduler = scheduler
        kept = _core._KeptArrays(arrays, _core.EvictionGroup(qos, whole=True))
        scheduler._keep(model, kept)
        self._kept: Any = kept
        self._blocks: list[Any] = []  # its length is the number of blocks; threads may share it

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._kept.bytes if self._kept else 0

    @property
    def resident(self) -> int:
        """Those of them on the device."""
        return self._kept.group.resident if self._kept else 0

    def evict(self) -> int:
        """Moves all of it to the host now, if no task uses it. Returns the bytes moved."""
        if not self._kept:
            return 0
        self._scheduler._reap()  # a task that is done uses it no more
        return int(self._kept.evict())

    def release(self) -> None:
        """Gives the arrays their content for good: the scheduler keeps them no more. Unfinished
        tasks of the model have the arrays until their end, too."""
        if self._kept:
            self._scheduler._keep(self.model, None)
        self._kept = None

    def __enter__(self) -> Kept:
        kept = self._required()
        kept.enter()
        self._blocks.append(kept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._blocks:
            raise InvalidArgument(f"no block of the arrays of {printable(self.model)} was entered")
        self._blocks.pop().leave()

    def _required(self) -> Any:
        if self._kept is None:
            raise InvalidArgument(f"the arrays of {printable(self.model)} were released")
        return self._kept

    def __repr__(self) -> str:
        return (
            f"<Kept arrays of {printable(self.model)}: {self.resident} of {self.nbytes} bytes on "
            "the device>"
        )


def arrays_in(value: Any, seen: set[int]) -> Iterator[Array]:
    """The arrays in a value, each once."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Array):
        yield value
        return
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, (list, tuple, set)):
        parts = value
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable_only(value):
        parts = vars(value).values()
    for part in parts:
        yield from arrays_in(part, seen)


def callable_only(value: Any) -> bool:
    """Whether it is a function or a module of Python, without arrays of its own."""
    return type(value).__module__ in ("builtins", "functools", "types")


def keep(scheduler: Any, objects: tuple[Any, ...], model: Any, qos: Any) -> Kept:
    if not isinstance(model, str) or not model:
        raise ArgumentError(f"keep(): model= is the name of a model, got {model!r:.80}")
    seen: set[int] = set()
    arrays = [array for each in objects for array in arrays_in(each, seen)]
    if not arrays:
        raise ArgumentError("keep(): no arrays in what is to be kept")
    return Kept(scheduler, model, arrays, qos)
