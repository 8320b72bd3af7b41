"""Space: named parameters, restrictions, and the valid configurations."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, overload

from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound
from kernwright.tune._config import Config, Value, mapping, plain
from kernwright.tune._restriction import CallableRestriction, parts_of

_KINDS = {"hamming": "hamming", "adjacent": "adjacent"}


def _values(name: str, values: Any) -> tuple[Value, ...]:
    if isinstance(values, (str, bytes, set, frozenset, Mapping)) or not hasattr(values, "__iter__"):
        hint = f": write [{values!r}]" if isinstance(values, (str, bool, int, float)) else ""
        raise ArgumentError(
            f"the values of {name} are a list, tuple, range or array, got "
            f"{type(values).__name__}{hint}"
        )
    return tuple(plain(value, f"a value of {name}") for value in values)


class Space:
    """The configurations of a kernel.

    >>> space = kw.tune.Space(block=[32, 64, 128], tile=range(1, 9), vec=[1, 2, 4])
    >>> space.require("block * tile <= 512", "n % vec == 0", lambda tile, vec: tile >= vec)
    Space(block: 3, tile: 8, vec: 3; 3 restrictions)
    >>> space = space.with_problem(n=4096)
    >>> len(space), space[0], kw.tune.Config(block=32, tile=1, vec=1) in space
    (48, Config(block=32, tile=1, vec=1), True)

    Values are bools, ints of 64 bits, floats and strs. Configurations come in the order of
    itertools.product over the parameters as they were given. If that order would take much longer,
    they come in the order of itertools.product over other orders of the parameters.

    The valid configurations are found when they are first asked for, without a walk through the
    product of all values. An empty space raises InvalidArgument with the restriction that removes
    most configurations. Change a space in one thread alone.

    Restrictions go to `require()`. So that they do not become a parameter in silence, a keyword
    named restrictions, restriction, constraints or require is an error.
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        given = dict(mapping(parameters, "Space()"))
        for name, values in more.items():
            if name in ("restrictions", "restriction", "constraints", "require"):
                raise InvalidArgument(
                    f"Space({name}=...) would be a parameter: give restrictions to Space(...)."
                    f"require(...), or a parameter of this name as Space({{{name!r}: ...}})"
                )
            if name in given:
                raise InvalidArgument(f"there are two parameters named {name}")
            given[name] = values
        for name in given:
            if not isinstance(name, str):
                raise ArgumentError(f"a parameter's name is a str, got {type(name).__name__}")
        self._parameters = {name: _values(name, values) for name, values in given.items()}
        if not self._parameters:
            raise InvalidArgument("a space wants parameters: Space(block=[32, 64], tile=[1, 2])")
        self._requirements: list[tuple[str, Any]] = []
        self._labels: list[str] = []
        self._problem: dict[str, Value] = {}
        self._listed: list[tuple[int, ...]] | None = None
        self._make()

    def _make(self) -> None:
        self._core = _core.TuneSpace()
        for name, values in self._parameters.items():
            self._core.add(name, list(values))
        self._core.set_problem(self._problem)
        self._places = [
            {value: place for place, value in enumerate(values)}
            for values in self._parameters.values()
        ]
        self._labels = []
        if self._listed is not None:
            self._core.set_configurations(self._listed)

    def _changed(
        self,
        problem: Mapping[str, Value] | None = None,
        device: Any = None,
    ) -> Space:
        """A copy with other problem values or for another device."""
        other = object.__new__(type(self))
        other._parameters = self._parameters
        other._problem = dict(self._problem if problem is None else problem)
        other._requirements = []
        other._listed = self._listed
        other._make()
        for kind, what in self._requirements:
            if kind == "device":
                limits, own = what
                other.require_device(**limits, device=own if device is None else device)
            else:
                other.require(what)
        return other

    def _copy(self) -> Space:
        """The same with the found configurations; changes of one are not the other's."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._core = self._core.copy()
        other._requirements = list(self._requirements)
        other._labels = list(self._labels)
        return other

    @property
    def parameters(self) -> Mapping[str, tuple[Value, ...]]:
        """The values of each parameter, by name and in order."""
        return MappingProxyType(self._parameters)

    @property
    def problem(self) -> Mapping[str, Value]:
        """The problem's values for restrictions."""
        return MappingProxyType(self._problem)

    @property
    def restrictions(self) -> tuple[str, ...]:
        """The restrictions as messages name them: expressions, names of functions."""
        return tuple(self._labels)

    @property
    def combinations(self) -> int:
        """How many there would be without restrictions."""
        return math.prod(len(values) for values in self._parameters.values())

    # -- what restricts it ---------------------------------------------------------------------

    def require(self, *restrictions: Any) -> Space:
        """Adds restrictions and returns the space.

        A str is an Expression. Other names than parameters are values of the problem.
        with_problem() must set them before configurations are asked for. A callable gets the
        parameters and problem values that it names, or one dict of all; (callable, names) gets
        these by position. If a restriction raises for a configuration that all others allow, the
        error names the restriction and the values.
        """
        for restriction in restrictions:
            if isinstance(restriction, list):
                self.require(*restriction)
                continue
            if isinstance(restriction, str):
                self._core.require(restriction, "")
                self._labels.append(restriction)
            else:
                function, names = parts_of(restriction)
                own = CallableRestriction(function, names, self._parameters, self._problem)
                self._core.require_callable(own.label, own)
                self._labels.append(own.label)
            self._requirements.append(("restriction", restriction))
        return self

    def require_device(
        self,
        *,
        threads: str | int | None = None,
        shared_bytes: str | int | None = None,
        static_shared_bytes: str | int | None = None,
        registers: str | int | None = None,
        device: Any = None,
    ) -> Space:
        """Leaves configurations within the limits of `device` (by default the current one), before
        anything is compiled, and returns the space.

        Each is an expression: `threads` and `shared_bytes` of a block (static_shared_bytes: of
        `__shared__` arrays with a size in the source, for which less is allowed), `registers` of a
        thread (with `threads` also of a block).
        """
        from kernwright import current_device

        given = {
            "threads": threads,
            "shared_bytes": shared_bytes,
            "static_shared_bytes": static_shared_bytes,
            "registers": registers,
        }
        target = current_device() if device is None else device
        attributes = target.attributes
        limits = {
            "threads": attributes["max_threads_per_block"],
            "shared_bytes": attributes["max_shared_memory_per_block_optin"]
            or attributes["max_shared_memory_per_block"],
            "static_shared_bytes": attributes["max_shared_memory_per_block"],
            "registers": 255,
        }
        texts = {}
        for name, value in given.items():
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, str)):
                raise ArgumentError(
                    f"require_device({name}=) is an expression as str, got {type(value).__name__}"
                )
            texts[name] = str(value)
        if not texts:
            raise ArgumentError("require_device() wants threads=, shared_bytes= or registers=")
        rules = [(f"({text}) <= {limits[name]}", name) for name, text in texts.items()]
        if "threads" in texts:
            rules.append((f"({texts['threads']}) >= 1", "threads"))
        if "threads" in texts and "registers" in texts:
            most = attributes["max_registers_per_block"]
            rules.append(
                (f"({texts['registers']}) * ({texts['threads']}) <= {most}", "registers of a block")
            )
        for expression, name in rules:
            label = f"{name} of {target.name}: {expression}"
            self._core.require(expression, label)
            self._labels.append(label)
        self._requirements.append(("device", (given, device)))
        return self

    def with_problem(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Space:
        """A copy whose restrictions see these values of the problem as well."""
        given = {**(values or {}), **more}
        return self._changed(
            problem={
                **self._problem,
                **{k: plain(v, f"problem value {k}") for k, v in given.items()},
            }
        )

    def for_device(self, device: Any) -> Space:
        """A copy with the restrictions of require_device() applied for that device."""
        return self._changed(device=device)

    # -- its configurations --------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of valid configurations; len() gives the same."""
        return self._core.size()

    def __len__(self) -> int:
        return self._core.size()

    def __bool__(self) -> bool:
        return True

    def _config(self, choices: tuple[int, ...]) -> Config:
        return Config(
            {
                name: values[choice]
                for (name, values), choice in zip(self._parameters.items(), choices, strict=True)
            }
        )

    def _choices(self, config: Mapping[str, Any]) -> tuple[int, ...] | None:
        """The places of its values; None when one is not among the values."""
        if not isinstance(config, Mapping):
            raise ArgumentError(f"a configuration is a mapping, got {type(config).__name__}")
        unknown = [name for name in config if name not in self._parameters]
        missing = [name for name in self._parameters if name not in config]
        if unknown or missing:
            wrong = [f"has an unknown {name!r}" for name in unknown[:1]]
            what = " and ".join([*wrong, *(f"has no {name!r}" for name in missing[:1])])
            raise NameNotFound(
                f"the configuration {what}; the parameters are: {', '.join(self._parameters)}"
            )
        choices = []
        for name, places in zip(self._parameters, self._places, strict=True):
            try:
                choices.append(places[config[name]])
            except (KeyError, TypeError):
                return None
        return tuple(choices)

    def __iter__(self) -> Iterator[Config]:
        return map(self.__getitem__, range(self.size))

    @overload
    def __getitem__(self, index: int) -> Config: ...
    @overload
    def __getitem__(self, index: slice) -> list[Config]: ...
    def __getitem__(self, index: int | slice) -> Config | list[Config]:
        if isinstance(index, slice):
            return [self[i] for i in range(self.size)[index]]
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise ArgumentError(
                f"a space is indexed by an int or slice, got {type(index).__name__}"
            )
        size, wanted = self.size, index.__index__()
        if not -size <= wanted < size:
            raise IndexError(f"there is no configuration {wanted}: the space has {size}")
        return self._config(self._core.at(wanted % size))

    def __contains__(self, config: object) -> bool:
        if not isinstance(config, Mapping) or set(config) != set(self._parameters):
            return False
        choices = self._choices(config)
        return choices is not None and self._core.find(choices) is not None

    def index(self, config: Mapping[str, Any]) -> int:
        """The index of a valid configuration; InvalidArgument for another."""
        choices = self._choices(config)
        found = None if choices is None else self._core.find(choices)
        if found is None:
            raise InvalidArgument(f"the space does not have {Config(config)!r}")
        return found

    def sample(self, n: int, seed: int | None = None) -> list[Config]:
        """`n` different valid configurations, each as likely as any other; the same ones for the
        same seed. InvalidArgument where there are fewer."""
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise ArgumentError(f"sample(n) wants an int, got {type(n).__name__}")
        if n.__index__() < 0:
            raise InvalidArgument(f"sample(n) cannot be {n}")
        chosen = seed_argument(seed)
        return [self[i] for i in self._core.sample(n.__index__(), chosen)]

    def neighbours(self, config: Mapping[str, Any], kind: str = "hamming") -> list[Config]:
        """The valid configurations beside `config`, which need not be valid itself, in order.

        "hamming": one parameter differs. "adjacent": each parameter differs by one step at most,
        a step being to the next value that occurs in the space.
        """
        wanted = _KINDS.get(kind.lower()) if isinstance(kind, str) else None
        if wanted is None:
            raise InvalidArgument(f'neighbours are "hamming" or "adjacent", got {kind!r}')
        choices = self._choices(config)
        if choices is None:
            raise InvalidArgument(
                f"{Config(config)!r} has a value that the space does not list for its parameter"
            )
        return [self[i] for i in self._core.neighbours(choices, wanted)]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {len(values)}" for name, values in self._parameters.items())
        count = len(self._labels)
        restricted = f"; {count} restriction{'' if count == 1 else 's'}" if count else ""
        if self._listed is not None:
            restricted = f"; {len(self._listed)} listed" + restricted
        return f"Space({parts}{restricted})"

    def __str__(self) -> str:
        lines = [f"{name}: {list(values)!r}" for name, values in self._parameters.items()]
        lines += [f"require {label}" for label in self._labels]
        return "\n".join([repr(self), *(f"  {line}" for line in lines)])

    # -- other forms ---------------------------------------------------------------------------

    @classmethod
    def from_configurations(cls, configurations: Iterable[Mapping[str, Any]]) -> Space:
        """A space of exactly these configurations; each parameter's values in the order in which
        they sort, strings in order of appearance. Restrictions cannot be added."""
        rows = [dict(configuration) for configuration in configurations]
        if not rows:
            raise InvalidArgument("a space wants at least one configuration")
        columns: dict[str, dict[Value, None]] = {name: {} for name in rows[0]}
        for row in rows:
            if row.keys() != columns.keys():
                raise InvalidArgument(
                    f"configurations of one space name the same parameters: {list(columns)} and "
                    f"{list(row)}"
                )
            for name, value in row.items():
                columns[name][plain(value, f"a value of {name}")] = None
        sorted_columns = {
            name: list(values)
            if any(isinstance(value, str) for value in values)
            else sorted(values)
            for name, values in columns.items()
        }
        space = cls(sorted_columns)
        space._listed = [
            tuple(places[row[name]] for name, places in zip(columns, space._places, strict=True))
            for row in rows
        ]
        space._core.set_configurations(space._listed)
        return space

    @classmethod
    def from_t1(cls, path: str | os.PathLike[str]) -> Space:
        """Of a JSON file for spaces of Kernel Tuner and BAT (T1)."""
        from kernwright.tune._t1 import read_t1

        parameters, conditions = read_t1(path)
        return cls(parameters).require(*conditions)

    def to_t1(self, path: str | os.PathLike[str], name: str = "kernel") -> None:
        """Writes such a file. Functions as restrictions cannot be written."""
        from kernwright.tune._t1 import write_t1

        texts = [what for kind, what in self._requirements if kind == "restriction"]
        others = [kind for kind, what in self._requirements if not isinstance(what, str)]
        if others or self._listed is not None:
            raise InvalidArgument(
                "a T1 file holds restrictions that are expressions alone: this space has "
                "functions, limits of a device or a list of configurations"
            )
        write_t1(path, name, self._parameters, texts)


def seed_argument(seed: Any) -> int:
    """64 bits of it; random ones for None."""
    if seed is None:
        return secrets.randbits(64)
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise ArgumentError(f"a seed is an int or None, got {type(seed).__name__}")
    value: int = seed.__index__()
    return value % 2**64
