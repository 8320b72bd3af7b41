"""Which suites a change may break: for run_tests.py --changed.

A change of C++ concerns its own module, those above it and all of Python. A change of a Python
module concerns the test files with one of its public names; those with operations also concern the
rules for every operation, whose tables may build names from parts.
"""

import ast
import pathlib
import re
import subprocess

# From the ground up: a module is used by those behind it. The C++ suites have these names.
MODULES = {
    "runtime/base": "base",
    "runtime/driver": "driver",
    "runtime/sim": "sim",
    "runtime/core": "core",
    "runtime/memory": "memory",
    "runtime/array": "array",
    "jit": "jit",
    "worker": "worker",
    "tune": "tune",
    "kernels_src": "kernels",
    "engine": "engine",
}
# They use everything below the kernels.
ACROSS = ("fault", "host_memory", "stress", "fuzz", "installed", "libcuda")
TEST_SUITES = {
    "tests/sim": ("sim_",),
    "tests/fault": ("fault", "host_memory"),
    "tests/stress": ("stress",),
    "tests/fuzz": ("fuzz",),
    "tests/fakes": ("driver", "jit", "worker"),
    "tests/worker": ("worker",),
    "bindings/libcuda": ("libcuda",),
    "bindings/cpp": ("installed",),
    "bindings/worker": ("worker", "installed"),
}
EVERYTHING = ("CMakeLists.txt", "CMakePresets.json", "cmake", "pyproject.toml", "Makefile")
EVERYTHING += ("tests/CMakeLists.txt", "tests/unit/main.cpp", "scripts/run_tests.py")
CPP = {".h", ".cpp", ".def", ".inc", ".cu", ".cuh", ".txt", ".cmake", ".json"}
PACKAGE = "bindings/python/kernwright"
OPERATIONS = [f"{PACKAGE}/{name}" for name in ("_array", "fft", "linalg", "nn", "optim", "random")]
TESTS = "tests/python"


def changed_files(root, since):
    """Paths that differ from the last commit shared with `since`, and files that git does not know.

    Raises ValueError where git knows no such revision.
    """

    def git(*arguments):
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ValueError(f"--changed {since}: git {arguments[0]}: {done.stderr.strip()}")
        return done.stdout.split("\n")

    base = git("merge-base", "HEAD", since)[0]
    files = git("diff", "--name-only", base) + git("ls-files", "--others", "--exclude-standard")
    return sorted({path for path in files if path})


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def cpp_suites(files):
    """A pattern for `ctest -R`; empty if no suite is concerned."""
    names = set()
    order = list(MODULES)
    for path in files:
        if any(is_below(path, each) for each in EVERYTHING):
            return "."
        for place, (folder, module) in enumerate(MODULES.items()):
            if is_below(path, folder) and pathlib.Path(path).suffix in CPP:
                names.update(MODULES[above] for above in order[place:])
                names.update(ACROSS)
                names.update({"sim_"} if place <= order.index("runtime/sim") else ())
            if is_below(path, f"tests/unit/{module}"):
                names.add(module)
        for folder, suites in TEST_SUITES.items():
            if is_below(path, folder):
                names.update(suites)
    # "core" is also core_CAPABILITY=9.0; "sim_" begins the names of several.
    return "|".join(
        f"^{name}" if name.endswith("_") else f"^{name}(_.*=.*)?$" for name in sorted(names)
    )


class PythonTests:
    """The test files with their texts, and the helpers that they import."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.texts = {path.stem: path.read_text() for path in (self.root / TESTS).glob("*.py")}
        self.words = {name: set(re.findall(r"\w+", text)) for name, text in self.texts.items()}
        self.uses = {name: self.imports(text) for name, text in self.texts.items()}
        self.tests = sorted(name for name in self.texts if name.startswith("test_"))

    def imports(self, text):
        """Names of all helpers that this text imports, at first or second hand."""
        found, todo = set(), [text]
        while todo:
            lines = re.findall(r"^\s*(?:from|import) ([\w, ]+)", todo.pop(), re.MULTILINE)
            names = self.texts.keys() & set(re.findall(r"\w+", " ".join(lines))) - found
            found |= names
            todo += [self.texts[name] for name in names]
        return found

    def matching_suites(self, words):
        """The tests that have one of the words, in their own text or in a helper's."""

        def has(name):
            return any(
                word in (self.words[name] if word.isidentifier() else self.texts[name])
                for word in words
            )

        having = {name for name in self.texts if has(name)}
        return {name for name in self.tests if having & {name, *self.uses[name]}}

    def file_suites(self, path):
        """The tests that a change of this file concerns."""
        every = set(self.tests)
        name = pathlib.Path(path)
        if any(is_below(path, each) for each in EVERYTHING) or name.name == "conftest.py":
            return every
        if is_below(path, TESTS):
            return {test for test in every if name.stem in {test, *self.uses[test]}}
        if is_below(path, PACKAGE):
            rules = {"test_docstrings"}
            if any(is_below(path, each) for each in OPERATIONS):
                rules.add("test_every_operation")
            return self.matching_suites(self.file_words(name)) | rules & every
        if is_below(path, "tests/unit"):
            return set()
        compiled = (*MODULES, "bindings")
        if name.suffix in CPP and any(is_below(path, folder) for folder in compiled):
            return every
        parent = name.parent.name
        return self.matching_suites(
            [name.name] + [parent] * (parent not in ("", "tests", "python"))
        )

    def file_words(self, path):
        """The names of a module of the package and of its functions, classes and public methods.
        For a package's own file it is the package's name."""
        words = {path.stem if path.stem != "__init__" else path.parent.name}
        file = self.root / path
        if path.suffix == ".py" and file.exists():
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            body = ast.parse(file.read_text()).body
            classes = [node for node in body if isinstance(node, ast.ClassDef)]
            methods = [node for each in classes for node in each.body if isinstance(node, kinds)]
            words |= {node.name for node in body if isinstance(node, kinds)}
            words |= {node.name for node in methods if not node.name.startswith("_")}
        return {word for word in words if not word.startswith("__")}


def python_tests(root, files):
    """Paths of the test files, sorted."""
    tests = PythonTests(root)
    chosen = set().union(*(tests.file_suites(path) for path in files))
    return [f"{TESTS}/{name}.py" for name in sorted(chosen)]
