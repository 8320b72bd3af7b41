"""AttributeErrors that name what exists: another library's counterpart, or the nearest name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

_PARTS = ("linalg", "nn", "random", "fft", "optim", "train", "llm", "memory", "tune")
"""Modules that are searched for a name which is asked of kernwright itself."""


def missing(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that the module lacks."""
    from kernwright._support.other_names import MODULES

    hint = ""
    if not name.startswith("__"):
        there = list(known)
        other = MODULES.get(module, {}).get(name)
        hint = f"use {other}" if other else _elsewhere(module, name) or _nearest(name, there)
    return _error(f"module {module!r} has no attribute {name!r}", name, hint)


def lookup(module: str, known: Iterable[str]) -> Callable[[str], Any]:
    """A `__getattr__` for a module that has all its names already."""

    def __getattr__(name: str) -> Any:
        raise missing(module, name, known)

    return __getattr__


def array_attribute(x: Any, name: str) -> Any:
    """The `__getattr__` of kw.Array: asked only for what an array has not."""
    known = getattr(type(x), name, None)
    if isinstance(known, property) and known.fget is not None:
        return known.fget(x)  # it has raised already: its own words tell why
    hint = ""
    if not name.startswith("__"):  # protocols ask for such names, and expect an error at once
        from kernwright._support.other_names import METHODS

        other = METHODS.get(name)
        hint = f"use {other}" if other else _of_namespace(name) or _nearest(name, dir(type(x)))
    raise _error(f"{type(x).__name__!r} object has no attribute {name!r}", name, hint)


def _error(text: str, name: str, hint: str) -> AttributeError:
    # NOTE: with a name and without an object Python adds no suggestion of its own.
    return AttributeError(f"{text}: {hint}" if hint else text, name=name)


def _elsewhere(module: str, name: str) -> str:
    """ "use kw.linalg.svd" """
    if module != "kernwright" or name.startswith("_"):
        return ""
    for part in _PARTS:
        if name in getattr(importlib.import_module(f"kernwright.{part}"), "__all__", ()):
            return f"use kw.{part}.{name}"
    return ""


def _of_namespace(name: str) -> str:
    """ "use kw.sort(x)" for a function that is no method."""
    topics: dict[str, list[str]] = vars(importlib.import_module("kernwright"))["_TOPICS"]
    return f"use kw.{name}(x)" if any(name in names for names in topics.values()) else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    if len(name) < 4:  # anything is near
        return ""
    import difflib  # asked for when a name is missing alone

    there = [each for each in known if not each.startswith("_")]
    # Who mistypes a name rarely mistypes its first letter; others are names of another meaning.
    lower = {each.lower(): each for each in reversed(there) if each[0].lower() == name[0].lower()}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.75)
    return f"did you mean {lower[close[0]]!r}?" if close else ""
