"""Files that comments name exist; test files have names of their own."""

import re

from test_words import CODE, SOURCES, comments

FILE = re.compile(r"(?<![\w./<-])(?:[\w-]+/)*[\w-]+\.(?:cpp|cuh|cu|def|h|inc|md|py)\b(?![/(])")
QUOTED = re.compile(r'"[^"]*"')  # an example

# Files of others.
FOREIGN = {"cuda.h", "cuda_runtime.h", "fast.cu", "mma.h", "modeling_rope_utils.py"}


def unknown_files(text, known):
    """The names of files in comments of `text` that are no end of a path in `known`."""
    for line in comments(text):
        named = set(FILE.findall(QUOTED.sub("", line)))
        yield from sorted(named - known - FOREIGN)


def ends(path):
    return {"/".join(path.parts[i:]) for i in range(len(path.parts))}


def test_comments_name_files_that_exist(root, tracked):
    known = set().union(*map(ends, tracked))
    sources = [path for path in tracked if path.parts[0] in CODE and path.suffix in SOURCES]
    problems = [
        f"{path}: {name}"
        for path in sources
        for name in unknown_files((root / path).read_text(), known)
    ]
    assert not problems, "\n".join(problems)


def test_test_files_have_names_of_their_own(tracked):
    """pytest imports the files of a run by their names: of two equal ones it runs one."""
    folders = ("tests/python", "tests/lint")
    names = [p.name for p in tracked if str(p.parent) in folders and p.name.startswith("test_")]
    assert len(names) > 100
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_the_lint_finds_names_of_files():
    text = """// As in include/a.cuh and b.h:12.
    int a;  /// see include/product/a.cuh, c.py; for example "d.cu" with <e.h>
    auto f = "g.cpp";
    """
    assert list(unknown_files(text, {"a.cuh", "product/a.cuh", "c.py"})) == [
        *("b.h", "include/a.cuh", "include/product/a.cuh"),
    ]
