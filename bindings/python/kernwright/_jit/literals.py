"""Kernels in the string literals of a Python file, with their places and options."""

from __future__ import annotations

import ast
import io
import operator
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from kernwright._support.arithmetic import ARITHMETIC

_KERNEL = re.compile(r"\b__global__\b[^;{}]*\(")
_COMPILERS = {"kernel", "module", "Program"}
_TEMPLATE_METHODS = {"format", "format_map", "replace", "substitute", "safe_substitute"}
# Options without which a text means something else.
_NEEDED = {None, "defines", "headers", "include_dirs", "strip_host"}
_SCALARS = {
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "intc", "longlong"), int),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64", "uintc", "ulonglong"), int),
    **dict.fromkeys(("float", "float16", "float32", "float64", "bfloat16"), float),
    **dict.fromkeys(("bool", "bool_"), bool),
    "str": str,
}
_OPERATORS = {**ARITHMETIC, ast.BitOr: operator.or_, ast.BitAnd: operator.and_}
_ESCAPE = re.compile(r"\\(?:\n|\r\n|N\{[^}]*\}|x..|u.{4}|U.{8}|[0-7]{1,3}|.)", re.DOTALL)


class Literal(NamedTuple):
    """A text with a kernel, and its place in a file of Python. Columns count characters.

    `lines` has a list for each line of the text, with a row for each part of it that stands in one
    line of the file: the part's first column in the text, from 0; the line of the file; how many
    columns further right the part stands there. `skipped` says why the text cannot be checked.
    """

    name: str
    text: str
    line: int
    column: int
    lines: list[list[tuple[int, int, int]]]
    options: dict[str, Any]
    skipped: str

    def place(self, line: int, column: int) -> tuple[int, int]:
        """Line and column of the file for those of the text; 0 stands for unknown."""
        if not 0 < line <= len(self.lines):
            return self.line, self.column
        parts = self.lines[line - 1]
        _, file_line, shift = [part for part in parts if part[0] < max(column, 1)][-1]
        return file_line, column + shift if column else 0


def find_literals(source: str, path: str) -> list[Literal]:
    """Every string literal of a Python text with a kernel in it, in order; no docstring is one.

    Raises SyntaxError for a text of another language.
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
        self.source_lines = source.split("\n")
        self.values = _Values(tree)

    def nodes(self) -> Iterator[ast.expr]:
        """The literals with a kernel; of these the values, not documentation."""
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
        lines = _places(self._tokens(node))
        # From Python 3.12 on an f-string has tokens of other kinds.
        if len(lines) != text.count("\n") + 1 or not all(lines):
            lines = [[(0, node.lineno + i, 0)] for i in range(text.count("\n") + 1)]
        options, unknown = self._options(node)
        skipped = self._skipped(node)
        if not skipped and unknown:
            skipped = f"compiled with {unknown} that only the running program knows"
        return Literal(
            self._name(node), text, node.lineno, self._column(node), lines, options, skipped
        )

    def _column(self, node: ast.expr) -> int:
        """The tree counts bytes."""
        line = self.source_lines[node.lineno - 1]
        return len(line.encode()[: node.col_offset].decode(errors="replace")) + 1

    def _tokens(self, node: ast.expr) -> list[tokenize.TokenInfo]:
        """The string tokens of the literal; columns count characters."""
        begin = (node.lineno, node.col_offset)
        end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
        return [token for token, first, last in self.strings if begin <= first and last <= end]

    def _name(self, node: ast.expr) -> str:
        """The variable to hold the literal, else the function around it."""
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

    def _options(self, node: ast.expr) -> tuple[dict[str, Any], str]:
        """The option fields of the call to compile the literal, and the unknown ones of them."""
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
                    return self._keywords(call)
        return {}, ""

    def _keywords(self, call: ast.Call) -> tuple[dict[str, Any], str]:
        from kernwright._jit.options import ProgramOptions

        values: dict[str, Any] = {}
        unknown = ""
        options = [keyword.value for keyword in call.keywords if keyword.arg == "options"]
        for node in [*options, *call.args[1:]]:
            made = self.values.meant(node)
            if isinstance(made, ast.Call) and getattr(
                made.func, "attr", getattr(made.func, "id", "")
            ) == ("ProgramOptions"):
                values, unknown = self._keywords(made)
        for keyword in call.keywords:
            try:
                if keyword.arg is None:
                    known = self.values.value(keyword.value)
                    values |= {k: v for k, v in known.items() if k in ProgramOptions.__slots__}
                elif keyword.arg in ProgramOptions.__slots__:
                    values[keyword.arg] = self.values.value(keyword.value)
            except (ValueError, TypeError, AttributeError):
                if keyword.arg in _NEEDED:
                    unknown = keyword.arg or "options"
        return values, unknown


class _Values:
    """Values of expressions, as far as the program need not run for them: literals, names with one
    assignment, arithmetic, dict() and the like, NumPy's scalars of them."""

    def __init__(self, tree: ast.Module) -> None:
        assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        assigned.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                assigned.setdefault(node.id, [])
        # Loops, `with` and the like assign too: such a name has another number of stores.
        stores = Counter(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        stores.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
        self._nodes = {n: v[0] for n, v in assigned.items() if len(v) == 1 and stores[n] == 1}

    def meant(self, node: ast.expr) -> ast.expr:
        """The value of a name, else the node itself."""
        for _ in range(8):
            if not isinstance(node, ast.Name) or node.id not in self._nodes:
                break
            node = self._nodes[node.id]
        return node

    def value(self, node: ast.expr, depth: int = 0) -> Any:
        """Raises ValueError where only the running program knows it."""
        node = self.meant(node)
        if depth > 32:
            raise ValueError("nested too deep")
        inner = [depth + 1]
        if isinstance(node, ast.Dict) and all(key is not None for key in node.keys):
            keys = [self.value(key, *inner) for key in node.keys if key is not None]
            return dict(zip(keys, [self.value(v, *inner) for v in node.values], strict=True))
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.value(item, *inner) for item in node.elts]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self.value(node.left, *inner), self.value(node.right, *inner)
            if isinstance(left, (int, float)) and isinstance(right, (int, float)):
                return self._computed(_OPERATORS[type(node.op)], left, right)
            if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
                return left + right
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return ast.literal_eval(node)

    @staticmethod
    def _computed(function: Any, left: float, right: float) -> Any:
        if abs(left) > 2**64 or abs(right) > 2**64 or (function is operator.lshift and right > 64):
            raise ValueError("too large")
        try:
            return function(left, right)
        except (ArithmeticError, TypeError) as error:
            raise ValueError(str(error)) from error

    def _called(self, call: ast.Call, depth: int) -> Any:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name == "dict" and not call.args:
            return {k.arg: self.value(k.value, depth + 1) for k in call.keywords if k.arg}
        if len(call.args) == 1 and not call.keywords and name in _SCALARS:
            return _SCALARS[name](self.value(call.args[0], depth + 1))
        raise ValueError("a call")


def _fixed_text(node: ast.AST) -> str:
    parts = getattr(node, "values", [])
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in parts)


_Place = tuple[int, int]


def _string_tokens(source: str) -> list[tuple[tokenize.TokenInfo, _Place, _Place]]:
    """The plain string tokens, each with its begin and end in bytes as in the tree."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            first = token.line.splitlines(True)[0] if token.line else ""
            column = len(first[: token.start[1]].encode())
            last = token.string.rsplit("\n", 1)[-1]
            same_line = token.start[0] == token.end[0]
            end = column + len(last.encode()) if same_line else len(last.encode())
            tokens.append((token, (token.start[0], column), (token.end[0], end)))
    return tokens


def _places(tokens: list[tokenize.TokenInfo]) -> list[list[tuple[int, int, int]]]:
    """Where the parts of each line of the value stand in the file, as Literal.lines."""
    lines: list[list[tuple[int, int, int]]] = [[]]
    column = 0  # within the value's line
    for token in tokens:
        match = re.match(r"(?i)([rbuf]*)('''|\"\"\"|'|\")", token.string)
        assert match is not None
        body = token.string[match.end() : -len(match[2])]
        is_raw = "r" in match[1].lower()
        line, place = token.start[0], token.start[1] + match.end()
        lines[-1].append((column, line, place - column))
        at = 0
        while at < len(body):
            escape = None if is_raw else _ESCAPE.match(body, at)
            piece = escape[0] if escape else body[at]
            at += len(piece)
            if piece.endswith("\n"):
                line, place = line + 1, 0
            else:
                place += len(piece)
            value = _value_of(piece) if escape else piece.replace("\r", "")
            if value == "\n":
                lines.append([])
                column = 0
            else:
                column += len(value)
            if len(piece) != 1 or piece == "\n":
                lines[-1].append((column, line, place - column))
    return lines


def _value_of(escape: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape that Python does not know
            return str(ast.literal_eval(f"'''{escape}'''"))
    except (SyntaxError, ValueError):
        return escape
