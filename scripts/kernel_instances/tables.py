"""The tables of the kernel library (`.def` files, arrays in C++), for the compile gate."""

from __future__ import annotations

import re
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "kernels_src"


def rows(path: str, macro: str) -> dict[str, dict[str, str]]:
    """The columns of each row by name: those that are written as `.name = value`."""
    text = (LIBRARY / path).read_text()
    found = re.findall(rf"^{macro}\((\w+),(.*?)\)$", text, re.MULTILINE | re.DOTALL)
    column = re.compile(r'\.(\w+) = ("[^"]*"|[\w:]+)')
    made = {name: dict(column.findall(columns)) for name, columns in found}
    assert len(made) == text.count(f"\n{macro}("), f"a row of {path} cannot be read"
    return {
        name: {key: value.strip('"') for key, value in row.items()} for name, row in made.items()
    }


def tiles(path: str, *arrays: str) -> list[str]:
    """The rows of constant arrays of tiles, as the arguments of a template."""
    text = (LIBRARY / path).read_text()
    made = []
    for array in arrays:
        begin = re.search(rf"^constexpr [^;={{]*\b{array}(?:\[\])? = ", text, re.MULTILINE)
        assert begin, f"{path} has no array {array}"
        found = re.findall(r"{([^{}]+)}", text[begin.end() : text.index("};", begin.end()) + 1])
        assert found, f"the array {array} of {path} cannot be read"
        made += [" ".join(row.split()) for row in found]
    return made


def further(planned: list[str], listed: list[tuple[str, ...]]) -> list[str]:
    """The planned tiles that no row of a list has in its second column."""
    return [tile for tile in dict.fromkeys(planned) if tile not in {row[1] for row in listed}]


_ACTIVATIONS = rows("activations/activation.def", "KW_ACTIVATION").values()
ACTIVATIONS = [row["type"] for row in _ACTIVATIONS]
# What stands for some of them where results have 16 bits.
HALF_ACTIVATIONS = [row["half_type"] for row in _ACTIVATIONS if "half_type" in row]
# Blocks that begin at a multiple of so many bytes are loaded by as many.
GGUF_BLOCKS = dict(
    re.findall(
        r'^KW_GGUF\(\w+, "(\w+)", \d+, \d+, (\d+),',
        (LIBRARY / "formats/gguf_format.def").read_text(),
        re.MULTILINE,
    )
)
PACKED = rows("packed/packed_format.def", "KW_PACKED")
