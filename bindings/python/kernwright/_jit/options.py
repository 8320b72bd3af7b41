"""ProgramOptions: how a source is compiled, as fields with checked kinds."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"the option {name} is a str, got {type(value).__name__}")
    return _characters(name, value)


def _characters(name: str, text: str) -> str:
    """The text. Half of a surrogate pair, which a str may hold, is no character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"the option {name} has a lone surrogate at index {error.start}, which is no character"
        ) from error
    return text


def _optional_text(name: str, value: Any) -> str | None:
    return None if value is None else _text(name, value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"the option {name} is a bool, got {type(value).__name__}")
    return value


def _tristate(name: str, value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    if value == "auto":
        return "auto"
    raise ArgumentError(f'the option {name} is True, False or "auto", got {value!r}')


def _optional_int(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"the option {name} is an int, got {type(value).__name__}")
    number: int = value.__index__()
    if not 0 <= number < 2**31:
        raise InvalidArgument(f"the option {name} cannot be {number}")
    return number


def _seconds(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(f"the option {name} is a number of seconds, got {type(value).__name__}")
    if not value > 0:
        raise InvalidArgument(f"the option {name} must be above 0 seconds, got {value}")
    return float(value)


def _spelled(item: Any) -> str | None:
    """A str or a number as C++ has it; None for anything else.

    Python's, NumPy's and ml_dtypes' numbers alike. A float of fewer than 64 bits becomes one of 32,
    which holds it exactly.
    """
    if isinstance(item, str):
        return str(item)
    kind = type(item).__name__
    if isinstance(item, bool) or kind in ("bool", "bool_"):
        return "1" if item else "0"
    if kind in ("int2", "int4", "uint2", "uint4"):  # of ml_dtypes
        item = int(item)
    try:
        return _spelled_integer(operator.index(item))
    except TypeError:
        pass  # no whole number
    narrow = getattr(getattr(item, "dtype", None), "itemsize", 8) < 8
    if not isinstance(item, float) and (not hasattr(item, "dtype") or kind.startswith("complex")):
        return None
    try:
        return _spelled_float(float(item), narrow)
    except (TypeError, ValueError):
        return None


def _spelled_integer(number: int) -> str:
    if not -(2**63) <= number < 2**64:
        raise InvalidArgument(f"a define cannot be {number}: C++ has no integer of that size")
    if number >= 2**63:
        return f"{number}ULL"
    return str(number) if number > -(2**63) else f"({number + 1}LL - 1)"


def _spelled_float(number: float, narrow: bool) -> str:
    if math.isfinite(number):
        return repr(number) + ("f" if narrow else "")
    sign = "-" if math.copysign(1, number) < 0 else ""
    bits = "0x7fffffff" if number != number else "0x7f800000"
    value = f"__builtin_bit_cast(float, {bits})"
    return f"({sign}{value})" if narrow else f"({sign}(double){value})"


def _texts(name: str, value: Any) -> dict[str, str]:
    """A mapping of str; as values also numbers and bools, spelled as C++ has them."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"the option {name} is a dict, got {type(value).__name__}")
    result = {}
    for key, item in value.items():
        spelled = "" if item is None else _spelled(item)
        if spelled is None:
            raise ArgumentError(f"{name}[{key!r}] is a str or a number, got {type(item).__name__}")
        result[_text(f"{name} (a key)", key)] = _characters(f"{name}[{key!r}]", spelled)
    return result


def _paths(name: str, value: Any) -> list[str]:
    if isinstance(value, (str, os.PathLike)):
        raise ArgumentError(f"the option {name} is a list of paths, got one {type(value).__name__}")
    return [_absolute(name, _folder(name, os.fsdecode(item))) for item in value]


def _folder(name: str, path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"the folder {path!r} of the option {name} has bytes in its name that are not UTF-8: "
            "the compiler cannot be told of it. Give the texts of its headers in headers="
        ) from error
    return path


def _absolute(name: str, path: str) -> str:
    """The path by the current folder of now: options may be used, or unpickled, in another one."""
    if not path or os.path.isabs(path):
        return path
    try:
        return os.path.join(os.getcwd(), path)
    except OSError as error:
        raise InvalidArgument(
            f"{path!r} of the option {name} is relative to the current folder, which cannot be "
            f"found: {error.strerror}"
        ) from error


def _list_of_text(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        raise ArgumentError(f"the option {name} is a list of str, got one str")
    return [_text(f"{name} (an item)", item) for item in value]


# Field -> (default, check). The order is that of the documentation.
_FIELDS: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "arch": (None, _optional_text),
    "std": ("c++17", _text),
    "defines": ({}, _texts),
    "headers": ({}, _texts),
    "include_dirs": ([], _paths),
    "fast_math": (False, _flag),
    "max_registers": (None, _optional_int),
    "lineinfo": (False, _flag),
    "device_debug": (False, _flag),
    "strip_host": (False, _flag),
    "minimal": ("auto", _tristate),
    "pch": ("auto", _tristate),
    "opt_level": (None, _optional_int),
    "timeout": (None, _seconds),
    "extra": ([], _list_of_text),
}


def _unknown(name: str) -> ArgumentError:
    import difflib

    close = difflib.get_close_matches(name, _FIELDS, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}? " if close else ""
    return ArgumentError(f"there is no option {name}; {hint}The options are {', '.join(_FIELDS)}")


class ProgramOptions:
    """How a source is compiled; every field has the compiler's default when left out.

    A value: compare it, pickle it, make a changed one with ``replace()``.
    """

    __slots__ = tuple(_FIELDS)

    def __init__(self, **fields: Any) -> None:
        for name in fields:
            if name not in _FIELDS:
                raise _unknown(name)
        for name, (default, check) in _FIELDS.items():
            if name in fields:
                value = check(name, fields[name])
            else:  # each object has its own
                value = default.copy() if isinstance(default, (dict, list)) else default
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"options do not change; make new ones with replace({name}=...)")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def replace(self, **fields: Any) -> ProgramOptions:
        """The same options with some fields changed."""
        return ProgramOptions(**{**self._as_dict(), **fields})

    def _as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProgramOptions):
            return NotImplemented
        return self._as_dict() == other._as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._as_dict(),)

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, value in self._as_dict().items()
            if value != _FIELDS[name][1](name, _FIELDS[name][0])
        ]
        return f"ProgramOptions({', '.join(changed)})"


def _rebuild(fields: dict[str, Any]) -> ProgramOptions:
    return ProgramOptions(**fields)


def make_options(options: ProgramOptions | None, fields: dict[str, Any]) -> ProgramOptions:
    """The options that kernel() and module() were given: an object, single fields, or both."""
    if options is None:
        return ProgramOptions(**fields)
    if not isinstance(options, ProgramOptions):
        raise ArgumentError(f"options= is a kw.ProgramOptions, got {type(options).__name__}")
    return options.replace(**fields) if fields else options
