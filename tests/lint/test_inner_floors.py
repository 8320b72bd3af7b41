"""Inside the big rooms, too, a lower floor includes no higher one."""

import re

# Floors of a room's folders from the ground up. What lies in the room's own folder is its surface:
# plain data that every floor may know.
FLOORS = {
    "jit": ("source", "signature", "compile", "cache"),
    "runtime/sim": ("numeric", "ptx", "mem", "code", "exec", "ops", "check", "observe", "device"),
    "tune": ("store", "search", "measure", "session", "judge"),
    "bindings": (
        *("support", "calls", "values", "memory", "array", "arguments", "launch", "jit", "sim"),
        "kernels",
        *("worker", "tune", "judge", "libcuda", "cpp"),
    ),
}
# Includes that point upward today. This list only shrinks.
UPWARD = {
    "jit": set(),
    "tune": set(),
    "bindings": set(),
    "runtime/sim": set(),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".inc", ".def"}


def upward_includes(room, path, text):
    """ "file -> included" for each include of `path` (below the room) that points upward."""
    floors = FLOORS[room]
    prefix = room.removeprefix("runtime/") + "/"
    for name in INCLUDE.findall(text):
        other = name.removeprefix(prefix)
        folder = other.split("/")[0]
        if other == name or folder not in floors or path.split("/")[0] not in floors:
            continue
        if floors.index(folder) > floors.index(path.split("/")[0]):
            yield f"{path} -> {other}"


def test_no_floor_inside_a_room_includes_a_higher_one(root, tracked):
    for room, known in UPWARD.items():
        found, folders = set(), set()
        for file in tracked:
            path = file.as_posix().removeprefix(room + "/")
            if path == file.as_posix() or file.suffix not in SUFFIXES:
                continue
            if "/" in path:
                folders.add(path.split("/")[0])
            found |= set(upward_includes(room, path, (root / file).read_text()))
        assert folders == set(FLOORS[room]), "a folder has no floor, or a floor no folder"
        assert not found - known, f"{room}: {sorted(found - known)}"
        assert not known - found, f"{room}: gone, take it from UPWARD: {sorted(known - found)}"


def test_the_lint_finds_an_upward_include():
    text = '#include "jit/cache/pack.h"\n#include "jit/source/source.h"\n#include "base/log.h"\n'
    assert list(upward_includes("jit", "compile/x.h", text)) == ["compile/x.h -> cache/pack.h"]
    assert not list(upward_includes("jit", "cache/x.h", text))
