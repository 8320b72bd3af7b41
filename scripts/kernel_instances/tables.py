"""The tables of the kernel library (`.def` files), for the instances of the compile gate."""

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


ACTIVATIONS = [row["type"] for row in rows("activations/activation.def", "KW_ACTIVATION").values()]
# Blocks that begin at a multiple of so many bytes are loaded by as many.
GGUF_BLOCKS = dict(
    re.findall(
        r'^KW_GGUF\(\w+, "(\w+)", \d+, \d+, (\d+),',
        (LIBRARY / "formats/gguf_format.def").read_text(),
        re.MULTILINE,
    )
)
PACKED = rows("packed/packed_format.def", "KW_PACKED")
