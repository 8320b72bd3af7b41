"""ProgramOptions: how a source is compiled, as fields with checked kinds."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
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


# What checks the value of each field. The order is that of the documentation.
_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "arch": _optional_text,
    "std": _text,
    "defines": _texts,
    "headers": _texts,
    "include_dirs": _paths,
    "fast_math": _flag,
    "max_registers": _optional_int,
    "lineinfo": _flag,
    "device_debug": _flag,
    "strip_host": _flag,
    "minimal": _tristate,
    "pch": _tristate,
    "opt_level": _optional_int,
    "timeout": _seconds,
    "extra": _list_of_text,
}
_NONE: Mapping[str, Any] = {}  # never changed


def _unknown(name: str) -> ArgumentError:
    import difflib

    close = difflib.get_close_matches(name, [*_FIELDS, "options"], n=1, cutoff=0.6)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return ArgumentError(f"there is no option {name}{hint}; the options are {', '.join(_FIELDS)}")


class ProgramOptions:
    """How a source is compiled; every field has the compiler's default when left out.

    `arch` is "sm_90a" or "compute_80" (default: that of the device), `std` the C++ standard.
    `defines` and `headers` map names to values and include names to texts; relative `include_dirs`
    are those of the current folder of now. `opt_level` is 0 to 3. `device_debug` and `lineinfo` add
    what debuggers and profilers read. `strip_host` takes host code out of the text. `minimal` and
    `pch` ("auto", True, False) choose quicker ways to compile. `timeout` counts seconds, `extra`
    are options as NVRTC has them. A value: compare it, pickle it, make a changed one with
    ``replace()``.

    >>> kw.ProgramOptions(defines={"N": 4}, fast_math=True)
    ProgramOptions(defines={'N': '4'}, fast_math=True)
    """

    __slots__ = {
        "arch": 'The architecture: "sm_90a", "compute_80"; None for that of the device.',
        "defines": "The macros: names with their values, as texts.",
        "device_debug": "Whether the code is made for a debugger, without optimisation.",
        "extra": "Further options as NVRTC has them.",
        "fast_math": "Whether float32 is computed faster and less precisely.",
        "headers": "The texts of headers by the names in their #include.",
        "include_dirs": "The folders of headers, as absolute paths.",
        "lineinfo": "Whether the code tells profilers the lines of the source.",
        "max_registers": "The most registers of a thread; None for no limit.",
        "minimal": 'Whether NVRTC declares fewer names of its own; "auto": if they are enough.',
        "opt_level": "The level of optimisation by ptxas, 0 to 3; None for its default.",
        "pch": 'Whether headers are precompiled; "auto": from their second use on.',
        "std": 'The C++ standard, such as "c++17".',
        "strip_host": "Whether code for the host is taken out of the text.",
        "timeout": "The most seconds of a compile; None for no limit.",
    }

    def __init__(
        self,
        *,
        arch: str | None = None,
        std: str = "c++17",
        defines: Mapping[str, Any] = _NONE,
        headers: Mapping[str, str] = _NONE,
        include_dirs: Sequence[str | os.PathLike[str]] = (),
        fast_math: bool = False,
        max_registers: int | None = None,
        lineinfo: bool = False,
        device_debug: bool = False,
        strip_host: bool = False,
        minimal: bool | str = "auto",
        pch: bool | str = "auto",
        opt_level: int | None = None,
        timeout: float | None = None,
        extra: Sequence[str] = (),
        **unknown: Any,
    ) -> None:
        given = locals()
        for name in unknown:
            raise _unknown(name)
        for name, check in _FIELDS.items():
            value = given[name]
            if value is _NONE:  # each object has its own
                value = {}
            elif value is not _DEFAULTS[name] or value == ():
                value = check(name, value)
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
            if value != _FIELDS[name](name, _DEFAULTS[name])
        ]
        return f"ProgramOptions({', '.join(changed)})"


_DEFAULTS: dict[str, Any] = ProgramOptions.__init__.__kwdefaults__  # type: ignore[assignment]


def _rebuild(fields: dict[str, Any]) -> ProgramOptions:
    return ProgramOptions(**fields)


def make_options(options: ProgramOptions | None, fields: dict[str, Any]) -> ProgramOptions:
    """The options that kernel() and module() were given: an object, single fields, or both."""
    if options is None:
        return ProgramOptions(**fields)
    if not isinstance(options, ProgramOptions):
        raise ArgumentError(f"options= is a kw.ProgramOptions, got {type(options).__name__}")
    return options.replace(**fields) if fields else options
