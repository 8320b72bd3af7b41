"""Whether a kernel's parameters are the same for every configuration, as far as its text tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

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
_EXTENT = re.compile(r"\[[^\]]*\]")
_ARGUMENTS = re.compile(r"<[^<>]*>")  # of a template
_TEMPLATE_NAME = re.compile(r"(\w+)\s*(?:=[^,>]*)?(?=[,>])")
_MACRO_NAME = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")  # by custom
_DEPTH = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def base_name(name: str) -> str:
    """Of "space::scale<float, 4>" the name behind __global__ void."""
    return name.split("<", 1)[0].rsplit("::", 1)[-1].strip()


def _declared(text: str, name: str) -> tuple[str, str, int] | None:
    """The kernel's template, if it is one, its list of parameters, and where that ends; None where
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
    return before if "template" in before else "", text[begin:end], end


def _depending(text: str, parameters: Iterable[str]) -> set[str]:
    """Words of the text with a meaning from the parameters."""
    made = [(m[1], _words(m[2])) for m in _MACRO.finditer(text)]
    made += [(m[1], _words(m[2])) for pattern in _NAMED for m in pattern.finditer(text)]
    made += [(m[2], _words(m[1])) for m in _TYPEDEF.finditer(text)]
    depending, before = set(parameters), -1
    while before != len(depending):
        before = len(depending)
        depending |= {name for name, words in made if words & depending}
    return depending


def joined(text: str, headers: Mapping[str, str], defines: Mapping[str, object]) -> str:
    """All text in sight, without comments."""
    lines = [f"#define {key} {value}" for key, value in defines.items()]
    whole = "\n".join([*lines, *headers.values(), text])
    return _COMMENT.sub(" ", whole.replace("\\\n", " "))


def is_fixed(
    text: str,
    names: str | Sequence[str],
    parameters: Iterable[str],
    headers: Mapping[str, str],
    defines: Mapping[str, object],
) -> bool:
    """Whether no parameter of the space can change the kernel's signature. False where the text
    does not tell: included files that are not among `headers`, conditions on a parameter. `names`:
    how configurations name the kernel, with other arguments of its template."""
    if any(header not in headers for header in _QUOTED.findall(text)):
        return False
    known = set(parameters)
    others = {name: value for name, value in defines.items() if name not in known}
    whole = _DEFAULT.sub("", joined(text, headers, others))
    names = [names] if isinstance(names, str) else names
    bases = {base_name(name) for name in names}
    declared = _declared(whole, bases.pop()) if len(bases) == 1 else None
    if declared is None:
        return False
    template, parameter_list, end = declared
    if len(set(names)) > 1:
        known |= set(_TEMPLATE_NAME.findall(template))
        template = ""
    conditions = " ".join(_CONDITION.findall(whole[:end]))  # what follows cannot change it
    used = _words(template + parameter_list) | _words(conditions) | _words(names[0])
    return not used & _depending(whole, known)


def _pieces(parameter_list: str) -> list[str]:
    pieces, depth = [""], 0
    for letter in parameter_list:
        depth += _DEPTH.get(letter, 0)
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]


def declared_parameters(
    text: str,
    name: str,
    headers: Mapping[str, str],
    defines: Mapping[str, object],
    is_open: bool = False,
) -> list[str] | None:
    """Names of the kernel's parameters, which may have no other number in any configuration. None
    where the text does not tell: it has the kernel twice, or macros may stand for parameters, of
    files that nobody looks at where it `is_open`."""
    whole = joined(text, headers, defines)
    declared = _declared(whole, base_name(name))
    if declared is None or any(sign in declared[1] for sign in ("#", "(", "...")):
        return None
    if is_open and _MACRO_NAME.search(declared[1]):
        return None
    pieces = _pieces(declared[1])
    if pieces in ([""], ["void"]):
        return []
    lists = {macro for macro, body in _MACRO.findall(whole) if "," in body}
    found = []
    for piece in pieces:
        piece = _EXTENT.sub("", piece.split("=", 1)[0])
        while piece != (piece := _ARGUMENTS.sub(" ", piece)):
            pass
        words = _WORD.findall(piece)
        if len(words) < 2 or lists & set(words):
            return None
        found.append(words[-1])
    return found


def macros_that_declare(
    text: str, headers: Mapping[str, str], defines: Mapping[str, object], variable: str
) -> str:
    """The variable's name, if macros may declare it: one is replaced by it, or by what declares
    variables of the device."""
    whole = joined(text, headers, defines)
    bodies = " ".join(body for _, body in _MACRO.findall(whole))
    declares = re.search(r"\b__(?:constant|device|managed)__\b", bodies)
    return f" {variable}" if variable in _words(bodies if not declares else whole) else ""


def macro_arguments(text: str, headers: Mapping[str, str], defines: Mapping[str, object]) -> str:
    """The arguments of macros in sight: these may declare variables by them."""
    whole = joined(text, headers, defines)
    names = "|".join(name for name, body in _MACRO.findall(whole) if body.startswith("("))
    return " ".join(re.findall(rf"\b(?:{names})\s*\(([^;{{}}]*)", whole)) if names else ""
