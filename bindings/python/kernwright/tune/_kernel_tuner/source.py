"""Kernel Tuner's kernel_source, problem_size and divisors, as a kernel and a launch for each
configuration."""

from __future__ import annotations

import math
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright._jit.kernels import kernel as make_kernel
from kernwright._support.files import read_text
from kernwright._support.warn import warn_caller
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._expression import Expression
from kernwright.tune._sessions.text_check import KernelText
from kernwright.tune._space import Space

BLOCK_DEFAULTS = (256, 1, 1)


def whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise InvalidArgument(f"{what} gives {value!r}, but must give a whole number")
    return int(value.__index__())


def flat(items: Any) -> list[Any]:
    """Their items, and those of lists among them."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        return [items]
    return [each for item in items for each in flat(item)]


def _evaluated(item: Any, values: Mapping[str, Any], what: str) -> int:
    if isinstance(item, str):
        return whole(Expression(item)(values), f"{what} {item!r}")
    return whole(item(dict(values)) if callable(item) else item, what)


class KernelTunerLaunch:
    """Grid and block as Kernel Tuner has them: the problem divided by divisors, rounded up."""

    def __init__(self, problem_size: Any, divisors: Sequence[Any], names: Sequence[str]) -> None:
        self._problem_size, self._divisors, self._names = problem_size, divisors, names

    def block(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        return tuple(
            whole(values.get(name, default), name)
            for name, default in zip(self._names, BLOCK_DEFAULTS, strict=True)
        )

    def _extents(self, values: Mapping[str, Any]) -> list[int]:
        size = self._problem_size
        if callable(size):
            size = size(dict(values))
        if isinstance(size, str) or not isinstance(size, Iterable):
            size = (size,)
        extents = [_evaluated(item, values, "problem_size") for item in size]
        if not 1 <= len(extents) <= 3:
            raise InvalidArgument(f"problem_size has {len(extents)} extents")
        return extents + [1] * (3 - len(extents))

    def _divisor(self, divisor: Any, default: str, values: Mapping[str, Any]) -> int:
        if divisor is None:
            return whole(values.get(default, 1), default)
        if isinstance(divisor, str) or callable(divisor) or not isinstance(divisor, Iterable):
            return _evaluated(divisor, values, "grid_div")
        return math.prod(self._divisor(item, default, values) for item in divisor)

    def grid(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        divisors = [
            self._divisor(divisor, name, values)
            for divisor, name in zip(self._divisors, self._names, strict=True)
        ]
        if any(divisor < 1 for divisor in divisors):
            raise InvalidArgument(f"the grid is divided by {divisors}")
        return tuple(-(-e // d) for e, d in zip(self._extents(values), divisors, strict=True))


def _header_texts(paths: Sequence[Any]) -> dict[str, str]:
    """The files behind the first of a list, by their paths and names: its #include finds them."""
    found: dict[str, str] = {}
    for path in paths:
        if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
            raise InvalidArgument(
                f"kernel_source: behind the first of a list stand files for its #include; there is "
                f"no file {path!r}"
            )
        text = read_text(path)
        found[os.path.basename(path)] = text
        if not os.path.isabs(path):
            found[os.fspath(path)] = text
    return found


def _with_values(text: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        text = re.sub(rf"\b{re.escape(name)}\b", str(value), text)
    return text


class KernelTunerSource:
    """Kernel Tuner's kernel_source and defines, as a kernel for each configuration."""

    def __init__(
        self, name: str, source: Any, launch: KernelTunerLaunch, defines: Any, fields: Any
    ) -> None:
        self._headers: dict[str, str] = {}
        if isinstance(source, (list, tuple)):
            if not source:
                raise InvalidArgument("kernel_source is an empty list")
            source, *others = source
            self._headers = _header_texts(others)
        if not callable(source) and not isinstance(source, (str, os.PathLike)):
            raise ArgumentError(
                f"kernel_source is a text, a path or a callable, got {type(source).__name__}"
            )
        self._name, self._source, self._launch = name, source, launch
        self._defines, self._fields = defines, fields

    def _text(self, config: Mapping[str, Any]) -> Any:
        source = self._source(dict(config)) if callable(self._source) else self._source
        if isinstance(source, str) and "\n" not in source:
            if os.path.isfile(source):
                return pathlib.Path(source)
            if not set(source) & set("{}();"):
                raise InvalidArgument(f"kernel_source: there is no file {source!r}")
        return source

    def _given_defines(self, config: Mapping[str, Any]) -> dict[str, Any]:
        if self._defines is None:
            given: dict[str, Any] = {
                f"grid_size_{axis}": extent
                for axis, extent in zip("xyz", self._launch.grid(config), strict=True)
            }
            given.update(zip(self._launch._names, self._launch.block(config), strict=True))
            given["kernel_tuner"] = 1
            return given
        return {
            name: value(dict(config))
            if callable(value)
            else _with_values(value, config)
            if isinstance(value, str)
            else value
            for name, value in self._defines.items()
        }

    def warn_of_unused(self, space: Space, launch: Sequence[Any]) -> None:
        """Of parameters that neither the text nor `launch` names. Functions may read any."""
        texts = [*flat(launch), *(self._defines or {}).values(), self._name]
        if callable(self._source) or any(map(callable, texts)):
            return
        seen = KernelText.of(self(space[0]))
        named = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", str(text))}
        named.update(self._launch._names)
        unused = [name for name in seen.unused(space.parameters) if name not in named]
        if unused and not seen.is_open:
            warn_caller(
                f"the kernel does not use {', '.join(unused)}: its text and its launch do not name "
                "it, so that its values make no difference"
            )

    def __call__(self, config: Config) -> _core.Kernel:
        fields = dict(self._fields)
        fields["defines"] = {**fields.get("defines", {}), **self._given_defines(config)}
        if self._headers:
            fields["headers"] = self._headers
        return make_kernel(self._text(config), _with_values(self._name, config), **fields)
