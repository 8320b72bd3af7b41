"""What a wheel ships runs with glibc 2.28 and without the system's C++ library."""

import importlib.util
import pathlib
import platform
import shutil
import subprocess

import pytest

import kernwright

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check_wheel.py"
FOLDER = pathlib.Path(kernwright.__file__).parent
OLD_GLIBC = SCRIPT.parents[1] / "cmake" / "old_glibc.cpp"
BUILD_VERSIONS = {"2.34", "2.35", "2.36", "2.37", "2.38", "2.39"}  # as in cmake/OldGlibc.cmake
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


of_builds_here = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[1] not in BUILD_VERSIONS,
    reason="that is promised for builds on x86-64 with glibc 2.34 to 2.39",
)


@of_builds_here
def test_what_is_shipped_needs_no_newer_glibc(check_wheel):
    assert not list(check_wheel.version_problems(NAME, linked()))


def test_the_check_compares_versions_as_numbers(check_wheel):
    older = NAME.replace("2_28", "2_9")
    assert check_wheel.promised_glibc(NAME) == "2.28"
    problems = list(check_wheel.version_problems(older, linked()))
    assert len(problems) == 2 and "the wheel's name promises 2.9" in problems[0]
    untagged = "kernwright-1-cp311-cp311-linux_x86_64.whl"
    assert "promises no version" in next(check_wheel.version_problems(untagged, linked()))


@of_builds_here
def test_the_tag_is_what_the_files_allow(check_wheel, monkeypatch):
    files = linked()
    assert check_wheel.promised_tag(files, "x86_64") == "manylinux_2_28_x86_64"
    monkeypatch.setattr(check_wheel, "PROMISED", "2.9")
    assert check_wheel.promised_tag(files, "x86_64") == ""
    monkeypatch.undo()
    monkeypatch.setattr(check_wheel, "newest_glibc", lambda binary: "0")  # another C library
    assert check_wheel.promised_tag(files, "x86_64") == ""


# What a compiler makes of calls where glibc is 2.38; the names are written out, so that any older
# system links the same program.
NEWER_NAMES = """
#include <sys/stat.h>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>

extern "C" {
long __isoc23_strtol(const char*, char**, int);
long long __isoc23_strtoll(const char*, char**, int);
unsigned long __isoc23_strtoul(const char*, char**, int);
unsigned long long __isoc23_strtoull(const char*, char**, int);
intmax_t __isoc23_strtoimax(const char*, char**, int);
uintmax_t __isoc23_strtoumax(const char*, char**, int);
int __isoc23_sscanf(const char*, const char*, ...);
}

int main() {
  char* end = nullptr;
  if (__isoc23_strtol("-12x", &end, 10) != -12 || *end != 'x') return 1;
  if (__isoc23_strtoll("-99", nullptr, 10) != -99) return 2;
  if (__isoc23_strtoul("ff", nullptr, 16) != 255) return 3;
  if (__isoc23_strtoull("18446744073709551615", nullptr, 10) != UINT64_MAX) return 4;
  if (__isoc23_strtoimax("-7", nullptr, 0) != -7) return 5;
  if (__isoc23_strtoumax("07", nullptr, 0) != 7) return 6;
  int a = 0, b = 0;
  if (__isoc23_sscanf("3,4", "%d,%d", &a, &b) != 2 || a != 3 || b != 4) return 7;

  volatile double x = 7.5, y = 2, three = 3, four = 4;
  volatile float f = 7.5f, g = 2.0f;
  if (fmod(x, y) != 1.5 || fmodf(f, g) != 1.5f) return 8;
  if (hypot(three, four) != 5 || hypotf(3 * g, 4 * g) != 10.0f) return 9;
  if (!std::isnan(fmod(x, 0 * y))) return 10;

  struct stat one {}, two {};
  struct stat64 large {};
  if (stat(".", &one) != 0 || lstat(".", &two) != 0 || one.st_ino != two.st_ino) return 11;
  if (stat64(".", &large) != 0 || large.st_ino != one.st_ino || !S_ISDIR(large.st_mode)) return 12;
  if (lstat64(".", &large) != 0 || large.st_ino != one.st_ino) return 13;
  if (fstatat64(AT_FDCWD, ".", &large, 0) != 0 || large.st_ino != one.st_ino) return 14;
  if (fstatat(AT_FDCWD, ".", &two, 0) != 0 || two.st_ino != one.st_ino) return 15;
  return stat("/no such folder/x", &one) == -1 ? 0 : 16;
}
"""


@of_builds_here
@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler")
def test_names_of_newer_versions_lead_to_older_ones(check_wheel, tmp_path):
    source, program = tmp_path / "newer.cpp", tmp_path / "newer"
    source.write_text(NEWER_NAMES)
    options = ["-std=c++20", "-O1", "-fno-builtin", "-ffunction-sections", "-Wl,--gc-sections"]
    command = ["c++", *options, source, OLD_GLIBC, "-o", program, "-ldl", "-lm"]
    subprocess.run(command, check=True, timeout=120)
    assert subprocess.run([program], timeout=60).returncode == 0
    newest = check_wheel.newest_glibc(program.read_bytes())
    assert check_wheel.numbers(newest) <= check_wheel.numbers("2.28"), newest
