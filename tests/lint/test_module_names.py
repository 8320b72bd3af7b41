"""Names that bench/ and scripts/ take from modules of the repository are there: modules of tests/
are imported by a path at run time, where type checkers do not look."""

import ast
import pathlib
import sys


def bound_names(nodes):
    """All names that a module binds anywhere."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]


def used_names(nodes, modules):
    """(line, module, name) of what a text takes from `modules`."""
    aliases = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            aliases |= {a.asname or a.name: a.name for a in node.names if a.name in modules}
        elif isinstance(node, ast.ImportFrom) and node.module in modules and not node.level:
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        if node.value.id in aliases and not node.attr.startswith("__"):
            yield node.lineno, aliases[node.value.id], node.attr


def missing_names(users, modules):
    """The "file:line: module.name" of each name that no module of this name binds. Both are texts:
    users by their files, modules as lists by their names."""
    bound = {}
    for path, text in users.items():
        for line, module, name in used_names(list(ast.walk(ast.parse(text))), modules):
            if module not in bound:
                trees = [ast.parse(each) for each in modules[module]]
                bound[module] = {name for tree in trees for name in bound_names(ast.walk(tree))}
            if name not in bound[module]:
                yield f"{path}:{line}: {module}.{name}"


def test_names_of_other_modules_are_there(root, tracked):
    users, modules = {}, {}
    for path in tracked:
        if path.suffix != ".py" or path.parts[0] not in ("bench", "scripts", "tests"):
            continue
        if path.parts[0] != "tests":
            users[path] = (root / path).read_text()
        if path.stem not in sys.stdlib_module_names and path.stem != "__init__":
            modules.setdefault(path.stem, []).append((root / path).read_text())
    assert len(users) > 100 and len(modules) > 300
    assert not list(missing_names(users, modules))


def test_a_name_that_is_gone_is_found():
    modules = {"corpus": ["def make_task(path): ...", "SIZES = 1"]}
    text = "import corpus as c\nfrom corpus import SIZES, task\nc.make_task, c.task_of"
    assert list(missing_names({pathlib.Path("bench/judge.py"): text}, modules)) == [
        "bench/judge.py:2: corpus.task",
        "bench/judge.py:3: corpus.task_of",
    ]
