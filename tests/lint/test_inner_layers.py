"""Inside the large modules, too, a lower layer includes no higher one."""

import re

# Layers of a module from the ground up, one a folder. Files in the module's own folder are its
# surface: plain data for every layer.
LAYERS = {
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


def upward_includes(module, path, text):
    """ "file -> included" for each include of `path` (below the module) that points upward."""
    layers = LAYERS[module]
    prefix = module.removeprefix("runtime/") + "/"
    for name in INCLUDE.findall(text):
        other = name.removeprefix(prefix)
        folder = other.split("/")[0]
        if other == name or folder not in layers or path.split("/")[0] not in layers:
            continue
        if layers.index(folder) > layers.index(path.split("/")[0]):
            yield f"{path} -> {other}"


def test_no_layer_inside_a_module_includes_a_higher_one(root, tracked):
    for module, known in UPWARD.items():
        found, folders = set(), set()
        for file in tracked:
            path = file.as_posix().removeprefix(module + "/")
            if path == file.as_posix() or file.suffix not in SUFFIXES:
                continue
            if "/" in path:
                folders.add(path.split("/")[0])
            found |= set(upward_includes(module, path, (root / file).read_text()))
        assert folders == set(LAYERS[module]), "a folder has no layer, or a layer no folder"
        assert not found - known, f"{module}: {sorted(found - known)}"
        assert not known - found, f"{module}: gone, take it from UPWARD: {sorted(known - found)}"


def test_the_lint_finds_an_upward_include():
    text = '#include "jit/cache/pack.h"\n#include "jit/source/source.h"\n#include "base/log.h"\n'
    assert list(upward_includes("jit", "compile/x.h", text)) == ["compile/x.h -> cache/pack.h"]
    assert not list(upward_includes("jit", "cache/x.h", text))
