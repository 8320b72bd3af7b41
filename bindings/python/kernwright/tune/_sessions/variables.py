"""Sizes of __constant__ and __device__ variables, as far as a kernel's text tells."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from kernwright.errors import Error
from kernwright.tune._config import Value
from kernwright.tune._expression import Expression
from kernwright.tune._sessions.signature import base_name, joined

_MOST_SIZES = 4096  # of one variable, for values of the parameters that its extents name
_MOST_STEPS = 16  # of names that stand for names
_MOST_LETTERS = 1000  # of an extent
_WORD = re.compile(r"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?!\()[ \t]+(.*\S)", re.MULTILINE)
_NUMBER = re.compile(
    r"(?<![\w.])(?:static\s+)?(?:const|constexpr)\s+(?:static\s+)?(?:unsigned\s+)?"
    r"(?:int|long|short|unsigned|size_t)\s+(\w+)\s*=\s*([^;,]*);"
)
# Of a header, and of a name that the caller may define.
_GUARD = re.compile(
    r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\n[ \t]*#[ \t]*define[ \t]+\1\b", re.MULTILINE
)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b", re.MULTILINE)
_SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")
_SPACE = re.compile(r"\b__(?:constant|device|managed)__\b")
_QUALIFIER = re.compile(
    r"\b(?:__constant__|__device__|__managed__|static|extern|const|constexpr|volatile)\b"
    r"|\bextern\s*\"C\""
)
_SCALARS = {"bool": 1, "char": 1, "short": 2, "int": 4, "long": 8, "long long": 8, "float": 4,
            "double": 8, "size_t": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2}  # fmt: skip
_SCALARS.update({f"{sign}int{8 * n}_t": n for sign in ("", "u") for n in (1, 2, 4, 8)})
_VECTOR = re.compile(r"u?(char|short|int|long|longlong|float|double)([1-4])")


def _type_bytes(text: str) -> int | None:
    words = " ".join(text.split())
    plain = [word for word in words.split() if word not in ("unsigned", "signed")]
    if len(plain) < len(words.split()) or len(plain) > 1:
        plain = [word for word in plain if word != "int"] or ["int"]
    found = _SCALARS.get(" ".join(plain))
    vector = _VECTOR.fullmatch(words)
    if found is None and vector is not None:
        return int(vector[2]) * _SCALARS[vector[1].replace("longlong", "long long")]
    return found


def _meanings(whole: str) -> dict[str, str | None]:
    """What names of numbers and types stand for; None where there are two."""
    found: dict[str, str | None] = {}
    for name, body in [*_MACRO.findall(whole), *_NUMBER.findall(whole)]:
        found[name] = None if name in found else body
    for name, _ in _NUMBER.findall(whole):  # another one may be that of a function or of an enum
        if len(re.findall(rf"\b{name}\s*=(?!=)", whole)) > 1:
            found[name] = None
    return found


def _replaced(told: Mapping[str, str], match: re.Match[str]) -> str:
    return told.get(match[0], match[0])


def _written_out(text: str, meanings: Mapping[str, str | None], keep: Iterable[str]) -> str | None:
    """Without names but `keep`; None where one has no meaning, or two."""
    kept = set(keep)
    for _ in range(_MOST_STEPS):
        bodies = {w: meanings[w] for w in _WORD.findall(text) if w not in kept and w in meanings}
        if not bodies:
            return text
        if None in bodies.values() or len(text) > _MOST_LETTERS:
            return None
        form = "({})" if "[" in text else "{}"
        told = {name: form.format(body) for name, body in bodies.items()}
        text = _WORD.sub(functools.partial(_replaced, told), text)
    return None


def _extent(text: str, values: Mapping[str, Value]) -> int | None:
    # C's division is that of whole numbers; both agree where none is negative.
    try:
        value = Expression(re.sub(r"(?<!/)/(?!/)", "//", _SUFFIX.sub(r"\1", text)))(values)
    except Error:
        return None
    return int(value) if isinstance(value, (int, bool)) and value >= 0 else None


def most_bytes(
    text: str,
    variable: str,
    parameters: Mapping[str, Sequence[Value]],
    headers: Mapping[str, str],
    defines: Mapping[str, object],
) -> int | None:
    """The size of the variable in the configuration that makes it largest; None where the text does
    not tell: it declares it twice or under a condition, by macros with arguments, or with a type of
    its own."""
    others = {name: value for name, value in defines.items() if name not in parameters}
    whole = joined(text, headers, others)
    meanings = _meanings(whole)
    code = _DIRECTIVE.sub(";", whole)
    found = re.findall(
        rf"([^;{{}}]*)\b{re.escape(base_name(variable))}\s*((?:\[[^\]]*\]\s*)*)(=[^;]*)?;", code
    )
    found = [each for each in found if _SPACE.search(each[0])]
    if len(found) != 1 or "#undef" in whole.replace(" ", ""):
        return None
    if _CONDITION.search(_GUARD.sub("", whole)):
        return None
    type_name, brackets, _ = found[0]
    written = _written_out(_QUALIFIER.sub(" ", type_name), meanings, parameters)
    size = None if written is None else _type_bytes(written)
    extents = [_written_out(f"[{each}]", meanings, parameters)
               for each in re.findall(r"\[([^\]]*)\]", brackets)]  # fmt: skip
    if size is None or any(extent is None for extent in extents):
        return None
    bodies = [str(extent)[1:-1] for extent in extents]
    used = sorted({w for body in bodies for w in _WORD.findall(body) if w in parameters})
    if math.prod(len(parameters[name]) for name in used) > _MOST_SIZES:
        return None
    most = 0
    for chosen in itertools.product(*(parameters[name] for name in used)):
        counts = [_extent(body, dict(zip(used, chosen, strict=True))) for body in bodies]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return None
        most = max(most, size * math.prod(known))
    return most
