"""Whether a kernel's parameters are the same for every configuration, as far as its text tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(.*)$", re.MULTILINE)
# A parameter's value for those who compile the text without one.
_DEFAULT = re.compile(
    r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)\s*\n[ \t]*#[ \t]*define[ \t]+\1\b[^\n]*\n"
    r"[ \t]*#[ \t]*endif\b",
    re.MULTILINE,
)
_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)$", re.MULTILINE)
# Names beside what they are made of.
_NAMED = (
    re.compile(r"\busing\s+(\w+)\s*=([^;]*);"),
    re.compile(r"\b(?:const|constexpr)\b[^;=(){]*?\b(\w+)\s*=([^;]*);"),
    re.compile(
        r"\b(?:struct|class|union)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)([^;{]*\{.*?\}\s*;)", re.DOTALL
    ),
)
_TYPEDEF = re.compile(r"\btypedef\b([^;]*?)(\w+)\s*;")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _declared(text: str, name: str) -> tuple[str, int] | None:
    """The kernel's list of parameters, behind that of its template, and where it ends; None where
    nothing tells."""
    found = list(re.finditer(rf"\b__global__\b[^;{{}}]*?\b{re.escape(name)}\s*\(", text))
    if len(found) != 1:
        return None
    begin, depth = found[0].end(), 1
    for end in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            break
    else:
        return None
    before = re.split(r"[;{}]", text[: found[0].start()])[-1]
    return (before if "template" in before else "") + " " + text[begin:end], end


def _depending(text: str, parameters: Iterable[str]) -> set[str]:
    """Words of the text whose meaning depends on the parameters."""
    made = [(m[1], _words(m[2])) for m in _MACRO.finditer(text)]
    made += [(m[1], _words(m[2])) for pattern in _NAMED for m in pattern.finditer(text)]
    made += [(m[2], _words(m[1])) for m in _TYPEDEF.finditer(text)]
    depending, before = set(parameters), -1
    while before != len(depending):
        before = len(depending)
        depending |= {name for name, words in made if words & depending}
    return depending


def is_fixed(
    text: str,
    name: str,
    parameters: Iterable[str],
    headers: Mapping[str, str],
    defines: Mapping[str, object],
) -> bool:
    """Whether no parameter of the space can change the kernel's signature. False where the text
    does not tell: included files that are not among `headers`, conditions on a parameter."""
    if any(header not in headers for header in _QUOTED.findall(text)):
        return False
    known = set(parameters)
    whole = "\n".join(
        [*(f"#define {key} {value}" for key, value in defines.items() if key not in known)]
        + [*headers.values(), text]
    )
    whole = _COMMENT.sub(" ", whole.replace("\\\n", " "))
    whole = _DEFAULT.sub("", whole)
    base = name.split("<", 1)[0].rsplit("::", 1)[-1].strip()
    declared = _declared(whole, base)
    if declared is None:
        return False
    parameter_list, end = declared
    conditions = " ".join(_CONDITION.findall(whole[:end]))  # what follows cannot change it
    used = _words(parameter_list) | _words(conditions) | _words(name)
    return not used & _depending(whole, known)
