"""The packages of kernwright have an order: each imports only packages below it, also inside of
functions, so that no two packages need each other."""

import ast
import pathlib

PACKAGE = pathlib.PurePosixPath("bindings/python/kernwright")
# From the ground up. Names of a row may import names of rows above it, but none of the same row.
LAYERS = (
    ("errors", "_core"),
    ("_support",),
    ("_jit", "_measure", "schedule"),
    ("cache",),
    ("_fuse",),
    ("_array",),
    ("_files", "_grad", "_sim", "einops", "fft", "linalg"),
    ("memory", "random"),
    ("nn",),
    ("optim",),
    ("checks", "tune"),
    ("train",),
    ("_judging", "bench", "llm", "torch"),
    ("serve",),
    ("cli",),
    ("__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def is_for_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(node):
    """The import statements below `node`, without those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if is_for_types(child):
            for other in child.orelse:
                yield from imports(ast.Module([other], []))
            continue
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        yield from imports(child)


def imported(text):
    """(line, part of kernwright) of each import of a part by its name."""
    for node in imports(ast.parse(text)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
            if node.module == "kernwright":
                names = [f"kernwright.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            first, *rest = name.split(".")
            if first == "kernwright" and rest and rest[0] in LEVEL:
                yield node.lineno, rest[0]


def problems_of(part, text):
    for line, other in imported(text):
        if other != part and LEVEL[other] >= LEVEL[part]:
            yield f"{line}: {part} imports {other}"


def test_no_package_imports_a_higher_one(root, tracked):
    problems, parts = [], set()
    for path in tracked:
        if path.suffix != ".py" or PACKAGE not in pathlib.PurePosixPath(path).parents:
            continue
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        parts.add(part)
        problems += [f"{path}:{each}" for each in problems_of(part, (root / path).read_text())]
    assert parts | {"_core"} == set(LEVEL), "a package has no layer, or a layer no package"
    assert not problems, "\n".join(problems)


def test_the_lint_finds_an_upward_import_inside_a_function():
    assert list(problems_of("nn", "def f():\n    from kernwright.tune._products import x\n"))
    assert list(problems_of("_array", "import kernwright.nn\n"))
    assert list(problems_of("linalg", "from kernwright import fft\n"))
    assert not list(problems_of("tune", "from kernwright.nn import quant\n"))
    assert not list(problems_of("nn", "if TYPE_CHECKING:\n    from kernwright.tune import x\n"))


def module_name(path):
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_files(text, names):
    """The modules among `names` that the text imports, also inside of functions."""
    for node in imports(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from {whole if whole in names else node.module} & names
        else:
            yield from {alias.name for alias in node.names} & names


def files_in_circles(imported):
    """The files of which each needs itself by way of others."""

    def reached(name):
        found, waiting = set(), [name]
        while waiting:
            for other in imported[waiting.pop()] - found:
                found.add(other)
                waiting.append(other)
        return found

    return {name for name in imported if name in reached(name)}


def test_no_two_files_need_each_other(root, tracked):
    paths = [
        p for p in tracked if p.suffix == ".py" and PACKAGE in pathlib.PurePosixPath(p).parents
    ]
    files = {module_name(p.relative_to(PACKAGE.parent)): root / p for p in paths}
    names = set(files) - {"kernwright"}
    imported = {n: set(imported_files(files[n].read_text(), names)) - {n} for n in names}
    circles = files_in_circles(imported)
    assert not [n for n in circles if not n.startswith("kernwright._array.")], sorted(circles)


def test_the_lint_finds_files_that_need_each_other():
    names = {"a.b", "a.c"}
    assert (
        set(imported_files("def f():\n    from a import b\n    from a.c import d\n", names))
        == names
    )
    assert files_in_circles({"x": {"y"}, "y": {"z"}, "z": {"y"}}) == {"y", "z"}
    assert files_in_circles({"x": {"y"}, "y": set()}) == set()
