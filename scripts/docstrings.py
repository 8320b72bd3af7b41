"""Writes the signatures and docstrings of the extension's stubs as a C++ table.

python scripts/docstrings.py OUTPUT STUB...

A row is class, member, text; the class is empty for a member of a module. The text begins with the
signature in CPython's format, so that inspect.signature() can read it.
"""

from __future__ import annotations

import ast
import pathlib
import sys
from collections.abc import Iterator

Row = tuple[str, str, str]


def main() -> int:
    output, stubs = pathlib.Path(sys.argv[1]), map(pathlib.Path, sys.argv[2:])
    text = "".join(f"{{{literal(a)}, {literal(b)}, {literal(c)}}},\n" for a, b, c in rows(stubs))
    if not output.exists() or output.read_text() != text:
        output.write_text(text)
    return 0


def rows(stubs: Iterator[pathlib.Path]) -> Iterator[Row]:
    for stub in stubs:
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield "", node.name, described(node)
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, "", ast.get_docstring(node) or ""
                yield from members(node)


def members(node: ast.ClassDef) -> Iterator[Row]:
    for member in node.body:
        if not isinstance(member, ast.FunctionDef) or is_setter(member):
            continue
        is_special = member.name.startswith("__") and ast.get_docstring(member)
        if member.name.startswith("_") and member.name != "__init__" and not is_special:
            continue
        yield node.name, member.name, described(member)


def is_setter(node: ast.FunctionDef) -> bool:
    """Of a property, which has its text from its getter."""
    return any(ast.unparse(each).endswith(".setter") for each in node.decorator_list)


def described(node: ast.FunctionDef) -> str:
    doc = ast.get_docstring(node) or ""
    if "property" in [ast.unparse(each) for each in node.decorator_list]:
        return doc
    return f"{node.name}({parameters(node.args)})\n--\n\n{doc}"


def parameters(arguments: ast.arguments) -> str:
    """The arguments without annotations, in the form for `inspect`."""
    everything = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for each in (*everything, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None
    return ast.unparse(arguments)


def literal(text: str) -> str:
    """The text as a C++ string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


if __name__ == "__main__":
    sys.exit(main())
