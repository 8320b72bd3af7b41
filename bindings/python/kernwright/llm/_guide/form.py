"""The form of a text as options give it, checked as far as it is possible without a vocabulary."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["FORMS", "MOST_CHARACTERS", "Form", "form_of"]

FORMS = ("schema", "regex", "grammar", "choices")
MOST_CHARACTERS = 1 << 18
# An automaton of remainders has about so many states. llguidance's own limits do not count them.
_MOST_REMAINDERS = 100_000
_MULTIPLE = re.compile(r'"multipleOf"\s*:\s*(-?[0-9.eE+-]+)')
_ESCAPED = re.compile(r"\\u00([0-7][0-9a-fA-F])")


class Form(NamedTuple):
    """One of FORMS, and its text: of a schema its JSON, of choices their JSON list."""

    kind: str
    text: str


def form_of(options: Mapping[str, Any]) -> Form | None:
    """The form that options ask for, None without one.

    Raises ArgumentError for values of other types and for two forms at once, InvalidArgument for
    what is no JSON, too long, or has multipleOf of too many remainders.
    """
    given = [name for name in FORMS if options.get(name) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise ArgumentError(f"a text has one form: {given[0]} and {given[1]} exclude each other")
    kind, value = given[0], options[given[0]]
    text = _READERS[kind](value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{kind} has a lone surrogate at {error.start}, which is no character"
        ) from None
    if len(text) > MOST_CHARACTERS:
        raise InvalidArgument(
            f"{kind} has {len(text):,} characters, and {MOST_CHARACTERS:,} are allowed"
        )
    _check_multiples(kind, text)
    return Form(kind, text)


def _schema(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"schema is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise InvalidArgument(f"schema is a JSON object, got {value!r:.60}")
    elif not isinstance(value, Mapping):
        raise ArgumentError(f"schema is a dict or a text of JSON, got {value!r:.60}")
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"schema cannot be written as JSON: {error}") from None


def _text(kind: str) -> Any:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ArgumentError(f"{kind} is a text, got {value!r:.60}")
        return value

    return read


def _choices(value: Any) -> str:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise ArgumentError(f"choices are a list of texts, got {value!r:.60}")
    if not value:
        raise InvalidArgument("choices are one text at least, got an empty list")
    for each in value:
        if not isinstance(each, str):
            raise ArgumentError(f"choices are texts, got {each!r:.60}")
    return json.dumps(list(value), ensure_ascii=False)


_READERS = {
    "schema": _schema,
    "regex": _text("regex"),
    "grammar": _text("grammar"),
    "choices": _choices,
}


def _check_multiples(kind: str, text: str) -> None:
    """Grammars may hold schemas, too."""
    if kind not in ("schema", "grammar"):
        return
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    common = 1
    for found in _MULTIPLE.findall(text):
        try:
            number = Decimal(found).normalize()
        except InvalidOperation:
            continue  # llguidance says what is wrong
        digits = int("".join(map(str, number.as_tuple().digits)))
        common = math.lcm(common, digits or 1)
        if common > _MOST_REMAINDERS:
            raise InvalidArgument(
                f"multipleOf in {kind}: numbers with more than {_MOST_REMAINDERS:,} remainders, "
                f"all together, are refused, and {found} makes them {common:,}"
            )
