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


# Packages that call public names of higher packages, as a user would: `import kernwright as kw` in
# a function, then kw.nn.silu(x). Gradients record such a call. The set only shrinks.
PUBLIC_CALLS = {
    ("_array", "fft"),
    ("_array", "linalg"),
    ("_files", "nn"),
    ("_fuse", "nn"),
    ("_grad", "linalg"),
    ("_grad", "nn"),
    ("_jit", "_array"),
    ("_jit", "nn"),
    ("_measure", "_array"),
    ("_measure", "_jit"),
    ("_support", "memory"),
    ("random", "nn"),
}


def homes(text):
    """The part of kernwright that has each public name, by the text of its __init__.py."""
    found = {name: name for name in LEVEL}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernwright."):
            part = node.module.split(".")[1]
            found |= {alias.asname or alias.name: part for alias in node.names}
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                texts = [getattr(each, "value", None) for each in (key, value)]
                if all(isinstance(each, str) for each in texts) and texts[0].startswith("_"):
                    found |= dict.fromkeys(texts[1].split(), texts[0].split(".")[0])
    return found


def public_calls(part, text, found):
    """(part, higher part) of each public name that the text takes from kernwright itself."""
    tree = ast.parse(text)
    aliases = {
        alias.asname or alias.name
        for node in imports(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "kernwright"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            other = found.get(node.attr, part) if node.value.id in aliases else part
            if other != part and LEVEL[other] >= LEVEL[part]:
                yield part, other


def test_public_names_of_higher_packages_are_called_by_few(root, tracked):
    found = homes((root / PACKAGE / "__init__.py").read_text())
    calls = set()
    for path in tracked:
        if path.suffix == ".py" and PACKAGE in pathlib.PurePosixPath(path).parents:
            part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
            calls |= set(public_calls(part, (root / path).read_text(), found))
    assert calls == PUBLIC_CALLS


def test_the_lint_finds_public_names_of_higher_packages():
    found = homes('X = {"_array.sorting": "sort topk"}\nfrom kernwright.tune import Plans\n')
    text = "def f():\n    import kernwright as kw\n    return kw.sort(x), kw.tune.y, kw.Plans\n"
    assert list(public_calls("nn", text, found)) == [("nn", "tune"), ("nn", "tune")]
    assert set(public_calls("_jit", text, found)) == {("_jit", "_array"), ("_jit", "tune")}


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
    assert not circles, sorted(circles)


def test_the_lint_finds_files_that_need_each_other():
    names = {"a.b", "a.c"}
    assert (
        set(imported_files("def f():\n    from a import b\n    from a.c import d\n", names))
        == names
    )
    assert files_in_circles({"x": {"y"}, "y": {"z"}, "z": {"y"}}) == {"y", "z"}
    assert files_in_circles({"x": {"y"}, "y": set()}) == set()
