"""Parameter lists: CuPy's ("T x, raw float32 y") and C's ("float a, float *x")."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from kernwright._fuse import types
from kernwright.errors import ArgumentError, InvalidArgument

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_DTYPES = {*types._TYPES, "float", "int", "bool_"}

# C's names of types -> dtypes.
C_TYPES = {
    "float": "float32", "double": "float64", "bool": "bool", "char": "int8", "signed char": "int8",
    "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16", "int": "int32",
    "unsigned": "uint32", "unsigned int": "uint32", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "size_t": "uint64",
}  # fmt: skip


class Parameter(NamedTuple):
    """`dtype` is None for a type that the arguments decide, whose name `type` is."""

    name: str
    type: str
    dtype: Any
    raw: bool


def parse_parameters(text: str, what: str) -> list[Parameter]:
    """CuPy's list: [raw] type name, ..."""
    found: list[Parameter] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        words = part.split()
        raw = words[0] == "raw"
        words = [w for w in words[raw:] if w != "const"]
        if len(words) != 2 or not all(_NAME.match(w) for w in words):
            raise InvalidArgument(
                f"{what}: {part!r} is no parameter: write 'T x', 'float32 x' or 'raw T x'"
            )
        kind, name = words
        if name in ("i", "n", "at", "_ind"):
            raise InvalidArgument(f"{what}: the name {name} is the kernel's own")
        fixed = {"float": "float64", "int": "int64", "bool_": "bool"}.get(kind, kind)
        dtype = np.dtype(types.as_dtype(fixed)) if kind in _DTYPES else None
        found.append(Parameter(name, kind, dtype, raw))
    names = [p.name for p in found]
    if len(set(names)) != len(names):
        raise InvalidArgument(f"{what}: a name stands twice in {text!r}")
    return found


class CParameter(NamedTuple):
    """One of C's parameters; `text` declares it."""

    name: str
    text: str
    dtype: Any
    is_pointer: bool
    is_const: bool


def parse_c_parameters(text: str) -> list[CParameter]:
    """C's list: "float a, const float *x"."""
    found = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        match = re.match(r"(.*?)(\**)\s*(?:__restrict__\s+)?(\w+)\Z", part)
        words = match.group(1).split() if match else []
        kind = " ".join(w for w in words if w not in ("const", "volatile"))
        stars = part.count("*")
        kind = kind.replace("*", "").strip()
        if match is None or stars > 1 or kind not in C_TYPES:
            known = ", ".join(C_TYPES)
            raise InvalidArgument(
                f"{part!r} is no parameter: write 'float a' or 'float *x' with one of {known}"
            )
        found.append(CParameter(match.group(3), part, np.dtype(C_TYPES[kind]), bool(stars),
                                "const" in words))  # fmt: skip
    return found


def decide_types(
    name: str, parameters: list[Parameter], values: list[Any], first: str = "T"
) -> dict[str, Any]:
    """The dtype of each type name: arrays decide first, numbers what is left."""
    decided: dict[str, Any] = {}
    for p, value in zip(parameters, values, strict=True):
        dtype = getattr(value, "dtype", None)
        if value is None or dtype is None:
            continue
        _decide(name, decided, p, dtype)
    for p, value in zip(parameters, values, strict=True):
        weak = types.weak_kind(value)
        if weak is not None and p.dtype is None and p.type not in decided:
            decided[p.type] = types.WEAK[weak]
    return decided


def _decide(name: str, decided: dict[str, Any], p: Parameter, dtype: Any) -> None:
    types.element_type(dtype)
    wanted = p.dtype if p.dtype is not None else decided.setdefault(p.type, dtype)
    if wanted != dtype:
        raise ArgumentError(
            f"{name}: {p.name} is an array of {dtype}, its type {p.type} is {wanted}: convert with "
            f".astype({str(wanted)!r})"
        )


def type_of(name: str, p: Parameter, decided: dict[str, Any]) -> Any:
    """The dtype of a parameter."""
    if p.dtype is not None:
        return p.dtype
    if p.type not in decided:
        raise InvalidArgument(
            f"{name}: no argument decides the type {p.type} of {p.name}: name a dtype, or pass it"
        )
    return decided[p.type]


def type_names(decided: dict[str, Any], parameters: list[Parameter] = ()) -> str:  # type: ignore
    """Device text that names the types: what each computes in."""
    lines = [f"using {t} = {types.compute_type(d)};\n" for t, d in decided.items()]
    fixed = {p.type: p.dtype for p in parameters if p.dtype is not None}
    lines += [f"using {t} = {types.compute_type(d)};\n" for t, d in fixed.items()
              if t not in ("float", "int", "bool")]  # fmt: skip
    return "".join(lines)
