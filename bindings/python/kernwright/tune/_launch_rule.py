"""What a launch takes from a configuration and a problem: grid, block and shared memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument, NameNotFound
from kernwright.tune._config import Value, mapping, plain
from kernwright.tune._expression import Expression

_EXTENTS = 3


def _parts(spec: Any) -> list[Any]:
    return list(spec) if isinstance(spec, (list, tuple)) else [spec]


class LaunchRule:
    """Grid, block and dynamic shared bytes: numbers, expressions over parameters and problem
    values, lists of up to three of them, or callables of one dict of all these values."""

    def __init__(self, grid: Any, block: Any, shared_bytes: Any = 0) -> None:
        self._take({"grid": grid, "block": block, "shared_bytes": shared_bytes or 0})

    def _take(self, specs: dict[str, Any]) -> None:
        self._specs = specs
        self._expressions: dict[str, Expression] = {}
        for what, spec in self._specs.items():
            self._check(what, spec)

    def _check(self, what: str, spec: Any) -> None:
        parts = _parts(spec)
        if not 1 <= len(parts) <= (1 if what == "shared_bytes" else _EXTENTS):
            raise InvalidArgument(f"{what} has {len(parts)} extents: {spec!r}")
        for part in parts:
            if isinstance(part, str):
                self._expressions[part] = Expression(part)
            elif isinstance(part, bool) or not (hasattr(part, "__index__") or callable(part)):
                raise ArgumentError(
                    f"{what} is a number, an expression, a tuple of these or a callable, got "
                    f"{type(part).__name__}: {what}={spec!r:.80}"
                )

    @property
    def names(self) -> set[str]:
        """The parameters and problem values that its expressions name."""
        return {name for expression in self._expressions.values() for name in expression.names}

    @property
    def calls(self) -> list[Any]:
        """The callables in it, which may use any value."""
        return [p for spec in self._specs.values() for p in _parts(spec) if callable(p)]

    @property
    def specs(self) -> Mapping[str, Any]:
        """Grid, block and shared_bytes as they were given."""
        return self._specs

    def __call__(self, values: Mapping[str, Value]) -> tuple[Any, Any, int]:
        """Grid, block and shared bytes. NameNotFound for a name without a value."""
        grid, block, shared_bytes = (
            self._evaluate(what, spec, values) for what, spec in self._specs.items()
        )
        return grid, block, shared_bytes[0]

    def _evaluate(self, what: str, spec: Any, values: Mapping[str, Value]) -> tuple[int, ...]:
        if callable(spec):
            spec = spec(dict(values))
            self._check(what, spec)
        return tuple(self._number(what, part, values) for part in _parts(spec))

    def _number(self, what: str, part: Any, values: Mapping[str, Value]) -> int:
        value = part
        if callable(part):
            value = part(dict(values))
        elif isinstance(part, str):
            value = self._expressions[part](values)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, (bool, str)) or not hasattr(value, "__index__"):
            raise InvalidArgument(f"{what}: {part!r} gives {value!r}, but must give a whole number")
        return int(value.__index__())


class ClusterRule(LaunchRule):
    """Blocks of a cluster along each axis, given as a grid is. Numbers are checked at once."""

    def __init__(self, cluster: Any) -> None:
        self._take({"cluster": cluster})

    def _check(self, what: str, spec: Any) -> None:
        super()._check(what, spec)
        for part in _parts(spec):
            if hasattr(part, "__index__"):
                self._number(what, part, {})

    def extents(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        return self._evaluate("cluster", self._specs["cluster"], values)

    def _number(self, what: str, part: Any, values: Mapping[str, Value]) -> int:
        extent = super()._number(what, part, values)
        if not 1 <= extent < 2**32:
            given = f" gives {extent}" if isinstance(part, str) or callable(part) else ""
            raise InvalidArgument(
                f"cluster: {part!r}{given}; a cluster has at least 1 block along each axis, and "
                "cluster=None is no cluster"
            )
        return extent


_PLACE = re.compile(r"(\w+)(?:\.(size)|\.shape\[(-?\d+)\])?")


def _shape(argument: Any) -> Sequence[int]:
    array = getattr(argument, "array", argument)  # of kw.In and its kin
    shape = getattr(array, "shape", None)
    if shape is None:
        raise ArgumentError(f"a {type(argument).__name__} has no shape that a problem value is of")
    return tuple(shape)


class ProblemReader:
    """Finds the values of a problem in the arguments of a launch.

    `sources` says where a value comes from: "n" is the parameter n of the kernel, "x.size" and
    "x.shape[1]" are of an array, a number stands for itself, a callable gets the arguments. A value
    that it does not name is the parameter of that name.
    """

    def __init__(self, kernel: _core.Kernel, sources: Mapping[str, Any] | None) -> None:
        self._kernel = kernel.name
        names = _core._tune_parameter_names(kernel._program, kernel.name)
        self._places = {name: place for place, name in enumerate(names) if name}
        self._sources = dict(mapping(sources, "problem="))
        for name, source in self._sources.items():
            self._getter(name, source)

    def knows(self, name: str) -> bool:
        """Whether the arguments of a launch tell that value."""
        return name in self._sources or name in self._places

    def places(self, names: Sequence[str]) -> list[int] | None:
        """Places of the arguments that are the values, or None where it takes more to know."""
        sources = [self._sources.get(name, name) for name in names]
        if not all(isinstance(source, str) and source in self._places for source in sources):
            return None
        return [self._places[source] for source in sources]

    def read(self, names: Sequence[str], arguments: tuple[Any, ...]) -> dict[str, Value]:
        """The values of these names."""
        return {
            name: plain(
                self._getter(name, self._sources.get(name, name))(arguments),
                f"the problem value {name}",
            )
            for name in names
        }

    def _getter(self, name: str, source: Any) -> Callable[[tuple[Any, ...]], Any]:
        if callable(source):
            return lambda arguments: source(*arguments)
        if not isinstance(source, str):
            value = plain(source, f"the problem value {name}")
            return lambda arguments: value
        match = _PLACE.fullmatch(source)
        place = self._places.get(match[1]) if match else None
        if match is None or place is None:
            known = ", ".join(self._places) or "none"
            raise NameNotFound(
                f"the problem value {name!r} is no parameter of {self._kernel}, whose parameters "
                f'are: {known}. Say where it comes from: problem={{"{name}": "x.shape[0]"}}, or a '
                "number, or a callable of the arguments"
            )

        def get(arguments: tuple[Any, ...]) -> Any:
            if place >= len(arguments):
                raise ArgumentError(f"{self._kernel}: the argument {match[1]} is missing")
            argument = arguments[place]
            if match[3] is not None:
                return _extent(argument, int(match[3]), source)
            if match[2] is None:
                return _number(argument, match[1])
            size = 1
            for extent in _shape(argument):
                size *= extent
            return size

        return get


def _number(argument: Any, name: str) -> Any:
    if isinstance(argument, bool):
        return argument
    if hasattr(argument, "__index__") and not getattr(argument, "shape", ()):
        value = argument.__index__()
        if not -(2**63) <= value < 2**63:
            raise ArgumentRangeError(f"the argument {name} of {value} does not fit 64 bits")
        return value
    if isinstance(argument, float) or (
        hasattr(argument, "dtype") and not getattr(argument, "shape", (0,))
    ):
        return float(argument)
    raise ArgumentError(
        f"the argument {name} is a {type(argument).__name__}, where a number is wanted as problem "
        f'value: say problem={{"{name}": "{name}.size"}} for the size of an array'
    )


def _extent(argument: Any, axis: int, source: str) -> int:
    shape = _shape(argument)
    if not -len(shape) <= axis < len(shape):
        raise ArgumentError(f"{source}: the array has {len(shape)} dimensions")
    return int(shape[axis])
