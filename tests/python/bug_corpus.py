"""The faulty kernels of tests/sim/bugs: their launches and the lines at fault.

The second line of a file says `launch: grid=2 block=8x8 shared=64 cooperative args=...`, with
`cluster=2` or `capability=9.0` for kernels of clusters or of newer devices. An argument is
`f32*64:iota` (an array: iota, zeros, raw = not initialised, freed) or `i32:5` (a number). A comment
`FINDS kind` marks each line to be named by a finding of the kind; a second kind may follow. Lines
under `#ifdef FIXED` mend the kernel.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent.parent / "sim" / "bugs"
DTYPES = {"f32": "float32", "i32": "int32", "u8": "uint8", "u64": "uint64"}


@dataclasses.dataclass(frozen=True)
class Argument:
    dtype: str
    count: int  # 0: a number
    value: str


@dataclasses.dataclass(frozen=True)
class Bug:
    name: str
    path: pathlib.Path
    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    cooperative: bool
    cluster: tuple[int, ...] | None
    capability: str  # the least one for the kernel; empty: any
    arguments: tuple[Argument, ...]
    kind: str  # the main one
    lines: dict[str, set[int]]  # by kind

    @property
    def can_be_fixed(self) -> bool:
        return "def FIXED" in self.source


def _argument(text: str) -> Argument:
    kind, value = text.split(":")
    dtype, _, count = kind.partition("*")
    return Argument(DTYPES[dtype], int(count or 0), value)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split("x"))


def load(path: pathlib.Path) -> Bug:
    source = path.read_text(encoding="utf-8")
    words = source.splitlines()[1].removeprefix("// launch: ").split()
    options = dict(word.partition("=")[::2] for word in words)
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(source.splitlines(), 1):
        if match := re.search(r"// FINDS ([\w -]+)$", line):
            for kind in match[1].split():
                lines.setdefault(kind, set()).add(number)
    assert lines, f"{path.name} expects nothing"
    return Bug(
        name=path.stem,
        path=path,
        source=source,
        grid=_shape(options["grid"]),
        block=_shape(options["block"]),
        shared=int(options.get("shared", 0)),
        cooperative="cooperative" in options,
        cluster=_shape(options["cluster"]) if "cluster" in options else None,
        capability=options.get("capability", ""),
        arguments=tuple(_argument(text) for text in options["args"].split(",")),
        kind=next(iter(lines)),
        lines=lines,
    )


def bugs() -> list[Bug]:
    return [load(path) for path in sorted(FOLDER.glob("*.cu"))]
