"""What importing the package does, and what it offers."""

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
            assert names == importlib.import_module(f"kernwright.{module}").__all__, module


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
                    assert f"def {member}(" in stub, f"{name}.{member} is missing in _core.pyi"


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
