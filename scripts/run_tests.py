"""Runs every suite and adds up: C++ unit tests through ctest, Python tests, lints, examples.

Ends with one line, "N passed, N failed". Exit code 1 when anything failed or a suite ran no test.
"""

import argparse
import concurrent.futures
import contextlib
import glob
import os
import re
import signal
import subprocess
import sys
import threading
import time

DOCTEST = re.compile(r"\[doctest\] test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed")
LIMIT = 1200  # seconds that one suite may take before it is killed, and counted as failed
PYTEST = re.compile(r"(\d+) (passed|failed|error|errors|xfailed|xpassed)\b")


def kill_group(process):
    """Ends a suite and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run(title, command, count, env=None, live=True):
    """Runs one suite, shows its output as it comes or at once, and returns (passed, failed)."""
    start = time.monotonic()
    lines = []
    shown = []
    show = (lambda text: print(text, end="", flush=True)) if live else shown.append
    show(f"== {title}: {' '.join(command)}\n")
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=env,
        start_new_session=True,
    ) as process:
        limit = threading.Timer(LIMIT, kill_group, (process,))
        limit.start()
        try:
            for line in process.stdout:
                lines.append(line)
                if "[doctest] run with" not in line:
                    show(line)
            process.wait()
        except BaseException:  # Ctrl-C does not reach a suite in a session of its own
            kill_group(process)
            raise
        finally:
            limit.cancel()
    passed, failed = count(lines)
    if process.returncode != 0 and failed == 0:
        show(f"{title}: exit code {process.returncode} with no failure counted\n")
        failed = 1
    if passed + failed == 0:
        show(f"{title}: ran no test\n")
        failed = 1
    show(f"== {title}: {passed} passed, {failed} failed in {time.monotonic() - start:.0f} s\n\n")
    print("".join(shown), end="", flush=True)
    return passed, failed


def count_doctest(lines):
    found = [DOCTEST.search(line) for line in lines]
    return sum(int(m[1]) for m in found if m), sum(int(m[2]) for m in found if m)


def count_pytest(lines):
    ours = [line for line in lines if not line.startswith("=========")]  # memcheck counts errors
    summary = next((line for line in reversed(ours) if PYTEST.search(line)), "")
    counts = {kind: int(number) for number, kind in PYTEST.findall(summary)}
    bad = sum(counts.get(kind, 0) for kind in ("failed", "error", "errors", "xpassed"))
    return counts.get("passed", 0), bad


# Compare what is free on the whole device before and after: no other suite may run beside them.
MEASURE_MEMORY = ("arrays", "exchange", "memory_large")

# Run children, which memcheck does not follow, or the simulated device alone, launch nothing, or
# measure time or allocations.
NOT_FOR_MEMCHECK = (
    *("checks", "checks_copies", "checks_corpus", "checks_debug", "checks_matrices"),
    *("checks_narrow", "checks_padding", "checks_places", "checks_report", "checks_schedules"),
    "checks_scopes",
    *("checks_shuffles", "checks_shuffles_random", "cli", "clusters"),
    *("compile_gate",),
    *("environment", "examples", "faults", "header_forms", "inline_ptx", "launch_allocations"),
    *("libcuda", "line_profile", "lint", "meetings", "package", "polling", "process"),
    *("recorded_captures", "sim_settings", "tensor_maps", "tiles", "timing", "tools", "trace"),
    *("two_compilers",),
    *("waiting_blocks", "wgmma", "wgmma_sparse"),
    *("cache_processes", "checks_edges", "checks_order", "cli_use", "host_code", "left_open"),
    *("libcuda_graphs", "libcuda_programs", "source_files"),
    *("background", "bench", "compile_workers", "headers", "worker_program"),
    *("judge", "judge_attacks", "judge_tasks", "judge_tools"),
    *("tune_cluster", "tune_command", "tune_kernel", "tune_panel", "tune_report", "tune_session"),
    *("tune_expressions", "tune_session_use", "tune_spaces", "tune_store", "tune_strategies"),
    *("tune_tolerances", "online", "online_shadow"),
)
# Whose kernels are right under every tool: the library's own, whole programs, every launch form.
# Not here: kernels with a mistake on purpose, copies of arrays that nobody wrote.
FOR_EVERY_TOOL = ("kernels", "whole_kernels", "launch", "graphs", "symbols", "tiles", "textures")
# Suites under a tool at a time, each with a context of its own.
SIDE_BY_SIDE = min(8, max(1, (os.cpu_count() or 1) // 4))


def python_file(name):
    return f"tests/python/test_{name}.py"


def sanitizer_suites(arguments, pytest):
    """The C++ and Python suites that launch kernels, again under compute-sanitizer's tools."""
    if not arguments.sanitizer:
        return []

    def under(tool):
        # Error codes of the driver are what many tests ask for; a tool looks at accesses here.
        options = ["--tool", tool, "--error-exitcode", "9", "--report-api-errors", "no"]
        return [arguments.sanitizer, *options]

    memcheck = under("memcheck")
    # A process that memcheck watches does not survive its own fork: at the child's exit() the tool
    # waits for a thread of its own that is the parent's.
    forking = "library thread*,process folder: exit*"
    suites = [
        (
            f"memcheck {room}",
            [*memcheck, f"{arguments.build}/tests/test_{room}", f"-tce={forking}"],
            count_doctest,
        )
        for room in ("core", "memory", "array", "jit", "kernels")
    ]
    # A process for each file: memcheck grows slower with every module that one has loaded.
    for path in sorted(glob.glob(python_file("*"))):
        name = os.path.basename(path)[len("test_") : -len(".py")]
        if name not in NOT_FOR_MEMCHECK:
            command = [*memcheck, *pytest, "-n", "0", "-k", "not fork", path]
            suites.append((f"memcheck Python {name}", command, count_pytest))
    for tool in ("racecheck", "initcheck", "synccheck"):
        unit = [*under(tool), f"{arguments.build}/tests/test_kernels"]
        suites.append((f"{tool} kernels of the library", unit, count_doctest))
        for name in FOR_EVERY_TOOL:
            command = [*under(tool), *pytest, "-n", "0", "-k", "not fork", python_file(name)]
            suites.append((f"{tool} Python {name}", command, count_pytest))
    return suites


def python_suites(gpu, jobs, pytest):
    """The Python tests; on a GPU those that measure its memory come after the others, alone."""
    if not gpu:
        return [("Python tests", [*pytest, "-n", jobs, "tests/python"], count_pytest)]
    alone = [python_file(name) for name in MEASURE_MEMORY]
    # A process for each has a context of its own: twelve take some 7 GB of the GPU's memory.
    beside = [*pytest, "-n", str(min(int(jobs), 12)), "--dist", "loadfile", "tests/python"]
    return [
        ("Python tests", beside + [f"--ignore={path}" for path in alone], count_pytest),
        ("Python tests of memory", [*pytest, "-n", "0", *alone], count_pytest),
    ]


def run_side_by_side(suites, env):
    """What run() returns for each suite; those that measure memory come first, one by one."""
    alone = [suite for suite in suites if suite[0].split()[-1] in MEASURE_MEMORY]
    totals = [run(*suite, env) for suite in alone]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        others = [suite for suite in suites if suite not in alone]
        return totals + list(pool.map(lambda suite: run(*suite, env, live=False), others))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="CMake build folder")
    parser.add_argument("--gpu", action="store_true", help="also what needs a GPU; no lints")
    parser.add_argument("--sanitizer", help="compute-sanitizer, run over the C++ tests")
    parser.add_argument(
        "--part",
        choices=("all", "suites", "sanitizer"),
        default="all",
        help="the suites, or what runs under the sanitizer: halves for a machine with a time limit",
    )
    arguments = parser.parse_args()
    jobs = str(os.cpu_count() or 1)
    python = sys.executable
    env = {**os.environ, "KERNWRIGHT_TEST_BUILD": os.path.abspath(arguments.build)}
    # The C++ suites take NVRTC from the packages of this Python.
    packages = [path for path in sys.path if glob.glob(f"{path}/nvidia/*/lib/libnvrtc.so*")]
    if packages:
        env["KERNWRIGHT_TEST_SITE_PACKAGES"] = packages[0]
    pytest = [python, "-m", "pytest", "-q"]
    ctest = ["ctest", "--test-dir", arguments.build]
    suites = [
        (
            "C++ tests",
            [*ctest, "-j", jobs, "--verbose"],
            count_doctest,
        ),
        *python_suites(arguments.gpu, jobs, pytest),
    ]
    if arguments.gpu:
        suites.append(("both devices", [*pytest, "tests/gpu"], count_pytest))
    else:
        suites.insert(0, ("lints", [*pytest, "tests/lint"], count_pytest))
    totals = []
    if arguments.part != "sanitizer":
        totals += [run(*suite, env) for suite in suites]
    if arguments.part != "suites":
        totals += run_side_by_side(sanitizer_suites(arguments, pytest), env)
    passed, failed = (sum(column) for column in zip((0, 0), *totals, strict=True))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
