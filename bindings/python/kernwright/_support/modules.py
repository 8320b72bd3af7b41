"""Which values are modules: kw.nn.Module registers itself, and packages below kw.nn ask here."""

from __future__ import annotations

from typing import Any, TypeVar

_T = TypeVar("_T")
_classes: list[type] = []


def register_module(base: type[_T]) -> type[_T]:
    """A decorator: instances of `base` are modules."""
    _classes.append(base)
    return base


def is_module(value: Any) -> bool:
    """Whether the value is a kw.nn.Module."""
    return isinstance(value, tuple(_classes))
