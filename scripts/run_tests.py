"""Runs every suite and adds up: C++ unit tests through ctest, Python tests, lints, examples.

Ends with one line, "N passed, N failed". Exit code 1 when a test failed or a suite ran no test. No
suite has a limit of time; each test has one, and the test that passes it is named (pyproject.toml,
tests/unit/main.cpp). Compiled kernels stay in build/test-cache for the next run, the bytecode of
Python's modules in build/test-bytecode.
"""

import argparse
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tests/python"))
import at_9_0
import changed_suites
import kept_cache
import suite_runs

PLUGINS = os.path.dirname(os.path.abspath(kept_cache.__file__))
DOCTEST = re.compile(r"\[doctest\] test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed")
# The frames of simulated blocks are large and short-lived. glibc would give their memory back each
# time, and a quarter of the CPU time of tests of language models would go into page faults.
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 35), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
NEWER = "9.0"  # the other capability of the simulated device
PERIOD = 60  # seconds between two lines of progress
HANG_LIMIT = 900  # seconds; the first limit of a test is 600 (pyproject.toml)
PYTEST = re.compile(r"(\d+) (passed|failed|error|errors|xfailed|xpassed)\b")


def count_doctest(lines):
    found = [DOCTEST.search(line) for line in lines]
    return sum(int(m[1]) for m in found if m), sum(int(m[2]) for m in found if m)


def count_pytest(lines):
    ours = [line for line in lines if not line.startswith("=========")]  # memcheck counts errors
    summary = next((line for line in reversed(ours) if PYTEST.search(line)), "")
    counts = {kind: int(number) for number, kind in PYTEST.findall(summary)}
    bad = sum(counts.get(kind, 0) for kind in ("failed", "error", "errors", "xpassed"))
    return counts.get("passed", 0), bad


# These compare the device's free memory before and after: no other suite may run at that time.
MEASURE_MEMORY = ("arrays", "exchange", "memory_large")

# These run child processes (memcheck does not follow them), use only the simulated device, launch
# nothing, or measure time or allocations.
NOT_FOR_MEMCHECK = (
    *("checks", "checks_copies", "checks_corpus", "checks_debug", "checks_matrices"),
    *("checks_narrow", "checks_padding", "checks_places", "checks_report", "checks_schedules"),
    "checks_scopes",
    *("checks_shuffles", "checks_shuffles_random", "cli", "clusters"),
    *("compile_and_pack", "compile_gate"),
    *("environment", "examples", "faults", "header_forms", "inline_ptx", "launch_allocations"),
    *("libcuda", "line_profile", "lint", "meetings", "package", "polling", "process"),
    *("recorded_captures", "sim_settings", "tensor_maps", "tiles", "timing", "trace"),
    *("two_compilers",),
    *("waiting_blocks", "wgmma", "wgmma_sparse"),
    *("cache_processes", "checks_edges", "checks_order", "cli_use", "host_code", "left_open"),
    *("libcuda_graphs", "libcuda_programs", "source_files"),
    *("background", "bench", "compile_workers", "headers", "worker_program"),
    *("logging", "report_pages", "site", "wheel_versions"),
    *("judge", "judge_attacks", "judge_launches", "judge_tasks", "judge_tools"),
    *("tune_cluster", "tune_command", "tune_kernel", "tune_panel", "tune_report", "tune_session"),
    *("tune_expressions", "tune_session_use", "tune_spaces", "tune_store", "tune_strategies"),
    *("tune_tolerances", "online", "online_shadow"),
    # every_operation calls these kernels at small sizes; all their instances would take too long.
    *("activations", "elementwise", "embedding", "fft", "fuse", "indexing", "linear", "losses"),
    *("makers", "manipulation", "norms", "operators", "optim", "promotion", "quantize_rows"),
    *("random", "reductions", "rope", "sampling", "scans", "softmax", "sorting", "topk"),
    *("transpose", "unique", "packed_weights"),
    *("attention", "attention_backward", "decode_attention", "gemm", "gemv", "linalg_solvers"),
    *("launch_choices", "library_warmup", "torch_models", "torch_ops", "tour", "bench_table"),
    # These calls are refused before a launch, or use only the simulated device.
    "bad_operations",
    "every_operation_checked",
)
# These must be correct under every tool: the library's kernels, whole programs, all kinds of
# launches. Suites with deliberate mistakes or with copies of unwritten arrays stay out.
# every_operation runs under every tool too, by groups.
FOR_EVERY_TOOL = ("kernels", "whole_kernels", "launch", "graphs", "symbols", "tiles", "textures")
# The number of suites that run under a tool at a time, each with its own context.
SIDE_BY_SIDE = min(16, max(1, (os.cpu_count() or 1) // 2))
# These start many processes on the GPU and end them after seconds without an answer. Too many of
# these suites at once slow the GPU until such limits pass.
MANY_PROCESSES = (
    *("judge", "judge_attacks", "judge_contract", "judge_launches", "judge_shapes", "judge_tasks"),
    "judge_tools",
    *("online", "online_shadow"),
    *("tune_accuracy", "tune_ask_tell", "tune_calls", "tune_command", "tune_kernel"),
    *("tune_objectives", "tune_observers", "tune_own_strategies", "tune_panel", "tune_resume"),
    *("tune_sensors", "tune_session", "tune_session_use", "tuned"),
)
# Stands for every kernel of the library; each group of its table has its own process. A direct
# call and a replayed graph make the same accesses, so only memcheck runs both.
EVERY_OPERATION = "every_operation"
GROUP = re.compile(r'^\w+ = Table\("(\w+)"\)', re.MULTILINE)

# The parts of --part: all, the halves and the quarters.
PARTS = {
    "all": ("cpp", "python", "memcheck", "tools"),
    "suites": ("cpp", "python"),
    "sanitizer": ("memcheck", "tools"),
    **{part: (part,) for part in ("cpp", "python", "memcheck", "tools")},
}


def python_file(name):
    return f"tests/python/test_{name}.py"


def operation_suites(under, tool, pytest):
    """The table of every operation under a tool, by groups."""
    groups = []
    for path in sorted(glob.glob("tests/python/operations_*.py")):
        with open(path, encoding="utf-8") as table:
            groups += GROUP.findall(table.read())
    tests = "(twice or replay)" if tool == "memcheck" else "twice"
    if tool == "initcheck":
        tests += " and not tiles"  # the tool does not see writes through tensor maps
    wanted = {group: f"[{group}- and {tests}" for group in groups}
    wanted["others"] = " and ".join(f"not [{group}-" for group in groups)
    for group, which in wanted.items():
        command = [*under(tool), *pytest, "-n", "0", "-k", which, python_file(EVERY_OPERATION)]
        yield (f"{tool} Python {EVERY_OPERATION} {group}", command, count_pytest)


def under_tool(arguments):
    """A function that returns the command prefix for a tool."""

    def under(tool):
        # Many tests provoke driver errors on purpose; here the tool checks only accesses.
        options = ["--tool", tool, "--error-exitcode", "9", "--report-api-errors", "no"]
        return [arguments.sanitizer, *options]

    return under


def memcheck_suites(arguments, pytest):
    """The C++ and Python suites with kernel launches, under memcheck."""
    under = under_tool(arguments)
    memcheck = under("memcheck")
    # A forked child of a process under memcheck hangs: at its exit() the tool waits for one of its
    # own threads, and only the parent has that thread.
    forking = "library thread*,process folder: exit*"
    suites = [
        (
            f"memcheck {module}",
            [*memcheck, f"{arguments.build}/tests/test_{module}", f"-tce={forking}"],
            count_doctest,
        )
        for module in ("core", "memory", "array", "jit", "kernels")
    ]
    # Each file has its own process, because memcheck slows down with every loaded module.
    for path in sorted(glob.glob(python_file("*"))):
        name = os.path.basename(path)[len("test_") : -len(".py")]
        if name == EVERY_OPERATION:
            suites += operation_suites(under, "memcheck", pytest)
        elif name not in NOT_FOR_MEMCHECK:
            command = [*memcheck, *pytest, "-n", "0", "-k", "not fork", path]
            suites.append((f"memcheck Python {name}", command, count_pytest))
    return suites


def tool_suites(arguments, pytest):
    """The suites for every tool, under each tool but memcheck."""
    under = under_tool(arguments)
    suites = []
    for tool in ("racecheck", "initcheck", "synccheck"):
        unit = [*under(tool), f"{arguments.build}/tests/test_kernels"]
        suites.append((f"{tool} kernels of the library", unit, count_doctest))
        suites += operation_suites(under, tool, pytest)
        for name in FOR_EVERY_TOOL:
            command = [*under(tool), *pytest, "-n", "0", "-k", "not fork", python_file(name)]
            suites.append((f"{tool} Python {name}", command, count_pytest))
    return suites


def cpp_suites(arguments, jobs, pytest, files):
    """The C++ tests; on a GPU the memory and device comparison tests run alone."""
    ctest = ["ctest", "--test-dir", arguments.build, "-j", jobs, "--verbose"]
    suites = [("C++ tests", ctest, count_doctest)]
    if files is not None:
        pattern = changed_suites.cpp_suites(files)
        suites = [("C++ tests", [*ctest, "-R", pattern], count_doctest)] if pattern else []
    if arguments.gpu:
        alone = [python_file(name) for name in MEASURE_MEMORY]
        suites.append(("Python tests of memory", [*pytest, "-n", "0", *alone], count_pytest))
        suites.append(("both devices", [*pytest, "tests/gpu"], count_pytest))
    return suites


def python_suites(jobs, pytest, files):
    """The Python tests and the lints, without a GPU."""
    tests = ["tests/python"] if files is None else changed_suites.python_tests(".", files)
    parallel = [*pytest, "-n", jobs, "--dist", "worksteal"]
    return [("Python tests and lints", [*parallel, "tests/lint", *tests], count_pytest)]


def newer_suites(jobs, pytest, files):
    """The Python tests that a simulated device of 9.0 repeats."""
    tests = ["tests/python"] if files is None else changed_suites.python_tests(".", files)
    repeated = [path for path in at_9_0.files() if set(tests) & {"tests/python", path}]
    apart = ["-p", "no:cacheprovider", "-p", "at_9_0"]  # the cache is that of the suite beside it
    newer = [*pytest, "-n", jobs, "--dist", "worksteal", *apart, *repeated]
    return [(f"Python tests at {NEWER}", newer, count_pytest)] if repeated else []


def gpu_suites(jobs, pytest):
    """The Python tests on a GPU."""
    # Each process has a context of 16 connections, 0.6 GB. An H200 has room for 27, and some tests
    # start processes of their own.
    beside = [*pytest, "-n", str(min(int(jobs), 16)), "--dist", "worksteal", "tests/python"]
    others = [f"--ignore={python_file(name)}" for name in (*MEASURE_MEMORY, *MANY_PROCESSES)]
    few = [*pytest, "-n", str(min(int(jobs), 8)), "--dist", "worksteal"]
    few += [python_file(name) for name in MANY_PROCESSES]
    return [
        ("Python tests", beside + others, count_pytest),
        ("Python tests of workers", few, count_pytest),
    ]


def suite_rows(arguments, pytest, files, env):
    """The C++ and Python suites of --part as suite_runs.run_rows takes them.

    On a GPU one after the other. Else the C++ tests and those at 9.0 run beside the other Python
    tests on half as many processes: many tests wait, for children, clients, limits of time.
    """
    parts = PARTS[arguments.part]
    jobs = os.cpu_count() or 1
    every_job, half = str(jobs), str(max(1, jobs // 2))
    if arguments.gpu:
        suites = cpp_suites(arguments, every_job, pytest, files) if "cpp" in parts else []
        suites += gpu_suites(every_job, pytest) if "python" in parts else []
        return [[(suite, env) for suite in suites]]
    first, second = [], []
    if "cpp" in parts:
        alone = "python" not in parts
        tests = cpp_suites(arguments, every_job if alone else half, pytest, files)
        second += [(suite, env) for suite in tests]
    if "python" in parts:
        first += [(suite, env) for suite in python_suites(every_job, pytest, files)]
        newer = {**env, "KERNWRIGHT_SIM_CAPABILITY": NEWER}
        second += [(suite, newer) for suite in newer_suites(half, pytest, files)]
    return [row for row in (first, second) if row]


def run_side_by_side(suites, env):
    """The results of the suites; those that measure memory come first, one by one."""
    alone = [suite for suite in suites if suite[0].split()[-1] in MEASURE_MEMORY]
    others = [[(suite, env)] for suite in suites if suite not in alone]
    totals = suite_runs.run_rows([[(suite, env) for suite in alone]])
    return totals + suite_runs.run_rows(others, SIDE_BY_SIDE, live=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="CMake build folder")
    parser.add_argument("--gpu", action="store_true", help="also what needs a GPU; no lints")
    parser.add_argument("--sanitizer", help="compute-sanitizer, run over the C++ tests")
    parser.add_argument(
        "--part",
        choices=tuple(PARTS),
        default="all",
        help="for a machine with a time limit: the suites (cpp and python), or what runs under the "
        "sanitizer (memcheck and tools)",
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="of what runs under the sanitizer the suites whose name matches, as "
        '"Python (losses|norms)$"',
    )
    parser.add_argument(
        "--changed",
        nargs="?",
        const="main",
        metavar="REVISION",
        help="only suites that the difference from this revision (main) may concern, and the lints",
    )
    arguments = parser.parse_args()
    files = None
    if arguments.changed:
        try:
            files = changed_suites.changed_files(".", arguments.changed)
        except ValueError as error:
            parser.error(str(error))
        print(f"{len(files)} files differ from {arguments.changed}")
    python = sys.executable
    env = {**os.environ, "KERNWRIGHT_TEST_BUILD": os.path.abspath(arguments.build)}
    # The C++ suites take NVRTC from the packages of this Python.
    packages = [path for path in sys.path if glob.glob(f"{path}/nvidia/*/lib/libnvrtc.so*")]
    if packages:
        env["KERNWRIGHT_TEST_SITE_PACKAGES"] = packages[0]
    kept_cache.keep_bytecode(env)
    if not arguments.gpu:
        kept_cache.remove_old()
        print(f"compiled kernels are kept in {kept_cache.use(env)}")
        env[at_9_0.APART] = "1"
        # The threads of NumPy's products turn in a loop for a while after each product, in every
        # process that imports NumPy, beside the tests on all processors.
        env.setdefault("OPENBLAS_NUM_THREADS", "1")
        env = {**KEPT_MEMORY, **env}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [PLUGINS, env.get("PYTHONPATH")]))
    pytest = [python, "-m", "pytest", "-q", "-p", "suite_progress", f"--progress={PERIOD}"]
    pytest += ["-p", "hang_limit", f"--hang-limit={HANG_LIMIT}", "-o", "faulthandler_timeout=0"]
    parts = PARTS[arguments.part]
    totals = suite_runs.run_rows(suite_rows(arguments, pytest, files, env))
    if arguments.sanitizer:
        suites = memcheck_suites(arguments, pytest) if "memcheck" in parts else []
        suites += tool_suites(arguments, pytest) if "tools" in parts else []
        wanted = [suite for suite in suites if re.search(arguments.only, suite[0])]
        totals += run_side_by_side(wanted, env)
    passed, failed = (sum(column) for column in zip((0, 0), *totals, strict=True))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
