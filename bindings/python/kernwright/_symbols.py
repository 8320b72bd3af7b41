"""Element type and shape of a variable of the device, read from its declaration."""

from __future__ import annotations

import re

_TYPES = {
    "bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long": "int64",
    "unsigned long": "uint64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "size_t": "uint64",
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "__nv_fp8_e4m3": "float8_e4m3fn",
    "__nv_fp8_e5m2": "float8_e5m2",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_QUALIFIERS = {"static", "const", "volatile", "extern", "constexpr", "inline", "__managed__"}
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def declared_type(text: str, name: str) -> tuple[str | None, tuple[int, ...] | None]:
    """(dtype, shape) of the variable, None for what the declaration does not tell plainly.

    Extents that are no literals leave the shape to the variable's size.
    """
    plain = re.sub(r"<.*", "", name).rsplit("::", 1)[-1]
    pattern = re.compile(
        rf"__(?:device|constant|managed)__\s+([\w\s]+?)\s+{re.escape(plain)}"
        r"\s*((?:\[[^\]]*\]\s*)*)[;={]"
    )
    match = pattern.search(_COMMENTS.sub(" ", text))
    if match is None:
        return None, None
    words = [
        word
        for word in match[1].split()
        if word not in _QUALIFIERS and word not in ("__device__", "__constant__")
    ]
    dtype = _TYPES.get(" ".join(words))
    extents = re.findall(r"\[([^\]]*)\]", match[2])
    if dtype is None or not all(extent.strip().isdigit() for extent in extents):
        return dtype, None
    return dtype, tuple(int(extent) for extent in extents)
