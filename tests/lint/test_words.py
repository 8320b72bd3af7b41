"""Docstrings are easy to read: few relative clauses, and the field's words for the parts."""

import ast
import io
import re
import tokenize

import pytest

CODE = {"runtime", "jit", "worker", "tune", "kernels_src", "engine", "bindings"}
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".inc", ".def"}
RELATIVE = re.compile(r"\b(?:that|which|what|who|whose|whom)\b", re.IGNORECASE)
COMMENT = re.compile(r"^\s*//+[/!<]*(.*)|(?<![:\"'])//[/!<]*\s(.*)$")
MAX_PER_LINE = 0.25

# The field says layers and modules. The part for judging kernels is the judge.
PICTURES = re.compile(r"\b(?:houses?|referees?|rooms|ground floor|upper floors?)\b", re.IGNORECASE)
READ_BY_CONTRIBUTORS = {".md", ".cmake"}

# Pictures in names, too: the field says lock, claim, pending, target, ping-pong, rotation.
PICTURES_IN_NAMES = {
    *("cell", "cells", "crew", "depart", "departs", "departure", "departures", "doubt"),
    *("doubtful", "doubts", "flight", "flights", "platform", "platforms", "polls", "turns"),
    *("wish", "wished", "wishes"),
}
CELLS = {"cell", "cells"}  # no picture where recurrent networks are: their steps are cells
NO_NAMES = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_]\w*")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def comments(text):
    for line in text.splitlines():
        if match := COMMENT.search(line):
            yield match[1] if match[1] is not None else match[2]


def told_in_python(text):
    """The lines of docstrings without the code of examples, and the comments."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for line in (ast.get_docstring(node) or "").splitlines():
                if line.strip() and not line.lstrip().startswith((">>>", "...")):
                    yield line
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def assert_few_relative_clauses(root, told, least):
    """At most one word of RELATIVE in four lines. `told`: the reader of comments for each path."""
    lines, words, dense = 0, 0, []
    for path, read in told.items():
        found = list(read((root / path).read_text()))
        count = sum(len(RELATIVE.findall(line)) for line in found)
        lines, words = lines + len(found), words + count
        dense.append((count - MAX_PER_LINE * len(found), f"{path}: {count} in {len(found)}"))
    assert lines > least
    worst = "\n".join(text for _, text in sorted(dense, reverse=True)[:10])
    assert words <= MAX_PER_LINE * lines, f"{words} in {lines} lines, most in\n{worst}"


def test_docstrings_have_few_relative_clauses(root, tracked):
    """Of the Python package and its stubs."""
    package = [path for path in tracked if path.parts[:2] == ("bindings", "python")]
    paths = [path for path in package if path.suffix in {".py", ".pyi"}]
    assert_few_relative_clauses(root, dict.fromkeys(paths, told_in_python), 4_000)


@pytest.mark.parametrize("folder", ["bench", "examples", "scripts", "tests"])
def test_code_around_the_library_has_few_relative_clauses(root, tracked, folder):
    paths = [path for path in tracked if path.parts[0] == folder]
    paths = [path for path in paths if path.suffix in SOURCES | {".py"}]
    told = {path: told_in_python if path.suffix == ".py" else comments for path in paths}
    assert_few_relative_clauses(root, told, 100)


def test_parts_of_the_project_have_the_names_of_the_field(root, tracked):
    problems = [
        f"{path}: {match[0]}"
        for path in tracked
        if path.suffix in READ_BY_CONTRIBUTORS or path.name == "CMakeLists.txt"
        for match in PICTURES.finditer((root / path).read_text())
    ]
    assert not problems, "\n".join(problems)


def pictures_in_names(text, allowed=frozenset()):
    """Names outside of comments and strings with a word of PICTURES_IN_NAMES."""
    for name in NAME.findall(NO_NAMES.sub(" ", text)):
        words = {word.lower() for word in WORD.findall(name)}
        if words & (PICTURES_IN_NAMES - allowed):
            yield name


def test_names_have_the_words_of_the_field(root, tracked):
    sources = [path for path in tracked if path.parts[0] in CODE and path.suffix in SOURCES]
    names = {
        path: set(
            pictures_in_names(
                (root / path).read_text(), CELLS if "recurren" in path.stem else set()
            )
        )
        for path in sources
    }
    problems = [f"{path}: {', '.join(sorted(found))}" for path, found in names.items() if found]
    problems += [f"{path}: its name" for path in sources if [*pictures_in_names(path.stem)]]
    assert not problems, "\n".join(problems)


# What CUDA's tensor maps call a box is a TMA tile in kernels: the word of the glossary.
BOX = re.compile(
    r"(?<![A-Za-z])[a-z]?[bB]ox(?:es)?(?![a-z])(?! and Muller)|[a-z]Box(?:es)?(?![a-z])"
)


def test_kernels_say_tma_tile(root, tracked):
    sources = [path for path in tracked if path.parts[0] == "kernels_src"]
    found = [path for path in sources if BOX.search((root / path).read_text())]
    assert len(sources) > 500 and not found, found


def test_the_lint_finds_boxes():
    for text in ("int box_rows", "TileBoxes", "load_box(", "// a box of c", "kBox = 1", "a_boxes"):
        assert BOX.search(text), text
    for text in ("(Box and Muller)", "boxed", "toolbox", "inBoxed"):
        assert not BOX.search(text), text


def test_the_lint_finds_pictures_in_names():
    text = """int k = in_flight(kTurns);  // a wish
    struct CompileFlight { TargetWish wish_; };  /* cells */
    auto text = "two polls", raw = R"x(int cell; " platform)x";
    for (char c : {'"', 'a'}) turn_off(1'000, departure->swish, HTTPCrew);
    line_cells(counts);
    """
    assert list(pictures_in_names(text)) == [
        *("in_flight", "kTurns", "CompileFlight", "TargetWish", "wish_"),
        *("departure", "HTTPCrew", "line_cells"),
    ]
    assert list(pictures_in_names("object_in_flight")) == ["object_in_flight"]


def test_the_lint_finds_comments():
    text = "int a;  /// what it is\n// which\nauto url = 1;\n"
    assert list(comments(text)) == ["what it is", " which"]
    text = '"""Doc.\n\nMore.\n\n>>> f()\n"""\ndef f():\n  """It."""\n  return "# no"  # yes\n'
    assert list(told_in_python(text)) == ["Doc.", "More.", "It.", "# yes"]
