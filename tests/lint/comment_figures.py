"""Figures of comments and names by folder, and their ceilings (ceilings.json).

    python tests/lint/comment_figures.py            # prints the figures
    python tests/lint/comment_figures.py --lower    # lowers each ceiling to its figure

A ceiling never rises: a folder above its mark only gets better.
"""

from __future__ import annotations

import ast
import json
import math
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

CEILINGS = pathlib.Path(__file__).with_name("ceilings.json")
CODE = {"runtime", "jit", "worker", "tune", "kernels_src", "engine", "bindings"}
PYTHON = {"bindings", "bench", "examples", "scripts"}
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".inc", ".def"}
# Words that point at a noun somewhere else, in a line of a comment.
PRONOUNS = re.compile(r"\b(?:those|such|others|its|they|the same)\b", re.IGNORECASE)
# The first words of a comment without a subject.
BARE = re.compile(r"(?:Of|With|As|In|The same)\b")
# Words that are no names: neither alone nor as a part of a name, but for those of C++ and CUDA.
PREPOSITIONS = {"of", "with", "into", "mine", "own"}
STANDARD = re.compile(
    r"(?:any|all|none)_of|find_(?:first|last)(?:_not)?_of|(?:starts|ends)_with|out_of_\w+|OutOf\w+"
    r"|result_out_of_range|index_of|with_(?:name|stem|suffix)|size_?of|align_?of|offset_?of"
    r"|is_base_of_v|\w*CUDA_\w+|CU_\w+|owns?_lock"
)
# What every folder should have: pronouns a line, blocks without a subject.
MARKS = {"pronouns": 0.12, "bare": 0.04}

COMMENT = re.compile(r"^\s*//+[/!<]*(.*)|(?<![:\"'])//[/!<]*\s(.*)$")
NO_NAMES = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_]\w*")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def comment_lines(text: str) -> Iterator[tuple[str, bool]]:
    """(words of the comment, whether it begins a block) for each line with a comment. A block is
    several lines of comments alone, or the comment behind code."""
    before = False  # the line before was a comment alone
    for line in text.splitlines():
        match = COMMENT.search(line)
        alone = match is not None and match[1] is not None
        if match is not None:
            words = match[1] if alone else match[2]
            yield words.strip(), not (alone and before)
        before = alone


def prepositions(text: str) -> Iterator[str]:
    """The names outside of comments and strings with a word of PREPOSITIONS."""
    for name in NAME.findall(NO_NAMES.sub(" ", text)):
        words = {word.lower() for word in WORD.findall(name)}
        if words & PREPOSITIONS and not STANDARD.fullmatch(name):
            yield name


def python_prepositions(text: str) -> Iterator[str]:
    """The names of a Python text with a word of PREPOSITIONS: variables, members, functions."""
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "arg", "attr", "name", "asname"):
            name = getattr(node, field, None)
            if not isinstance(name, str) or STANDARD.fullmatch(name):
                continue
            if {word.lower() for word in WORD.findall(name)} & PREPOSITIONS:
                yield name


def folder_of(path: pathlib.PurePath) -> str:
    return "/".join(path.parts[:-1][:2])


def figures(root: pathlib.Path, paths: Iterable[pathlib.PurePath]) -> dict[str, dict[str, float]]:
    """For each folder: pronouns a line of comments, the part of blocks without a subject; for each
    module also the names with a preposition in 1,000 lines."""
    counts: dict[str, list[int]] = {}
    names: dict[str, list[int]] = {}

    def count_names(part: str, text: str, found: Iterator[str]) -> None:
        count = names.setdefault(part, [0, 0])
        count[0] += sum(1 for _ in found)
        count[1] += text.count("\n")

    for path in paths:
        if path.suffix == ".py" and path.parts[0] in PYTHON:
            part = f"{path.parts[0]}, Python"
            text = (root / path).read_text()
            count_names(part, text, python_prepositions(text))
            continue
        if path.parts[0] not in CODE or path.suffix not in SOURCES:
            continue
        text = (root / path).read_text()
        count = counts.setdefault(folder_of(path), [0, 0, 0, 0])
        for words, begins in comment_lines(text):
            count[0] += 1
            count[1] += len(PRONOUNS.findall(words))
            count[2] += begins
            count[3] += begins and BARE.match(words) is not None
        count_names(path.parts[0], text, prepositions(text))
    found = {
        folder: {"pronouns": words / max(1, lines), "bare": bare / max(1, blocks)}
        for folder, (lines, words, blocks, bare) in counts.items()
    }
    for module, (count, lines) in names.items():
        found.setdefault(module, {})["names"] = 1000 * count / max(1, lines)
    return found


def ceiling_of(kind: str, figure: float) -> float:
    """The ceiling of a figure: rounded up, and never below the mark."""
    if kind not in MARKS:
        return math.ceil(figure)
    return max(MARKS[kind], math.ceil(figure * 100) / 100)


def main() -> None:
    root = pathlib.Path(__file__).resolve().parents[2]
    listing = subprocess.run(
        ["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    paths = [pathlib.PurePath(name) for name in listing.splitlines() if (root / name).is_file()]
    found = figures(root, paths)
    for folder, row in sorted(found.items()):
        print(f"{folder:28}" + "  ".join(f"{kind} {value:.3f}" for kind, value in row.items()))
    if "--lower" in sys.argv[1:]:
        before = json.loads(CEILINGS.read_text()) if CEILINGS.exists() else {}
        lowered = {
            folder: {
                kind: min(ceiling_of(kind, value), before.get(folder, {}).get(kind, math.inf))
                for kind, value in row.items()
            }
            for folder, row in sorted(found.items())
        }
        rows = [f'"{folder}": {json.dumps(row)}' for folder, row in lowered.items()]
        CEILINGS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
