"""A room includes only its own headers and those of the rooms that it stands on."""

import re

# Room -> rooms that it may include directly or through them. The house is drawn in README.md.
ALLOWED = {
    "runtime/base": set(),
    "runtime/driver": {"runtime/base"},
    "runtime/sim": {"runtime/driver", "runtime/base"},
    "runtime/core": {"runtime/driver", "runtime/base"},
    "runtime/memory": {"runtime/core", "runtime/driver", "runtime/base"},
    "runtime/array": {"runtime/memory", "runtime/core", "runtime/driver", "runtime/base"},
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
}  # fmt: skip
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".inc", ".def"}


def room_of(path):
    """The room that a path belongs to, or None."""
    return next((room for room in ALLOWED if path.as_posix().startswith(room + "/")), None)


def room_of_include(root, name):
    for folder in ("runtime", "."):
        target = root / folder / name
        if target.is_file():
            return room_of(target.relative_to(root)), True
    return None, False


def upward_includes(root, path, text):
    room = room_of(path)
    for name in INCLUDE.findall(text):
        other, known = room_of_include(root, name)
        if known and other not in ALLOWED[room] | {room}:
            yield f"{path}: includes {name} of {other}"


def test_no_room_includes_upward_or_sideways(root, tracked):
    sources = [p for p in tracked if p.suffix in SUFFIXES and room_of(p)]
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


def test_every_room_has_a_short_readme(root):
    problems = []
    for room in [*ALLOWED, "bindings", "tests", "bench", "examples"]:
        readme = root / room / "README.md"
        if not readme.is_file():
            problems.append(f"{room}: no README.md")
        else:
            lines = readme.read_text().splitlines()
            if len([line for line in lines if not line.startswith("|")]) > 25:
                problems.append(f"{readme}: more than 25 lines beside tables")
    assert not problems, "\n".join(problems)
