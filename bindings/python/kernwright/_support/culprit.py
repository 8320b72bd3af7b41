"""Finds the argument behind an error of Python or NumPy, and the kind of value it should be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

NOTHING: Any = object()  # stands for no value

_TYPE = r"'?([\w.]+)'?"
# Messages of CPython -> the right kind of argument; a group is the type of the given one.
_WANTED = (
    (rf"{_TYPE} object cannot be interpreted as an integer", "an int"),
    (rf"an integer is required \(got type {_TYPE}\)", "an int"),
    (rf"int\(\) argument must be .*, not {_TYPE}", "an int"),
    (rf"must be real number, not {_TYPE}", "a number"),
    (rf"(?:float|complex)\(\) (?:first )?argument must be .*, not {_TYPE}", "a number"),
    (rf"unsupported operand type\(s\) for [^:]+: {_TYPE} and {_TYPE}", "a number"),
    (rf"'[<>=]+' not supported between instances of {_TYPE} and {_TYPE}", "a number"),
    (rf"bad operand type for [^:]+: {_TYPE}", "a number"),
    (rf"type {_TYPE} doesn't define __\w+__ method", "a number"),
    (rf"{_TYPE} object is not iterable", "a sequence"),
    (rf"cannot unpack non-iterable {_TYPE} object", "a sequence"),
    (rf"object of type {_TYPE} has no len\(\)", "a sequence"),
    (rf"{_TYPE} object is not subscriptable", "a sequence"),
    (rf"{_TYPE} object is not reversible", "a sequence"),
    (rf"{_TYPE} object is not callable", "something to call"),
    (rf"(?:expected str, bytes or os.PathLike object|a path.*), not {_TYPE}", "a path"),
    (r"unhashable type: '([\w.]+)'", "a value that can be hashed"),
    (rf"a value of type {_TYPE} where another type is wanted", "of another type"),
    (r"only integer scalar arrays can be converted to a scalar index", "an int"),
    (r"invalid literal for int\(\).*", "an int"),
    (r"could not convert string to float.*", "a number"),
)
_TEXTS = ["ndarray", "str", "bytes"]
_TOO_LARGE = (
    "too large to convert",
    "an int that is out of range",
    "cannot fit 'int'",
    "too big to convert",
    "too large to be converted",
    "out of bounds for",
)
# Messages of NumPy about elements without arithmetic.
_NO_NUMBERS = ("did not contain a loop", "could not be promoted", "Cannot cast ufunc")
_NOT_FINITE = ("cannot convert float infinity", "cannot convert float NaN")


class Culprit(NamedTuple):
    """The argument to blame, "" for none; the words about it; its value."""

    name: str
    words: str
    value: Any = NOTHING

    def __str__(self) -> str:
        return f"{self.name} {self.words}" if self.name else self.words


def find(text: str, given: Mapping[str, Any]) -> Culprit:
    """Names the argument in Python's message; `text` as it is where none is to blame for sure."""
    found = _broken(text, given) or _misused(text, given) or _too_large(text, given)
    return found or Culprit("", _with_arguments(text, given))


def _misused(text: str, given: Mapping[str, Any]) -> Culprit | None:
    for pattern, kind in _WANTED:
        match = re.fullmatch(pattern, text)
        if match:
            types = [name.rpartition(".")[2] for name in match.groups()] or _TEXTS
            if kind == "a number":
                types = [name for name in types if name not in ("int", "float")] or types
            found = [_of_type(name, given, kind != "an int") for name in types]
            return _wrong(next(filter(None, found), None), kind)
    match = re.fullmatch(r"'([\w.]+)' object has no attribute '\w+'", text)
    if match:
        guilty = _of_type(match[1].rpartition(".")[2], given)
        return guilty and Culprit(guilty[0], f"cannot be {described(guilty[1])}", guilty[1])
    if any(words in text for words in _NO_NUMBERS):
        odd = [item for item in given.items() if _is_no_number(item[1])]
        return _wrong(odd[0], "a number") if len(odd) == 1 else None
    return None


def _broken(text: str, given: Mapping[str, Any]) -> Culprit | None:
    """A str with half of a surrogate pair: no character of UTF-8."""
    if "surrogates not allowed" in text or "of type str where another" in text:
        for name, value in given.items():
            if isinstance(value, str) and not is_utf8(value):
                return Culprit(name, f"has a lone surrogate, got {described(value)}", value)
    return None


def is_utf8(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _wrong(guilty: tuple[str, Any] | None, kind: str) -> Culprit | None:
    if guilty is None:
        return None
    return Culprit(guilty[0], f"is {kind}, got {described(guilty[1])}", guilty[1])


def _is_no_number(value: Any) -> bool:
    """An argument without arithmetic in NumPy, arrays of devices left out."""
    if hasattr(type(value), "__dlpack__") and not isinstance(value, np.ndarray):
        return False
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return not isinstance(value, (int, float, complex, list, tuple))
    return getattr(dtype, "kind", "O") not in "biufc"


def _too_large(text: str, given: Mapping[str, Any]) -> Culprit | None:
    if any(words in text for words in _NOT_FINITE):
        for name, value in _numbers(given):
            if isinstance(value, float) and value - value != 0:
                return Culprit(name, f"is a finite number, got {value}", value)
    if any(words in text for words in _TOO_LARGE):
        for limit in (2**63, 2**31):
            for name, value in _numbers(given):
                if isinstance(value, int) and not -limit <= value < limit:
                    return Culprit(name, f"of {short(value)} is out of range", value)
    return None


def called(text: str, error: BaseException) -> Any:
    """The function or class whose call did not fit, by its name where the error came up; None when
    the message is about something else."""
    match = re.match(r"([\w.]+)\(\) (?:got (?:an|some|multiple) |missing \d|takes )", text)
    trace = error.__traceback__
    if not match or trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    first, *rest = without_maker(match[1]).split(".")
    value = trace.tb_frame.f_locals.get(first, trace.tb_frame.f_globals.get(first))
    for part in rest:
        value = getattr(value, part, None)
    return value if callable(value) else None


def without_maker(name: str) -> str:
    """The name of a class in place of that of its __init__ or __new__: users call the class."""
    return name.removesuffix(".__init__").removesuffix(".__new__")


def place_of(value: Any, given: Mapping[str, Any]) -> str:
    """The argument with this object as its value or inside; "" for none."""
    for name, argument in given.items():
        if argument is value:
            return name
    for name, argument in given.items():
        if isinstance(argument, (list, tuple)) and any(item is value for item in argument):
            return f"an item of {name}"
        if type(argument) is dict:
            for key, item in argument.items():
                if item is value:
                    return f"{name}[{key!r}]"
    return ""


def described(value: Any) -> str:
    """Its type and its value, for a message."""
    if value is None:
        return "None"
    text = short(value)
    return f"{kind_of(value)} {text}" if text else kind_of(value)


def kind_of(value: Any) -> str:
    """The name of its type, as users know it."""
    module, name = type(value).__module__, type(value).__qualname__
    if module.startswith("kernwright."):
        return f"kw.{name}"
    return name if module == "builtins" else f"{module}.{name}"


def short(value: Any) -> str:
    """repr(value) in one line of 60 characters; "" where it raises."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return ""
    return text if len(text) <= 60 else text[:60] + "..."


def _of_type(
    name: str, given: Mapping[str, Any], takes_first: bool = False
) -> tuple[str, Any] | None:
    """The argument with a value, or else an item, of this type: none where several."""
    found = [(k, v) for k, v in given.items() if type(v).__name__ == name]
    if not found:
        found = [
            (f"an item of {k}", item)
            for k, v in given.items()
            if isinstance(v, (list, tuple))
            for item in v
            if type(item).__name__ == name
        ][:1]
    return found[0] if len(found) == 1 or (found and takes_first) else None


def _numbers(given: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in given.items():
        items = value if isinstance(value, (list, tuple)) else (value,)
        found += [(name, item) for item in items if isinstance(item, (int, float))]
    return found


def _with_arguments(text: str, given: Mapping[str, Any]) -> str:
    """The text with the arguments except arrays: they are seldom to blame, and long."""
    values = [f"{k}={short(v)}" for k, v in given.items() if not hasattr(type(v), "__dlpack__")]
    return f"{text} (called with {', '.join(values)})" if values else text
