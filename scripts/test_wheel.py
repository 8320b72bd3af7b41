"""Installs a wheel into an empty environment with pip alone and runs the README's example there.

Usage: python scripts/test_wheel.py WHEEL-OR-FOLDER. This Python makes the environment; NVRTC and
NumPy come from the package index as the wheel's own dependencies. No toolkit is used: the test
fails if NVRTC was loaded from outside the environment. Ends with "N passed, N failed". Without a
package index it says so and fails.
"""

import glob
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HIDDEN = ("CUDA_PATH", "CUDA_HOME", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
WHERE = """
import sys
from kernwright import _core
status = _core.nvrtc_status()
print(status["path"] or status["error"])
assert status["found"] and status["path"].startswith(sys.prefix), status
libraries = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
strange = [name for name in libraries if "cudart" in name or "cublas" in name or "libfmt" in name]
assert not strange, strange
"""


def readme_example():
    """The first Python block of README.md as a reader pastes it, and what it must print."""
    found = re.search(
        r"^```python\n(.*?)^```\n\n```output\n(.*?)^```", (ROOT / "README.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    return found[1], found[2].strip()


class Environment:
    """An empty virtual environment. Commands run in it from a folder outside the sources."""

    def __init__(self, folder):
        self.folder = folder
        self.python = os.path.join(folder, "venv", "bin", "python")
        self.variables = {k: v for k, v in os.environ.items() if k not in HIDDEN}
        self.variables["KERNWRIGHT_DEVICE"] = "sim"
        self.variables["KERNWRIGHT_CACHE_DIR"] = os.path.join(folder, "cache")
        self.run(sys.executable, "-m", "venv", os.path.join(folder, "venv"))

    def run(self, *command, timeout=600):
        result = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        if result.returncode != 0:
            what = f"{' '.join(command[:4])}: exit code {result.returncode}"
            raise RuntimeError(f"{what}\n{result.stdout}")
        return result.stdout.strip()

    def install(self, wheel):
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        try:
            return self.run(*pip, wheel)
        except RuntimeError as error:
            if "No matching distribution" in str(error) or "ConnectionError" in str(error):
                raise RuntimeError(
                    "the package index cannot be reached, so NVRTC and NumPy cannot be installed "
                    f"into an empty environment: this test needs a network\n{error}"
                ) from error
            raise

    def script(self, name, text):
        path = os.path.join(self.folder, name)
        pathlib.Path(path).write_text(text)
        return self.run(self.python, path)


def find_wheel(place):
    if place.endswith(".whl"):
        return os.path.abspath(place)
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    tag = f"{version}-{version}{threads}"
    wheels = glob.glob(os.path.join(place, f"kernwright-*-{tag}-manylinux*.whl"))
    if not wheels:
        sys.exit(f"there is no manylinux wheel for this Python in {place}: make wheel")
    return os.path.abspath(max(wheels, key=os.path.getmtime))


def run_example(environment):
    """Runs the README's example. Raises RuntimeError where it prints something else."""
    code, expected = readme_example()
    printed = environment.script("example.py", code)
    if expected not in printed:
        raise RuntimeError(f"the README's example printed\n{printed}\ninstead of\n{expected}")
    return printed


def steps(environment, wheel):
    script = environment.script
    kernwright = os.path.join(environment.folder, "venv", "bin", "kernwright")
    yield "the wheel installs with pip alone", lambda: environment.install(wheel)
    yield "only the package's NVRTC is loaded", lambda: script("where.py", WHERE)
    yield "the README's example", lambda: run_example(environment)
    yield "doctor", lambda: environment.run(kernwright, "doctor")
    picture = os.path.join(environment.folder, "demo.png")
    yield (
        "demo, without further packages",
        lambda: environment.run(kernwright, "demo", "-o", picture),
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wheel = find_wheel(sys.argv[1])
    print(f"testing {wheel}")
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="kernwright-wheel-") as folder:
        for title, step in steps(Environment(os.path.realpath(folder)), wheel):
            try:
                output = step()
            except RuntimeError as error:
                print(f"FAILED {title}: {error}")
                failed += 1
                break
            passed += 1
            print(f"passed {title}" + "".join(f"\n    {line}" for line in output.splitlines()))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
