"""Functions written in Python: a wrong call of one raises an error of this package."""

from __future__ import annotations

import sys
from collections.abc import Iterable, MutableMapping
from types import FunctionType
from typing import Any

from kernwright._core import _TypedFunction
from kernwright._support.names import lookup

_SPECIAL = ("__init__", "__new__", "__call__", "__getitem__")


def publish(space: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Wraps the functions of that name and the methods of such classes, wherever they are kept. A
    module without a `__getattr__` gets one whose errors name what exists."""
    names = tuple(names)
    space.setdefault("__getattr__", lookup(space["__name__"], names))
    for name in names:
        value = space.get(name)
        if value is not None:
            space[name] = typed(value)


def typed(value: Any) -> Any:
    """A function wrapped, a class of this package with its methods wrapped, else `value` itself."""
    if isinstance(value, FunctionType):
        home, name = sys.modules[value.__module__].__dict__, value.__name__
        made = _TypedFunction(value)
        if home.get(name) is value:  # pickle wants to find the same object there
            home[name] = made
        return made
    if isinstance(value, type):
        for cls in value.__mro__:  # inherited methods are public methods of `value`, too
            if cls.__module__.startswith("kernwright."):
                _type_methods(cls)
    return value


def _type_methods(cls: type) -> None:
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, _TypedFunction(member))
        elif isinstance(member, staticmethod) and isinstance(member.__func__, FunctionType):
            setattr(cls, name, staticmethod(_TypedFunction(member.__func__)))
