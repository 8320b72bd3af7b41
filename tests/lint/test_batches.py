"""What `pip install .` compiles is what the tests are built from, batch by batch.

CMake compiles the sources of a target in batches. Two sources may use one name for two things as
long as they never meet in a batch, so a batch that only one of the builds has is never compiled by
the other.
"""

import subprocess
import sys

OPTIONS = ("PYTHON", "TESTS", "EXAMPLES", "BENCH")


def batches(root, folder, on):
    """The text of each batch of sources, by its path in the build folder."""
    options = [f"-DKERNWRIGHT_BUILD_{name}={'ON' if name in on else 'OFF'}" for name in OPTIONS]
    command = ["cmake", "-S", str(root), "-B", str(folder), "-G", "Ninja", *options]
    command += ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    found = sorted(folder.glob("**/Unity/*.cxx"))
    return {path.relative_to(folder): path.read_text(encoding="utf-8") for path in found}


def test_the_installed_package_has_the_batches_of_the_tested_build(root, tmp_path):
    installed = batches(root, tmp_path / "installed", {"PYTHON"})
    tested = batches(root, tmp_path / "tested", set(OPTIONS))
    assert len(installed) > 20
    different = [str(path) for path, text in installed.items() if tested.get(path) != text]
    assert different == []
