"""A module includes only its own headers and those of the modules below it."""

import re

# Module -> modules for it to include, directly or through them. README.md has the table.
ALLOWED = {
    "runtime/base": set(),
    "runtime/driver": {"runtime/base"},
    "runtime/sim": {"runtime/driver", "runtime/base"},
    "runtime/core": {"runtime/driver", "runtime/base"},
    "runtime/memory": {"runtime/core", "runtime/driver", "runtime/base"},
    "runtime/array": {"runtime/memory", "runtime/core", "runtime/driver", "runtime/base"},
    "runtime/schedule": {"runtime/memory", "runtime/core", "runtime/driver", "runtime/base"},
    "jit": {"runtime/core", "runtime/driver", "runtime/base"},
    "worker/device": {
        "worker", "jit", "runtime/memory", "runtime/core", "runtime/sim", "runtime/driver",
        "runtime/base",
    },
    "worker": {"jit", "runtime/core", "runtime/driver", "runtime/base"},
    "tune": {
        "worker/device", "worker", "jit", "runtime/memory", "runtime/core", "runtime/sim",
        "runtime/driver", "runtime/base",
    },
    "kernels_src": {
        "jit", "runtime/array", "runtime/memory", "runtime/core", "runtime/driver", "runtime/base",
    },
    "engine": {
        "kernels_src", "jit", "runtime/array", "runtime/memory", "runtime/core", "runtime/driver",
        "runtime/base",
    },
}  # fmt: skip
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".inc", ".def"}
# One stream of the C++ library links all locales into the extension: 136 kB of the wheel.
STREAMS = re.compile(
    r"^\s*#\s*include\s+<(fstream|iomanip|iostream|istream|locale|ostream|regex|sstream|codecvt)>",
    re.MULTILINE,
)


def module_of(path):
    """The module of a path, or None."""
    return next((module for module in ALLOWED if path.as_posix().startswith(module + "/")), None)


def module_of_include(root, name):
    for folder in ("runtime", "."):
        target = root / folder / name
        if target.is_file():
            return module_of(target.relative_to(root)), True
    return None, False


def upward_includes(root, path, text):
    module = module_of(path)
    for name in INCLUDE.findall(text):
        other, known = module_of_include(root, name)
        if known and other not in ALLOWED[module] | {module}:
            yield f"{path}: includes {name} of {other}"


def test_no_module_includes_upward_or_sideways(root, tracked):
    sources = [p for p in tracked if p.suffix in SUFFIXES and module_of(p)]
    assert len(sources) > 50
    problems = [
        problem
        for path in sources
        for problem in upward_includes(root, path, (root / path).read_text())
    ]
    assert not problems, "\n".join(problems)


def test_the_lint_finds_an_upward_include(root):
    import pathlib

    path = pathlib.Path("runtime/base/example.h")
    assert list(upward_includes(root, path, '#include "core/device.h"\n'))
    assert not list(upward_includes(root, path, '#include "base/errors.h"\n'))


def test_no_source_of_the_extension_has_streams(root, tracked):
    linked = [
        p for p in tracked if p.suffix in SUFFIXES and (module_of(p) or p.parts[0] == "bindings")
    ]
    assert len(linked) > 50
    problems = [
        f"{path}: includes <{name}>; base/regular_file.h, base/format.h do not"
        for path in linked
        for name in STREAMS.findall((root / path).read_text())
    ]
    assert not problems, "\n".join(problems)
    assert STREAMS.findall("#include <fstream>\n") == ["fstream"]


def test_every_module_has_a_short_readme(root):
    problems = []
    for module in [*ALLOWED, "bindings", "tests", "bench", "examples"]:
        readme = root / module / "README.md"
        if not readme.is_file():
            problems.append(f"{module}: no README.md")
        else:
            lines = readme.read_text().splitlines()
            if len([line for line in lines if not line.startswith("|")]) > 25:
                problems.append(f"{readme}: more than 25 lines beside tables")
    assert not problems, "\n".join(problems)
