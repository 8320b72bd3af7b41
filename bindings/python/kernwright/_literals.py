"""The kernels that a Python file holds as string literals, with their places and options."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Any, NamedTuple

_KERNEL = re.compile(r"\b__global__\b[^;{}]*\(")
_COMPILERS = {"kernel", "module", "Program"}
_TEMPLATE_METHODS = {"format", "format_map", "replace", "substitute", "safe_substitute"}
_ESCAPE = re.compile(r"\\(?:\n|\r\n|N\{[^}]*\}|x..|u.{4}|U.{8}|[0-7]{1,3}|.)", re.DOTALL)


class Literal(NamedTuple):
    """A text that holds a kernel. `lines` are the file's line and the columns before the text, for
    each line of the text; `skipped` says why it cannot be checked as it stands."""

    name: str
    text: str
    line: int
    column: int
    lines: list[tuple[int, int]]
    options: dict[str, Any]
    skipped: str

    def place(self, line: int, column: int) -> tuple[int, int]:
        """Line and column of the file for those of the text; 0 stands for unknown."""
        if not 0 < line <= len(self.lines):
            return self.line, self.column
        file_line, before = self.lines[line - 1]
        return file_line, column + before if column else 0


def find_literals(source: str, path: str) -> list[Literal]:
    """Every string literal of a Python text that holds a kernel, in order; no docstring is one.

    Raises SyntaxError for a text that is not Python.
    """
    tree = ast.parse(source, path)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    reader = _Reader(source, tree, parents)
    return [reader.literal(node) for node in reader.nodes()]


class _Reader:
    def __init__(self, source: str, tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> None:
        self.tree = tree
        self.parents = parents
        self.strings = _string_tokens(source)

    def nodes(self) -> Iterator[ast.expr]:
        """The literals that hold a kernel and are values, not documentation."""
        found: list[ast.expr] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                inside = isinstance(self.parents.get(node), (ast.JoinedStr, ast.Expr))
                if not inside and _KERNEL.search(node.value) and "{" in node.value:
                    found.append(node)
            elif isinstance(node, ast.JoinedStr) and _KERNEL.search(_fixed_text(node)):
                found.append(node)
        return iter(sorted(found, key=lambda node: (node.lineno, node.col_offset)))

    def literal(self, node: ast.expr) -> Literal:
        text = str(node.value) if isinstance(node, ast.Constant) else _fixed_text(node)
        lines = self._lines(node)
        if lines and len(lines) != text.count("\n") + 1:
            lines = []
        return Literal(
            self._name(node),
            text,
            node.lineno,
            node.col_offset + 1,
            lines or [(node.lineno + i, 0) for i in range(text.count("\n") + 1)],
            self._options(node),
            self._skipped(node),
        )

    def _lines(self, node: ast.expr) -> list[tuple[int, int]]:
        """Where each line of the text stands in the file, from the literal's tokens."""
        begin = (node.lineno, node.col_offset)
        end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
        lines: list[tuple[int, int]] = []
        for token in self.strings:
            if begin <= token.start and token.end <= end:
                starts = _line_starts(token)
                lines += starts if not lines else starts[1:]
        return lines

    def _name(self, node: ast.expr) -> str:
        """The variable that the literal is assigned to, else the function that it is in."""
        parent: ast.AST | None = node
        while parent is not None:
            parent = self.parents.get(parent)
            if isinstance(parent, (ast.Assign, ast.AnnAssign)):
                target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
                return ast.unparse(target)
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return parent.name
        return "a string"

    def _skipped(self, node: ast.expr) -> str:
        if isinstance(node, ast.JoinedStr) and any(
            isinstance(part, ast.FormattedValue) for part in node.values
        ):
            return "an f-string with placeholders"
        parent = self.parents.get(node)
        if isinstance(parent, ast.BinOp):
            return "a part of a larger text" if isinstance(parent.op, ast.Add) else "a pattern"
        if isinstance(parent, ast.Attribute) and parent.attr in _TEMPLATE_METHODS:
            return f"a pattern of .{parent.attr}()"
        return ""

    def _options(self, node: ast.expr) -> dict[str, Any]:
        """The option fields of the call that compiles the literal, as far as they are literals."""
        names = {node}
        parent = self.parents.get(node)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target = parent.targets[0]
            if isinstance(target, ast.Name):
                names |= {
                    use
                    for use in ast.walk(self.tree)
                    if isinstance(use, ast.Name) and use.id == target.id
                }
        for call in ast.walk(self.tree):
            if isinstance(call, ast.Call) and call.args and call.args[0] in names:
                function = call.func
                name = getattr(function, "attr", None) or getattr(function, "id", None)
                if name in _COMPILERS:
                    return _literal_keywords(call)
        return {}


def _fixed_text(node: ast.AST) -> str:
    parts = getattr(node, "values", [])
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in parts)


def _literal_keywords(call: ast.Call) -> dict[str, Any]:
    from kernwright._options import ProgramOptions

    values = {}
    for keyword in call.keywords:
        if keyword.arg in ProgramOptions.__slots__:
            try:
                values[keyword.arg] = ast.literal_eval(keyword.value)
            except ValueError:
                continue
    return values


def _string_tokens(source: str) -> list[tokenize.TokenInfo]:
    """The plain string tokens, with columns counted in bytes as in the tree."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            first = token.line.splitlines(True)[0] if token.line else ""
            column = len(first[: token.start[1]].encode())
            last = token.string.rsplit("\n", 1)[-1]
            same_line = token.start[0] == token.end[0]
            end = column + len(last.encode()) if same_line else len(last.encode())
            tokens.append(token._replace(start=(token.start[0], column), end=(token.end[0], end)))
    return tokens


def _line_starts(token: tokenize.TokenInfo) -> list[tuple[int, int]]:
    """Line and columns before the text for each line of a string token's value."""
    match = re.match(r"(?i)([rbuf]*)('''|\"\"\"|'|\")", token.string)
    assert match is not None
    body = token.string[match.end() : -len(match[2])]
    is_raw = "r" in match[1].lower()
    line, before = token.start[0], token.start[1] + match.end()
    starts = [(line, before)]
    at = 0
    line_begin = -before  # where the file's current line begins, as an index into the body
    while at < len(body):
        escape = None if is_raw else _ESCAPE.match(body, at)
        piece = escape[0] if escape else body[at]
        at += len(piece)
        if piece.endswith("\n"):
            line += 1
            line_begin = at
        if piece in ("\n", "\\n", "\\012", "\\x0a", "\\x0A"):
            starts.append((line, at - line_begin))
    return starts
