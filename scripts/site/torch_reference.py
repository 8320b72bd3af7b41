"""The page of kernwright.torch, made from its source, because torch may not be installed."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

from python_reference import indented, markdown, read_signature, shown

import kernwright as kw

FOLDER = pathlib.Path(kw.__file__).parent / "torch"
Definition = ast.FunctionDef | ast.ClassDef


def page() -> str:
    doc = ast.get_docstring(parsed(FOLDER / "__init__.py")) or ""
    body = "".join(entry(name, node) for name, node in definitions())
    return f"# kw.torch\n\n{markdown(doc)}\n\n{body}"


def definitions() -> Iterator[tuple[str, Definition]]:
    """The public functions and classes, in the order of the modules that have them."""
    for line in parsed(FOLDER / "__init__.py").body:
        if not isinstance(line, ast.ImportFrom) or line.names[0].name != "*":
            continue
        tree = parsed(FOLDER / f"{str(line.module).rpartition('.')[2]}.py")
        nodes = {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        yield from ((name, nodes[name]) for name in public(tree))


def docstring(node: Definition) -> str:
    return ast.get_docstring(node) or ""


def parsed(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def public(tree: ast.Module) -> list[str]:
    """The names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def entry(name: str, node: Definition) -> str:
    """As python_reference.entry(): a heading, the signature, the docstring, and the methods."""
    path = f"kw.torch.{name}"
    parts = [f"### {name} {{#{path}}}\n\n```python\n{heading(path, node)}\n```\n\n"]
    parts.append(f"{markdown(ast.get_docstring(node) or '')}\n\n")
    if isinstance(node, ast.ClassDef):
        parts += [method(name, each) for each in methods(node)]
    return "".join(parts)


def heading(path: str, node: Definition) -> str:
    """A call; for a class without an own constructor its name alone."""
    if isinstance(node, ast.FunctionDef):
        return f"{path}{told(node)}"
    makers = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    if not makers:
        return f"class {path}"
    return path + told(makers[0], drop_self=True).removesuffix(" -> None")


def methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            yield each


def method(owner: str, node: ast.FunctionDef) -> str:
    doc = markdown(ast.get_docstring(node) or "")
    return f"**`{owner}.{node.name}{told(node, drop_self=True)}`**\n:   {indented(doc)}\n\n"


def told(node: ast.FunctionDef, drop_self: bool = False) -> str:
    return shown(read_signature(node), drop_self)
