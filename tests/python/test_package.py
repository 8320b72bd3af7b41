"""What importing the package does, and what it offers."""

import ast
import importlib
import pathlib
import re
import struct
import subprocess
import sys

import kernwright as kw


def run(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_loads_no_driver_no_compiler_and_no_ml_dtypes():
    code = """
import kernwright, sys
maps = open("/proc/self/maps").read()
print("libcuda.so" in maps, "libnvrtc" in maps, "ml_dtypes" in sys.modules)
"""
    assert run(code) == "False False False"


def test_import_starts_no_process():
    code = """
import kernwright, pathlib
print(*(p.read_text() for p in pathlib.Path("/proc/self/task").glob("*/children")))
"""
    assert run(code) == ""


def test_import_starts_no_thread():
    code = """
import kernwright, os
print(len(os.listdir("/proc/self/task")))
import numpy
"""
    only_numpy = "import numpy, os; print(len(os.listdir('/proc/self/task')))"
    assert run(code) == run(only_numpy)


def test_all_public_names_exist():
    for name in [*kw.__all__, *dir(kw)]:
        assert getattr(kw, name) is not None or name == "newaxis"


def test_unknown_name_is_an_attribute_error():
    assert not hasattr(kw, "no_such_thing")


def test_types_are_told_to_type_checkers():
    import pathlib

    folder = pathlib.Path(kw.__file__).parent
    assert (folder / "py.typed").is_file()
    stub = (folder / "__init__.pyi").read_text()
    for module in re.findall(r"^from (\S+) import \*$", stub, re.MULTILINE):
        stub += " ".join(importlib.import_module(module).__all__)
    for name in kw.__all__:
        assert name in stub, f"{name} is missing in __init__.pyi"


def test_names_of_the_array_library_are_those_of_its_modules():
    for module, names in kw._TOPICS.items():
        if module.startswith("_array."):
            public = importlib.import_module(f"kernwright.{module}").__all__
            assert not set(public) - set(names), f"_TOPICS[{module!r}] of __init__.py lacks names"
            assert names == public, module


def listed_names(path):
    """The names in `__all__` of a module, by its text."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


# Names that modules of the package list for each other, and types of what public functions return.
NOT_OF_THE_PACKAGE = {
    "_array.composed.masked": {"reduced"},
    "_array.composed.weighted_quantiles": {"weighted", "weights_of"},
    "_files.gguf": {"split_mxfp4"},
    "_fuse.fused": {"Fused"},
    "_fuse.reduction": {"CReduction", "ReductionKernel"},
    "_fuse.scan": {"DtypeScan", "Scan"},
    "_support.sizes": {"size_in_bytes"},
}


def test_each_name_that_a_module_lists_is_one_of_the_package():
    folder = pathlib.Path(kw.__file__).parent
    tables = {**kw._TOPICS, **{home: names.split() for home, names in kw._RARE.items()}}
    left_out = {}
    for path in sorted(folder.glob("_*/**/*.py")):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        # A package lists names of its modules; the rules of gradients are found by their names.
        if path.name == "__init__.py" or module.startswith("_grad.table."):
            continue
        if names := listed_names(path) - {*tables.get(module, ())}:
            left_out[module] = names
    assert left_out == NOT_OF_THE_PACKAGE, "_TOPICS of __init__.py lacks these"


def test_each_public_module_is_listed():
    folder = pathlib.Path(kw.__file__).parent
    files = {path.stem for path in folder.glob("[a-z]*.py")}
    packages = {path.parent.name for path in folder.glob("[a-z]*/__init__.py")}
    # errors is imported at once; the others need more than NumPy, or are programs.
    apart = {"cli", "einops", "errors", "serve", "torch"}
    assert files | packages == {*kw._MODULES} | apart, "_MODULES of __init__.py"


def stub_names(text):
    """The names that a stub declares or imports for others."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    yield from importlib.import_module(node.module).__all__
                elif alias.asname == alias.name:
                    yield alias.name
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            yield target.id


def missing_lines(stub, homes):
    """The lines that a stub lacks, as they would stand there, for names and their modules."""
    known = {*stub_names(stub)}
    for name, home in sorted(homes.items()):
        if name not in known:
            yield f"from {home} import {name} as {name}"


def test_stub_of_the_package_has_a_line_for_each_name():
    stub = (pathlib.Path(kw.__file__).parent / "__init__.pyi").read_text()
    homes = dict.fromkeys(kw._IMPORTED, "kernwright._core") | dict.fromkeys(kw._DTYPES, "numpy")
    homes |= dict.fromkeys(kw._MODULES, "kernwright")
    for table in (kw._TOPICS, kw._RARE):
        for module, names in table.items():
            listed = names.split() if isinstance(names, str) else names
            homes |= dict.fromkeys(listed, f"kernwright.{module}")
    del homes["bool"]  # a type of annotations in the stub
    lines = "\n".join(missing_lines(stub, homes))
    assert not lines, f"__init__.pyi lacks\n{lines}"
    more = {name for name in {*stub_names(stub)} - homes.keys() if not name.startswith("_")}
    assert more == {"BoundKernel", "split_mxfp4"}  # of types, and of other packages


def test_missing_lines_of_a_stub():
    stub = "from kernwright import nn as nn\ndef ones() -> int: ...\npi: float\n"
    homes = {"nn": "kernwright", "ones": "m", "pi": "m", "zeros": "kernwright._core"}
    assert [*missing_lines(stub, homes)] == ["from kernwright._core import zeros as zeros"]


def test_stub_of_the_extension_names_every_member():
    import pathlib

    from kernwright import _core

    stubs = pathlib.Path(kw.__file__).parent.glob("_core*.pyi")
    stub = "\n".join(path.read_text() for path in stubs)
    for name, value in vars(_core).items():
        if name.startswith("__") or name == "_faults":  # the latter in builds with tests only
            continue
        assert f"class {name}" in stub or f"def {name}(" in stub, f"{name} is missing in _core*.pyi"
        if isinstance(value, type):
            for member in vars(value):
                if not member.startswith("_"):
                    declared = re.search(rf"def {member}\(|^    {member}: ", stub, re.MULTILINE)
                    assert declared, f"{name}.{member} is missing in _core.pyi"


def test_element_types_have_names():
    import ml_dtypes
    import numpy as np

    assert kw.float32 is np.float32
    assert kw.bfloat16 is ml_dtypes.bfloat16
    assert kw.float8_e4m3fn is ml_dtypes.float8_e4m3fn


def loaded_bytes(path):
    """What an ELF file of 64 bits holds for the loader: its size once it is stripped, nearly."""
    data = pathlib.Path(path).read_bytes()
    assert data[:5] == b"\x7fELF\x02"
    offset, size, count = struct.unpack_from("<Q14xHH", data, 32)
    headers = (struct.unpack_from("<IIQQQQQQ", data, offset + i * size) for i in range(count))
    return sum(header[5] for header in headers if header[0] == 1)


def test_extension_stays_small():
    from kernwright import _core

    assert 1_000_000 < loaded_bytes(_core.__file__) < 10_000_000  # the wheel has less than 5 MB
