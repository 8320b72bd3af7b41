"""Budgets of sessions: "120s", or a dict of limits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from kernwright.errors import ArgumentError, InvalidArgument

_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|sec|s|min|m|h)\s*")
LIMITS = ("seconds", "evaluations", "gpu_seconds", "target")


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None:
            raise InvalidArgument(
                f'{name} of {value!r}: write a number and a unit, "90s", "2min", "1h", "500ms"'
            )
        return float(match[1]) * _UNITS[match[2]]
    return _number(value, name, "a number or a str")


def _number(value: Any, name: str, wanted: str) -> float:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise ArgumentError(f"{name} is {wanted}, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArgument(f"{name} is a number that a double can hold") from None
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is {wanted}, got {type(value).__name__}") from None


def read_budget(budget: Any) -> dict[str, Any]:
    """The limits, by name. None: no limit, the whole space is tried."""
    if budget is None:
        return {}
    if isinstance(budget, str):
        budget = {"seconds": budget}
    if not isinstance(budget, Mapping):
        raise ArgumentError(
            'budget= is a time ("120s") or a dict of seconds, evaluations, gpu_seconds and target, '
            f"got {type(budget).__name__} {budget!r}: write dict(evaluations={budget!r}) or "
            f"dict(seconds={budget!r})"
        )
    unknown = [name for name in budget if name not in LIMITS]
    if unknown:
        raise InvalidArgument(f"budget= has no {unknown[0]!r}; it has: {', '.join(LIMITS)}")
    limits: dict[str, Any] = {}
    for name, value in budget.items():
        if value is None:
            continue
        if name == "evaluations":
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise ArgumentError(f"evaluations is an int, got {type(value).__name__}")
            limits[name] = min(value.__index__(), 2**62)  # no space has more
        else:
            is_target = name == "target"
            limits[name] = _number(value, name, "a number") if is_target else _seconds(value, name)
        if name != "target" and not (limits[name] > 0 and math.isfinite(limits[name])):
            raise InvalidArgument(f"a budget of {value!r} {name}: use a number above 0")
    return limits
