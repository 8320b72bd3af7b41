"""What a wheel ships runs with glibc 2.28 and without the system's C++ library."""

import importlib.util
import pathlib
import platform

import pytest

import kernwright

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check_wheel.py"
FOLDER = pathlib.Path(kernwright.__file__).parent
BUILD_VERSIONS = {"2.34", "2.35", "2.36", "2.37"}  # as in cmake/OldGlibc.cmake
NAME = "kernwright-1-cp311-cp311-manylinux_2_28_x86_64.whl"


@pytest.fixture(scope="module")
def check_wheel():
    spec = importlib.util.spec_from_file_location("check_wheel", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def linked():
    files = [
        *FOLDER.glob("_core*.so"),
        FOLDER / "libcuda/libcuda.so.1",
        FOLDER / "kernwright-worker",
    ]
    assert len(files) == 3
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[1] not in BUILD_VERSIONS,
    reason="that is promised for builds on x86-64 with glibc 2.34 to 2.37",
)
def test_what_is_shipped_needs_no_newer_glibc(check_wheel):
    assert not list(check_wheel.problems_of_versions(NAME, linked()))


def test_the_check_compares_versions_as_numbers(check_wheel):
    older = NAME.replace("2_28", "2_9")
    assert check_wheel.promised_glibc(NAME) == "2.28"
    problems = list(check_wheel.problems_of_versions(older, linked()))
    assert len(problems) == 2 and "the wheel's name promises 2.9" in problems[0]
    untagged = "kernwright-1-cp311-cp311-linux_x86_64.whl"
    assert "promises no version" in next(check_wheel.problems_of_versions(untagged, linked()))
