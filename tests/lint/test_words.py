"""Comments are easy to read: few relative clauses, and the field's words for the parts."""

import re

CODE = {"runtime", "jit", "worker", "tune", "kernels_src", "bindings"}
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".inc", ".def"}
RELATIVE = re.compile(r"\b(?:that|which|what|who|whose|whom)\b", re.IGNORECASE)
COMMENT = re.compile(r"^\s*//+[/!<]*(.*)|(?<![:\"'])//[/!<]*\s(.*)$")
MAX_PER_LINE = 0.25

# Layers and modules are called so; who judges kernels is the judge.
PICTURES = re.compile(r"\b(?:houses?|referees?|rooms|ground floor|upper floors?)\b", re.IGNORECASE)
READ_BY_CONTRIBUTORS = {".md", ".cmake"}


def comments(text):
    for line in text.splitlines():
        if match := COMMENT.search(line):
            yield match[1] if match[1] is not None else match[2]


def test_comments_have_few_relative_clauses(root, tracked):
    """That, which, what, who, whose: at most one in four lines of comments."""
    lines, words, dense = 0, 0, []
    for path in tracked:
        if path.parts[0] in CODE and path.suffix in SOURCES:
            found = list(comments((root / path).read_text()))
            count = sum(len(RELATIVE.findall(comment)) for comment in found)
            lines, words = lines + len(found), words + count
            dense.append((count - MAX_PER_LINE * len(found), f"{path}: {count} in {len(found)}"))
    assert lines > 10_000
    worst = "\n".join(text for _, text in sorted(dense, reverse=True)[:10])
    assert words <= MAX_PER_LINE * lines, f"{words} in {lines} lines of comments, most in\n{worst}"


def test_parts_of_the_project_have_the_names_of_the_field(root, tracked):
    problems = [
        f"{path}: {match[0]}"
        for path in tracked
        if path.suffix in READ_BY_CONTRIBUTORS or path.name == "CMakeLists.txt"
        for match in PICTURES.finditer((root / path).read_text())
    ]
    assert not problems, "\n".join(problems)


def test_the_lint_finds_comments():
    text = "int a;  /// what it is\n// which\nauto url = 1;\n"
    assert list(comments(text)) == ["what it is", " which"]
