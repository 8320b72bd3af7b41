"""Inside the large modules, too, a lower layer includes no higher one."""

import re

# Layers of a module from the ground up, one a folder. Files in the module's own folder are its
# surface (SURFACE).
LAYERS = {
    "jit": ("source", "signature", "slice", "compile", "cache"),
    "runtime/sim": ("numeric", "ptx", "mem", "code", "exec", "ops", "check", "observe", "device"),
    "tune": ("store", "search", "measure", "session", "judge"),
    "kernels_src": (
        *("plans", "copy", "matmul", "steps"),
        *("cast", "movement", "optim", "random", "reduce", "scan", "softmax", "spatial"),
        *("activations", "elementwise", "embedding", "formats", "linalg", "loss", "norm"),
        *("quantize", "recurrent", "rope", "sort", "experts", "epilogue", "gemm", "index"),
        *("sampling", "attention", "gemv", "packed", "products", "conv"),
    ),
    "bindings": (
        *("support", "values", "calls", "memory", "array", "arguments", "launch"),
        *("schedule", "jit", "sim"),
        *("kernels", "engine"),
        *("worker", "tune", "judge", "libcuda", "cpp"),
    ),
}
# Includes pointing upward today. This list only shrinks.
UPWARD = {
    "jit": set(),
    "tune": set(),
    "bindings": set(),
    "kernels_src": set(),
    "runtime/sim": set(),
}
# Modules where sources and tables of the surface are in the layer of their header.
STRICT = {"kernels_src"}
# Headers in a module's own folder, each with the lowest layer that may include it. None: it stands
# above all layers. Those for the lowest layer are plain data; in `tune`, the configuration space.
SURFACE = {
    "jit": {
        "object_code.h": "source",
        "found_code.h": "source",
        "compile_only.h": None,
        "kernels_ahead.h": None,
        "program.h": None,
        "sliced_kernel.h": None,
        "sliced_launch.h": None,
        "slicing.h": None,
    },
    "tune": dict.fromkeys(
        (
            *("configuration_set.h", "hash_map.h", "random.h", "restriction.h", "space.h"),
            *("expression.h", "expression_arithmetic.h", "expression_bounds.h"),
            *("expression_lexer.h", "expression_tree.h", "space_conditions.h", "value.h"),
        ),
        "store",
    ),
    "bindings": {},
    "kernels_src": {
        **dict.fromkeys(
            (
                *("axes.h", "device_headers.h", "family.h", "instance_table.h"),
                *("launch_choices.h", "row_plan.h", "walk_plan.h", "zeroed_words.h"),
            ),
            "plans",
        ),
        "operands.h": "cast",
        "result_target.h": "cast",
    },
    "runtime/sim": {
        "tensor_map.h": "numeric",
        "checks.h": "check",
        "line_profile.h": "observe",
        "trace.h": "observe",
        "device.h": "device",
    },
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".inc", ".def"}


def level(module, path):
    """The number of the layer of `path` (below the module); None where it has none."""
    layers = LAYERS[module]
    if "/" not in path:
        header = path.split(".")[0] + ".h"  # of a source, a table or an embedded text
        layer = SURFACE[module].get(header if module in STRICT else path)
        return len(layers) if layer is None else layers.index(layer)
    folder = path.split("/")[0]
    return layers.index(folder) if folder in layers else None


def upward_includes(module, path, text):
    """ "file -> included" for each include of `path` (below the module) pointing upward."""
    prefix = module.removeprefix("runtime/") + "/"
    own = level(module, path)
    for name in INCLUDE.findall(text):
        other = name.removeprefix(prefix)
        if other == name or own is None:
            continue
        its = level(module, other)
        if its is not None and its > own:
            yield f"{path} -> {other}"


def test_no_layer_inside_a_module_includes_a_higher_one(root, tracked):
    for module, known in UPWARD.items():
        found, folders, surface = set(), set(), set()
        for file in tracked:
            path = file.as_posix().removeprefix(module + "/")
            if path == file.as_posix() or file.suffix not in SUFFIXES:
                continue
            if "/" in path:
                folders.add(path.split("/")[0])
            elif path.endswith(".h"):
                surface.add(path)
            found |= set(upward_includes(module, path, (root / file).read_text()))
        assert folders == set(LAYERS[module]), "a folder has no layer, or a layer no folder"
        assert surface == set(SURFACE[module]), "SURFACE lacks a header, or names one that is gone"
        assert not found - known, f"{module}: {sorted(found - known)}"
        assert not known - found, f"{module}: gone, take it from UPWARD: {sorted(known - found)}"


def test_the_lint_finds_an_upward_include():
    text = '#include "jit/cache/pack.h"\n#include "jit/source/source.h"\n#include "base/log.h"\n'
    assert list(upward_includes("jit", "compile/x.h", text)) == ["compile/x.h -> cache/pack.h"]
    assert not list(upward_includes("jit", "cache/x.h", text))
    assert not list(upward_includes("jit", "program.cpp", text))
    assert list(upward_includes("jit", "object_code.h", text)) == ["object_code.h -> cache/pack.h"]


def test_the_lint_finds_what_a_source_of_the_surface_includes():
    text = '#include "kernels_src/copy/copy.h"\n#include "kernels_src/gemm/gemm.h"\n'
    found = list(upward_includes("kernels_src", "operands.cpp", text))
    assert found == ["operands.cpp -> gemm/gemm.h"]
    assert len(list(upward_includes("kernels_src", "launch_choices.cpp", text))) == 2


def test_the_lint_finds_an_include_of_the_surface():
    text = '#include "jit/program.h"\n#include "jit/object_code.h"\n'
    assert list(upward_includes("jit", "compile/x.h", text)) == ["compile/x.h -> program.h"]
    assert list(upward_includes("jit", "found_code.h", text)) == ["found_code.h -> program.h"]
    assert not list(upward_includes("jit", "lazy_kernel.cpp", text))
    text = '#include "sim/trace.h"\n'
    assert list(upward_includes("runtime/sim", "exec/x.h", text)) == ["exec/x.h -> trace.h"]
    assert not list(upward_includes("runtime/sim", "observe/x.h", text))


FIRST = re.compile(r"^Layer (\d+) of kernels_src\. Read first: (.*?)\.$", re.MULTILINE | re.DOTALL)


def test_each_folder_of_kernels_says_its_layer_and_three_files(root):
    kernels = root / "kernels_src"
    for number, folder in enumerate(LAYERS["kernels_src"], 1):
        found = FIRST.findall((kernels / folder / "README.md").read_text())
        assert [int(given) for given, _ in found] == [number], f"{folder}: layer {number}"
        names = re.findall(r"`([^`]+)`", found[0][1])
        assert len(names) == 3, folder
        for name in names:
            exists = (kernels / folder / name).is_file() or (kernels / name).is_file()
            assert exists, f"{folder}/README.md names {name}, which is gone"
