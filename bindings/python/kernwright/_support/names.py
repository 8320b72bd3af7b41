"""AttributeErrors that name what exists: another library's counterpart, or the nearest name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_PARTS = ("linalg", "nn", "random", "fft", "optim", "train", "llm", "memory", "tune")
"""Modules that are searched for a name which is asked of kernwright itself."""


def missing(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that the module lacks."""
    hint = ""
    if not name.startswith("__"):
        from kernwright._support.other_names import MODULES

        others = MODULES.get(module, {})
        hint = _use(others.get(name)) or _elsewhere(module, name) or _nearest(name, known, others)
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

        hint = _of_array(name) or _of_array(name.rstrip("_"))  # torch works in place in add_()
        hint = hint or _nearest(name, dir(type(x)), METHODS)
    raise _error(f"{type(x).__name__!r} object has no attribute {name!r}", name, hint)


def module_attribute(module: Any, name: str) -> Any:
    """The `__getattr__` of kw.nn.Module: asked only for what a module has not."""
    owners = (each for each in type(module).__mro__ if name in vars(each))  # no metaclass
    known: Any = next((vars(each)[name] for each in owners), None)
    if hasattr(known, "__get__"):  # a property has raised: its own words tell why
        return known.__get__(module, type(module))
    from kernwright._support.other_names import OF_MODULES

    text = f"{type(module).__name__!r} object has no attribute {name!r}"
    if name in OF_MODULES:
        raise _error(text, name, _use(OF_MODULES[name]))
    raise AttributeError(text, name=name, obj=module)  # Python suggests the nearest name


def _error(text: str, name: str, hint: str) -> AttributeError:
    # NOTE: with a name and without an object Python adds no suggestion of its own.
    return AttributeError(f"{text}: {hint}" if hint else text, name=name)


def _use(other: str | None) -> str:
    return f"use {other}" if other else ""


def _elsewhere(module: str, name: str) -> str:
    """ "use kw.linalg.svd" """
    if name.startswith("_"):
        return ""
    if module != "kernwright" and _is_function(name):
        return f"use kw.{name}"
    return next((f"use {path}" for path in _in_parts(name, _PARTS) if path[3:] not in module), "")


def _in_parts(name: str, parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        if name in getattr(importlib.import_module(f"kernwright.{part}"), "__all__", ()):
            yield f"kw.{part}.{name}"


def _is_function(name: str) -> bool:
    topics: dict[str, list[str]] = vars(importlib.import_module("kernwright"))["_TOPICS"]
    return any(name in names for names in topics.values())


def _of_array(name: str) -> str:
    """ "use kw.sort(x)" for a function that is no method, or another library's counterpart."""
    from kernwright._support.other_names import METHODS, NAMESPACE

    if not name or name in METHODS:
        return _use(METHODS.get(name))
    if _is_function(name):
        return f"use {_called(f'kw.{name}')}"
    if "x" in NAMESPACE.get(name, "").replace("(", " ").replace(",", " ").split():
        return _use(NAMESPACE[name])
    return next((f"use {_called(path)}" for path in _in_parts(name, ("nn", "linalg", "fft"))), "")


def _called(path: str) -> str:
    """ "kw.add(x, ...)": whether there are more arguments is told by the signature."""
    import inspect

    function: Any = importlib.import_module("kernwright")
    for part in path.split(".")[1:]:
        function = getattr(function, part)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return f"{path}(x, ...)"
    needed = [each for each in parameters if each.default is each.empty and each.kind < 2]
    return f"{path}(x, ...)" if len(needed) > 1 else f"{path}(x)"


def _nearest(name: str, known: Iterable[str], others: Mapping[str, str]) -> str:
    """ "did you mean 'sort'?", with what to use in place of a name of another library."""
    if len(name) < 3:  # anything is near
        return ""
    import difflib  # asked for when a name is missing alone

    there = [each for each in (*others, *known) if not each.startswith("_")]
    # Who mistypes a name rarely mistypes its first letter; others are names of another meaning.
    lower = {each.lower(): each for each in reversed(there) if each[0].lower() == name[0].lower()}
    # A misspelled array is not Array, but adam_w is AdamW.
    ours = [*known][::-1]
    ours.sort(key=lambda each: each[0] == name[0] and "_" not in name)
    lower |= {each.lower(): each for each in ours if each.lower() in lower}
    if len(name) == 3:  # one letter is a third of the name
        close = [each for each in lower if _differs_by_one(name.lower(), each)]
    else:
        close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.75)
    if not close:
        return ""
    found = lower[close[0]]
    hint = f"did you mean {found!r}?"
    return f"{hint} Use {others[found]}" if found in others else hint


def _differs_by_one(name: str, other: str) -> bool:
    """By a letter that is another, too much or missing, or by two neighbours in the wrong order."""
    if len(name) == len(other):
        unequal = [i for i, pair in enumerate(zip(name, other, strict=True)) if len(set(pair)) > 1]
        if len(unequal) == 2 and unequal[0] + 1 == unequal[1]:
            return sorted(name) == sorted(other)
        return len(unequal) == 1
    short, long = sorted((name, other), key=len)
    return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))
