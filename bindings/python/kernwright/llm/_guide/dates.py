"""Formats of dates and times in JSON schemas, made as strict as validators are.

llguidance's own formats allow a 29th of February in each year, and leap seconds at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["with_strict_dates"]

_YEAR = r"([1-9]\d{3}|\d[1-9]\d{2}|\d\d[1-9]\d|\d{3}[1-9])"
_LEAP_YEAR = r"(\d\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    r"((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)"
    r"|02-(0[1-9]|1\d|2[0-8]))"
)
_DATE = f"({_YEAR}-{_DAY}|{_LEAP_YEAR}-02-29)"
_TIME = r"\d\d:\d\d:[0-5]"  # the format does the rest
_PATTERNS = {"date": f"^{_DATE}$", "time": f"^{_TIME}", "date-time": f"^{_DATE}[Tt]{_TIME}"}
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("const", "enum", "default", "examples")


def with_strict_dates(schema: Any) -> Any:
    """The schema with a pattern beside each format of a date or a time.

    >>> from kernwright.llm._guide.dates import with_strict_dates
    >>> with_strict_dates({"items": {"format": "time"}})
    {'items': {'format': 'time', 'pattern': '^\\\\d\\\\d:\\\\d\\\\d:[0-5]'}}
    """
    if isinstance(schema, list):
        return [with_strict_dates(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _VALUES:
            made[name] = value
        elif name in _MAPS and isinstance(value, Mapping):
            made[name] = {key: with_strict_dates(each) for key, each in value.items()}
        else:
            made[name] = with_strict_dates(value)
    kind = schema.get("format")
    pattern = _PATTERNS.get(kind) if isinstance(kind, str) else None
    if pattern is None:
        return made
    if "pattern" not in made:
        return {**made, "pattern": pattern}
    others = made.get("allOf")
    return {**made, "allOf": [*(others if isinstance(others, list) else ()), {"pattern": pattern}]}
