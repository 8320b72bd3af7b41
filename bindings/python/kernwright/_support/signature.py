"""Parameters of functions, of Python and of the extension module, and calls that do not fit."""

from __future__ import annotations

import difflib
import inspect
import re
from typing import Any, NamedTuple

KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD
VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
ANY = inspect.Parameter.POSITIONAL_OR_KEYWORD
RECEIVERS = ("self", "cls", "_cls")
"""What methods call their first parameter; the __new__ of a NamedTuple has the last name."""

# What stands for NumPy's arguments of elementwise functions.
_REPLACED = {
    "where": " (kw.where(condition, result, other) chooses)",
    "dtype": " (x.astype() converts)",
    "casting": " (out= has the result's kind of type; x.astype() converts to any)",
    "order": " (new arrays are row-major)",
    "subok": " (there are no subclasses of arrays)",
}


# What stands for further arguments of NumPy's, beside a parameter that tells the function's kind.
_REPLACED_BESIDE = {
    ("mean", "correction"): " (the mean is made in the same pass)",
    ("axes", "x2"): " (kw.moveaxis() puts the axes of vectors and matrices last)",
}


class Parameter(NamedTuple):
    name: str
    kind: Any
    required: bool
    default: str = ""
    annotation: str = ""


def parameters_of(function: Any) -> list[Parameter]:
    return [
        Parameter(p.name, p.kind, p.default is p.empty, repr(p.default))
        for p in inspect.signature(function).parameters.values()
    ]


def bound(
    parameters: list[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by name; what is left over by position is one tuple."""
    positional = [p.name for p in parameters if p.kind in (ANY, POSITIONAL_ONLY)]
    given = dict(zip(positional, args, strict=False))
    rest = [p.name for p in parameters if p.kind == VAR_POSITIONAL]
    if rest and len(args) > len(positional):
        given[rest[0]] = args[len(positional) :]
    return given | kwargs


def _replacement(name: str, named: list[str], positional: list[Parameter]) -> str:
    """A hint at what to use in place of a parameter that does not exist."""
    everything = {*named, *(p.name for p in positional)}
    hints = [hint for (what, beside), hint in _REPLACED_BESIDE.items()
             if what == name and beside in everything]  # fmt: skip
    if not hints and "out" in named and "axis" not in named:
        hints = [_REPLACED[name]] if name in _REPLACED else []
    return hints[0] if hints else nearest(name, named)


def unbound(
    parameters: list[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """What keeps the arguments from being one for each parameter."""
    positional = [p for p in parameters if p.kind in (ANY, POSITIONAL_ONLY)]
    named = [p.name for p in parameters if p.kind in (ANY, KEYWORD_ONLY)]
    if not any(p.kind == VAR_KEYWORD for p in parameters):
        for name in kwargs:
            if name not in named:
                return f"there is no parameter {name}{_replacement(name, named, positional)}"
    filled = {p.name for p in positional[: len(args)]}
    for name in kwargs:
        if name in filled:
            return f"{name} is given twice, by position and by name"
    if len(args) > len(positional) and not any(p.kind == VAR_POSITIONAL for p in parameters):
        return f"got {len(args)} arguments by position, {len(positional)} at most"
    missing = [
        p.name
        for p in parameters
        if p.required
        and p.kind not in (VAR_POSITIONAL, VAR_KEYWORD)
        and p.name not in filled | kwargs.keys()
    ]
    return f"{missing[0]} is missing" if missing else None


def parse(signature: str) -> list[Parameter]:
    """'(self: A, n: int = 0, *, b: object = None) -> None' as parameters."""
    found: list[Parameter] = []
    kind: inspect._ParameterKind = ANY
    for part in _split(signature[1 : signature.rindex(") ->")]):
        if part == "*":
            kind = KEYWORD_ONLY
        elif part == "/":
            found = [p._replace(kind=POSITIONAL_ONLY) for p in found]
        elif part.startswith("*"):
            star = VAR_KEYWORD if part.startswith("**") else VAR_POSITIONAL
            found.append(Parameter(part.strip("*").partition(":")[0], star, False))
        else:
            head, _, default = part.partition(" = ")
            name, _, annotation = head.partition(": ")
            name = re.sub(r"arg(\d+)", lambda m: f"argument {int(m[1]) + 1}", name)
            annotation = re.sub(r"typing\.Supports(Int|Float) \| typing\.SupportsIndex",
                                lambda m: m[1].lower(), annotation)  # fmt: skip
            found.append(Parameter(name, kind, not default, default, annotation))
    return found


def _split(text: str) -> list[str]:
    """Parts between the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def text_of(parameters: list[Parameter]) -> str:
    """'n=0, *, device=None'"""
    parts, starred = [], False
    for p in parameters:
        star = {VAR_POSITIONAL: "*", VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind == KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or p.kind in (VAR_POSITIONAL, KEYWORD_ONLY)
        parts.append(star + p.name + ("" if p.required or star else f"={p.default}"))
    return ", ".join(parts)


def nearest(name: str, names: list[str]) -> str:
    if name in ("dim", "dims") and name not in names:  # as torch has it
        name = next((each for each in ("axis", "axes") if each in names), name)
    close = [known for known in names if known.startswith(name) or name.startswith(known)]
    close = close or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""
