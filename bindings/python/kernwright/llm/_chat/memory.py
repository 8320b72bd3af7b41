"""A bound for the memory of one rendering: operations count the bytes of their results before."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

__all__ = [
    "TooMuchWork",
    "bounded_filter",
    "charge",
    "charge_call",
    "charge_operator",
    "charge_result",
    "charge_text",
    "fromkeys",
    "joined",
    "made_bytes",
]

_MOST_BYTES = 1 << 29  # of all results of a rendering together
_ELEMENT = 16  # bytes of an element of a list
_PIECE = 64  # bytes of an element with a short text of its own
_OFTEN = 1 << 16  # bytes of a text that are counted at once
_MOST_REPEATED = 10_000_000  # a count or a width
_UNKNOWN = 1000  # elements of an iterator
_MOST_BITS = 40_000  # of a power
_WIDTH = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|[0-9]+)?(?:\.(\*|[0-9]+))?")
_FIELD_WIDTH = re.compile(r"[0-9]+|:[^{}]*\{")
_NONE: dict[str, str] = {}
_LISTS: Any = (list, tuple, set, type(_NONE.keys()), type(_NONE.values()), type(_NONE.items()))
_CONTAINERS: Any = (*_LISTS, dict)
_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"

made_bytes: ContextVar[int] = ContextVar("made_bytes", default=0)
"""Bytes of the results of the current rendering."""


class TooMuchWork(Exception):
    """A template takes too long or too much memory."""


def charge(size: int) -> None:
    """Counts bytes of a result. Raises TooMuchWork."""
    total = made_bytes.get() + size
    if total > _MOST_BYTES:
        raise TooMuchWork(f"its texts and lists take more than {_MOST_BYTES:,} bytes together")
    made_bytes.set(total)


def _size(value: Any) -> int:
    """The bytes of a value without those of its elements."""
    if isinstance(value, (str, bytes, int)):
        return sys.getsizeof(value)
    return _ELEMENT * len(value) if isinstance(value, _CONTAINERS) else 0


def charge_result(value: Any) -> Any:
    """The value, which was made now."""
    charge(_size(value))
    return value


def _text_size(*values: Any) -> int:
    """About the bytes of the texts of values. Raises TooMuchWork where they are too many: elements
    may be there many times."""
    size, left, waiting = 0, _MOST_BYTES - made_bytes.get(), list(values)
    while waiting:
        value = waiting.pop()
        is_list = isinstance(value, _LISTS)
        many = len(value) if is_list or isinstance(value, dict) else 0
        size += _PIECE * (1 + many) if many else _size(value) or _PIECE
        if size > left:
            charge(size)
        if is_list:
            waiting.extend(value)
        elif many:
            waiting.extend(value.keys())
            waiting.extend(value.values())
    return size


def charge_text(value: Any) -> Any:
    """The value, whose text is written next, or that goes into another one."""
    if type(value) is not str and isinstance(value, _CONTAINERS):
        charge(_text_size(value))
    return value


def joined(parts: Iterable[Any]) -> str:
    """The text of all parts."""
    texts, size = [], 0
    for part in parts:
        text = part if isinstance(part, str) else str(charge_text(part))
        size += sys.getsizeof(text)
        if size > _OFTEN:
            charge(size)
            size = 0
        texts.append(text)
    charge(size)
    return "".join(texts)


def fromkeys(keys: Any, value: Any = None) -> dict[Any, Any]:
    """dict.fromkeys(), counted."""
    found = list(keys)
    charge(len(found) * (_PIECE + _text_size(value)))
    return dict.fromkeys(found, value)


def charge_operator(operator: str, left: Any, right: Any) -> None:
    """Counts the result of *, **, + or %. Raises TooMuchWork."""
    if operator == "+":
        charge(_size(left) + _size(right))
    elif operator == "**":
        whole = isinstance(left, int) and isinstance(right, int)
        if whole and right * abs(left).bit_length() > _MOST_BITS:
            raise TooMuchWork(f"it computes {left!r:.40} ** {right!r:.40}")
    elif operator == "%" and isinstance(left, str):
        charge(_formatted_size(left, right))
    elif operator == "*":
        for sequence, count in ((left, right), (right, left)):
            if isinstance(sequence, (str, bytes, list, tuple)) and isinstance(count, int):
                if len(sequence) * count > _MOST_REPEATED:
                    raise TooMuchWork(f"it repeats {len(sequence)} elements {count} times")
                charge(_size(sequence) * max(count, 0))
                return
        charge(_size(left) + _size(right))


def _formatted_size(text: str, values: Any) -> int:
    """Of a text with % and its values."""
    widths = [each for pair in _WIDTH.findall(text) for each in pair if each]
    if "*" in widths:
        raise TooMuchWork("it formats with a width among the values")
    return len(text) + len(widths) + text.count("%") * (_widest(widths) + _text_size(values))


def _widest(widths: Iterable[str]) -> int:
    found = [int(each) if len(each) < 9 else sys.maxsize for each in widths]
    width = max(found, default=0)
    if width > _MOST_REPEATED:
        raise TooMuchWork(f"it formats with a width of {width}")
    return width


def _replaced(text: Any, old: Any, new: Any, *_: Any, **__: Any) -> int:
    return _size(text) + (text.count(old) if old else len(text) + 1) * _size(new)


def _fields(text: str, *values: Any, **named: Any) -> int:
    """Of str.format()."""
    found = _FIELD_WIDTH.findall(text)
    if any(each.startswith(":") for each in found):
        raise TooMuchWork("it formats with a width among the values")
    return len(text) + text.count("{") * (_widest(found) + _text_size(values, named))


def _split(text: Any, separator: Any = None, *_: Any, **named: Any) -> int:
    separator = named.get("sep", separator)
    pieces = text.count(separator) if separator else len(text) // 2
    return int(_size(text) + _PIECE * (pieces + 1))


def _translated(text: Any, table: Any = None, *_: Any) -> int:
    values = table.values() if isinstance(table, Mapping) else [table]
    return len(text) * max(map(_size, values), default=0)


_METHODS: dict[str, Callable[..., int]] = {
    "replace": _replaced,
    "format": _fields,
    "format_map": _fields,
    "split": _split,
    "rsplit": _split,
    "splitlines": lambda text, *_, **__: (
        _size(text) + _PIECE * sum(map(text.count, _LINE_ENDS)) if isinstance(text, str) else 0
    ),
    "join": lambda text, items: (_size(text) + 1) * len(items) + _text_size(items),
    "expandtabs": lambda text, tabsize=8: len(text) * max(tabsize, 1),
    "translate": _translated,
}


def _charge_counts(arguments: Iterable[Any]) -> None:
    for each in arguments:
        if isinstance(each, int) and abs(each) > _MOST_REPEATED:
            raise TooMuchWork(f"it calls a function with the number {each}")


def charge_call(called: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call, whose result is counted. Raises TooMuchWork."""
    _charge_counts((*arguments, *named.values()))
    if getattr(called, "catch_varargs", False) or getattr(called, "catch_kwargs", False):
        charge(_text_size(arguments, named))  # a macro has them as a tuple and a dictionary
    owner = getattr(getattr(called, "__wrapped__", called), "__self__", None)
    rule = _METHODS.get(getattr(called, "__name__", ""))
    if rule is None or not isinstance(owner, (str, bytes)):
        return arguments
    if rule is _METHODS["join"] and arguments:
        arguments = (list(arguments[0]), *arguments[1:])
    with contextlib.suppress(TypeError):  # a wrong call raises the same itself
        charge(rule(owner, *arguments, **named))
    return arguments


_FILTERS: dict[str, Callable[..., int]] = {
    "replace": lambda text, old, new, *_: _replaced(str(text), str(old), str(new)),
    "format": lambda text, *values, **named: _formatted_size(str(text), [values, named]),
    "indent": lambda text, width=4, *_, **__: (
        str(text).count("\n") * (_size(width) if isinstance(width, str) else width)
    ),
    "list": lambda value: _PIECE * len(value) if isinstance(value, str) else 0,
    **dict.fromkeys(
        ("string", "pprint", "urlencode", "sum", "escape", "e", "forceescape", "map", "upper"),
        lambda value, *_, **__: _text_size(value),
    ),
}


def bounded_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose result is counted, as far as it can be large, before it is made."""
    rule, skipped = _FILTERS.get(name), int(hasattr(function, "jinja_pass_arg"))

    @functools.wraps(function)
    def bounded(*arguments: Any, **named: Any) -> Any:
        given = arguments[skipped:]
        others = (*given[1:], *named.values())
        _charge_counts(others)
        lists = [each for each in others if isinstance(each, _CONTAINERS)]
        if lists:  # an element may come of each of the value's
            counts = [each for each in others if isinstance(each, int)]
            counts.append(len(given[0]) if hasattr(given[0], "__len__") else _UNKNOWN)
            charge(_text_size(lists) * max(counts))
        if name == "join" and given:
            values = list(given[0])
            separator = named.get("d", given[1] if len(given) > 1 else "")
            charge(len(values) * (_size(separator) + 1) + _text_size(values))
            arguments = (*arguments[:skipped], values, *given[1:])
        elif rule is not None:
            with contextlib.suppress(TypeError, AttributeError):  # as above
                charge(rule(*given, **named))
        return charge_result(function(*arguments, **named))

    return bounded
