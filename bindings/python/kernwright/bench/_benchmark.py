"""Benchmark and Case: the measured work, and its points."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound
from kernwright.tune._config import Value, plain

Point: TypeAlias = dict[str, Value]


class Skip(Exception):
    """Raised by a benchmark without sense here; the message says why."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing to measure.

    `run()` queues the work on the current stream and does not wait. `bytes` and `flops` are those
    of one run, from which GB/s and TFLOP/s follow. `check()` is called once, after `run()` has run
    once and is done: False, or an AssertionError, says that the result is wrong. `policy` is what
    the L2 cache holds before each run: "cold" (the default), "warm" or "graph" (for small kernels).

    >>> x = kw.zeros(1000)
    >>> case = kw.bench.Case(lambda: kw.exp(x), bytes=2 * x.nbytes, check=lambda: True)
    """

    run: Callable[[], object]
    bytes: float | None = None
    flops: float | None = None
    check: Callable[[], object] | None = None
    policy: str = "cold"

    def __post_init__(self) -> None:
        for name, value in (("run", self.run), ("check", self.check)):
            if not callable(value) and not (name == "check" and value is None):
                raise ArgumentError(f"Case({name}=) is callable, got {type(value).__name__}")
        for name, number in (("bytes", self.bytes), ("flops", self.flops)):
            if number is not None and not (isinstance(number, (int, float)) and number >= 0):
                raise InvalidArgument(f"Case({name}={number!r}): a number of at least 0")


class Benchmark:
    """A function with its axes. benchmark() makes it; called, it is the function itself.

    >>> @kw.bench.benchmark(n=[1000, 2000], dtype=["float32"])
    ... def add(n, dtype):
    ...     x = kw.zeros(n, dtype)
    ...     return kw.bench.Case(lambda: x + 1, bytes=2 * x.nbytes)
    >>> list(add.points())
    [{'n': 1000, 'dtype': 'float32'}, {'n': 2000, 'dtype': 'float32'}]
    """

    def __init__(
        self, function: Callable[..., Any], name: str, axes: Mapping[str, Sequence[Value]]
    ) -> None:
        self.function = function
        self.name = name
        self.axes = {axis: tuple(values) for axis, values in axes.items()}

    def __call__(self, **point: Any) -> Any:
        return self.function(**point)

    def points(self, chosen: Mapping[str, Sequence[Value]] | None = None) -> Iterator[Point]:
        """Each combination of the axes' values; `chosen` replaces the values of some axes."""
        axes = {name: (chosen or {}).get(name, values) for name, values in self.axes.items()}
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def case(self, point: Point) -> Case:
        """The function's case for a point. Its exceptions pass."""
        made = self.function(**point)
        if isinstance(made, Case):
            return made
        if callable(made):
            return Case(made)
        raise ArgumentError(
            f"the benchmark {self.name} returns a kw.bench.Case or a callable that queues the "
            f"work, got {type(made).__name__}"
        )

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {len(values)}" for name, values in self.axes.items())
        return f"Benchmark({self.name}{'; ' if axes else ''}{axes})"


def _axis(name: str, values: Any) -> tuple[Value, ...]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise ArgumentError(
            f"the values of axis {name} are a list, tuple or range, got {type(values).__name__}"
        )
    found = tuple(plain(value, f"a value of axis {name}") for value in values)
    if not found:
        raise InvalidArgument(f"axis {name} has no values")
    if len(set(map(repr, found))) < len(found):
        raise InvalidArgument(f"axis {name} has a value twice: {list(found)}")
    return found


def _check_names(function: Callable[..., Any], axes: Mapping[str, Any], name: str) -> None:
    """The function takes each axis, and needs nothing else."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for axis in axes:
        if axis not in known:
            raise NameNotFound(
                f"the benchmark {name} takes no {axis!r}; it takes {', '.join(known) or 'nothing'}"
            )
    for p in parameters:
        if p.default is p.empty and p.name not in axes and p.kind is not p.VAR_POSITIONAL:
            raise InvalidArgument(
                f"the benchmark {name} has no values for {p.name}: @benchmark({p.name}=[...])"
            )


def benchmark(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, **axes: Any
) -> Any:
    """Makes a Benchmark of a function: ``@benchmark`` or ``@benchmark(n=[2**20, 2**24])``.

    The function is called with a value of each axis; it prepares the data and returns a Case, or a
    callable that queues the work. Neither is part of what is measured.

    >>> @kw.bench.benchmark(n=[64, 128])
    ... def double(n):
    ...     x = kw.ones(n)
    ...     return lambda: x * 2
    >>> double.axes
    {'n': (64, 128)}
    """
    if function is None:
        return lambda given: benchmark(given, name=name, **axes)
    if not callable(function):
        raise ArgumentError(f"benchmark() wants a function, got {type(function).__name__}")
    own = name if name is not None else getattr(function, "__name__", "benchmark")
    if not isinstance(own, str) or not own.strip():
        raise ArgumentError(f"the name of a benchmark is a text, got {own!r}")
    found = {axis: _axis(axis, values) for axis, values in axes.items()}
    _check_names(function, found, own)
    return Benchmark(function, own, found)
