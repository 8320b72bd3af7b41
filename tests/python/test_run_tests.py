"""The command behind `make test`: what a change concerns, what is kept, what names a hung test."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time
import types

import at_9_0
import hang_limit
import kept_cache
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../scripts"))

import changed_suites
import suite_runs

ROOT = kept_cache.ROOT


def git(folder, *arguments):
    names = ["-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run(["git", "-C", str(folder), *names, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("kept.txt", "jit/program.cpp", "tune/space.cpp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Begin")
    return tmp_path


def test_changes_since_a_branch_began(repository):
    assert changed_suites.changed_files(repository, "main") == []
    git(repository, "checkout", "-q", "-b", "work")
    (repository / "jit/program.cpp").write_text("2\n")
    git(repository, "commit", "-q", "-a", "-m", "Change")
    (repository / "tune/space.cpp").write_text("2\n")
    (repository / "new.md").write_text("2\n")
    # A commit on main afterwards is no change of the branch.
    found = ["jit/program.cpp", "new.md", "tune/space.cpp"]
    assert changed_suites.changed_files(repository, "main") == found
    assert changed_suites.changed_files(repository, "HEAD") == ["new.md", "tune/space.cpp"]
    with pytest.raises(ValueError, match="--changed nothing: git merge-base"):
        changed_suites.changed_files(repository, "nothing")


def concerned(path):
    """The C++ suites of a change, of those that ctest knows."""
    names = [*changed_suites.MODULES.values(), *changed_suites.ACROSS]
    names += ["core_CAPABILITY=9.0", "sim_kernels", "sim_probe"]
    pattern = changed_suites.cpp_suites([path])
    return {name for name in names if pattern and re.search(pattern, name)}


def test_a_change_of_a_module_concerns_those_above_it():
    assert {"array", "jit", "kernels"} <= concerned("runtime/array/shape.h")
    assert not {"base", "memory", "sim_kernels"} & concerned("runtime/array/shape.h")
    assert {"core", "core_CAPABILITY=9.0", "sim_probe"} <= concerned("runtime/sim/device.h")
    assert concerned("tests/unit/core/stream_test.cpp") == {"core", "core_CAPABILITY=9.0"}
    assert concerned("tests/fault/sticky_test.cpp") == {"fault", "host_memory"}
    assert concerned("docs/faults.md") == concerned("jit/README.md") == set()
    assert "base" in concerned("cmake/Module.cmake")


def python_tests(*paths):
    found = changed_suites.python_tests(ROOT, paths)
    return {pathlib.Path(path).stem.removeprefix("test_") for path in found}


def test_a_change_concerns_the_test_files_that_use_it():
    assert python_tests("tests/python/test_softmax.py") == {"softmax"}
    assert {"process", "cli"} <= python_tests("tests/python/children.py")
    assert "softmax" not in python_tests("tests/python/children.py")
    losses = python_tests("bindings/python/kernwright/nn/_losses/_pairs.py")
    assert {"losses", "docstrings", "every_operation"} <= losses
    assert "sorting" not in losses
    draws = python_tests("bindings/python/kernwright/random/_vectors.py")
    assert {"distributions", "every_operation"} <= draws
    assert "checks_corpus" in python_tests("tests/sim/bugs/any.cu")
    assert python_tests("tests/unit/jit/program_test.cpp") == python_tests() == set()
    every = {path.stem.removeprefix("test_") for path in (ROOT / "tests/python").glob("test_*.py")}
    assert python_tests("kernels_src/softmax/softmax.cu") == every
    assert python_tests("pyproject.toml") == python_tests("tests/python/conftest.py") == every


def test_files_that_are_repeated_at_9_0():
    names = {pathlib.Path(path).stem.removeprefix("test_") for path in at_9_0.files()}
    assert {"gemm", "hopper_decode", "decode_attention", *at_9_0.WORDS} <= names
    assert "softmax" not in names
    assert all((ROOT / path).exists() for path in at_9_0.files())


def test_the_kept_cache_belongs_to_the_code_that_compiles(tmp_path):
    for name in ("jit/a.cpp", "runtime/base/b.h", "kernels_src/c.cpp", "jit/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    first = kept_cache.compiler_hash(tmp_path)
    (tmp_path / "kernels_src/c.cpp").write_text("2")  # its kernels' texts are in each entry's key
    (tmp_path / "jit/README.md").write_text("2")
    assert kept_cache.compiler_hash(tmp_path) == first
    (tmp_path / "jit/a.cpp").write_text("2")
    second = kept_cache.compiler_hash(tmp_path)
    (tmp_path / "jit/a.cpp").rename(tmp_path / "jit/b.cpp")
    assert len({first, second, kept_cache.compiler_hash(tmp_path)}) == 3


def test_processes_share_bytecode_whatever_the_environment_says(tmp_path):
    (tmp_path / "imported.py").write_text("value = 3")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tmp_path)}
    environment.pop("PYTHONPYCACHEPREFIX", None)
    folder = kept_cache.keep_bytecode(environment, tmp_path / "build")
    program = "import imported; print(imported.__cached__)"
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    bytecode = pathlib.Path(said.stdout.strip())
    assert bytecode.is_relative_to(folder) and bytecode.exists()
    assert not (tmp_path / "__pycache__").exists()
    given = {"PYTHONPYCACHEPREFIX": "/elsewhere"}
    assert kept_cache.keep_bytecode(given, tmp_path) == pathlib.Path("/elsewhere")


def test_the_kept_cache_is_one_folder_of_the_build(tmp_path):
    environment = {}
    folder = kept_cache.use(environment, tmp_path)
    assert folder.parent == tmp_path / "test-cache" and folder.is_dir()
    assert environment["KERNWRIGHT_CACHE_DIR"] == str(folder)
    given = {"KERNWRIGHT_CACHE_DIR": "/elsewhere"}
    assert kept_cache.use(given, tmp_path) == pathlib.Path("/elsewhere")
    assert given == {"KERNWRIGHT_CACHE_DIR": "/elsewhere"}
    for i in range(kept_cache.KEPT_FOLDERS):
        (folder.parent / f"old{i}").mkdir()
        os.utime(folder.parent / f"old{i}", (i, i))
    kept_cache.remove_old(tmp_path)
    names = {path.name for path in folder.parent.iterdir()}
    assert names == {folder.name, *(f"old{i}" for i in range(1, kept_cache.KEPT_FOLDERS))}


def run_pytest(folder, text, *arguments):
    (folder / "test_it.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", "-p", "pytest_timeout"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests/python")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [*command, "-p", "suite_progress", "--progress=0.2", "--rootdir=.", *arguments, "."],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout


SLOW = """
import os, time
def test_quick(): pass
def test_slow(): time.sleep(1.5)
"""


def test_progress_names_what_runs_and_what_was_slow(tmp_path):
    for arguments in ((), ("-n", "1")):
        told = run_pytest(tmp_path, SLOW, *arguments)
        line = (
            r"50 %: 1 of 2 tests, 0 failed, [\d.]+ s; running: test_it.py::test_slow \([\d.]+ s\)"
        )
        assert re.search(line, told)
        assert re.search(r"slowest 2 tests =+\n +1\.\d+ s  test_it.py::test_slow\n", told)
        assert "2 passed" in told


def test_a_killed_worker_names_its_test(tmp_path):
    text = SLOW + "def test_dies(): os.kill(os.getpid(), 9)\ndef test_after(): pass\n"
    told = run_pytest(tmp_path, text, "-n", "1")
    assert "crashed while running 'test_it.py::test_dies'" in told
    assert "1 failed, 3 passed" in told


# A signal cannot end it: as native code that waits for ever.
HANGS = """
import signal, threading, time
def test_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Lock().acquire() or time.sleep(100)
    time.sleep(100)
"""


def test_a_hanging_test_is_named(tmp_path):
    quick = "import time\ndef test_hangs(): time.sleep(100)\n"
    told = run_pytest(tmp_path, quick, "-n", "1", "--timeout=1")
    assert "test_it.py::test_hangs" in told and "Timeout" in told
    limits = ("-o", "faulthandler_timeout=1", "-o", "faulthandler_exit_on_timeout=true")
    for limit in (limits, ("-p", "hang_limit", "--hang-limit=1")):
        told = run_pytest(tmp_path, HANGS, "-n", "1", "--timeout=60", *limit)
        assert "crashed while running 'test_it.py::test_hangs'" in told


def test_tests_that_follow_each_other_share_a_watch(monkeypatch):
    begun, now = [], [0.0]
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda *a, **k: begun.append(now[0]))
    monkeypatch.setattr("faulthandler.cancel_dump_traceback_later", lambda: None)
    config = types.SimpleNamespace(getoption=lambda name: 900.0)
    watch = hang_limit.HangLimit(config, lambda: now[0])
    for now[0] in (0.0, 1.0, 60.0, 61.0, 100.0, 125.0):
        next(watch.pytest_runtest_protocol())
    watch.pytest_exception_interact()  # a debugger may follow
    now[0] = 126.0
    next(watch.pytest_runtest_protocol())
    os.close(watch.output)
    assert begun == [0.0, 61.0, 125.0, 126.0]


def suite(title, program):
    """A suite whose output is counted by its lines: those of a test that passed say "ok"."""
    return title, ["sh", "-c", program], lambda lines: (lines.count("ok\n"), lines.count("bad\n"))


def test_rows_of_suites_run_beside_each_other(tmp_path, capfd):
    # Either row waits for what the other one does.
    waits = "until [ -e {} ]; do sleep 0.01; done"
    first = f"touch {tmp_path}/a; {waits.format(tmp_path / 'b')}; echo ok"
    second = f"{waits.format(tmp_path / 'a')}; touch {tmp_path}/b; echo ok; echo bad"
    value = f"[ $VALUE = {os.getpid()} ] && echo ok"
    env = {**os.environ, "VALUE": str(os.getpid())}
    rows = [[(suite("one", first), None)]]
    rows += [[(suite("two", second), None), (suite("three", value), env)]]
    assert suite_runs.run_rows(rows) == [(1, 0), (1, 1), (1, 0)]
    said = capfd.readouterr().out
    assert "== two: 1 passed, 1 failed in" in said
    assert said.index("== one: sh") < said.index("== three: sh")
    assert suite_runs.run_rows([]) == suite_runs.run_rows([[]]) == []


def test_suites_that_end_without_a_count_have_failed(capfd):
    ends = [suite("silent", "true"), suite("dies", "echo ok; kill -9 $$")]
    row = [(one, None) for one in ends]
    assert suite_runs.run_rows([row], live=False) == [(0, 1), (1, 1)]
    said = capfd.readouterr().out
    assert "silent: ran no test" in said and "dies: killed by SIGKILL" in said


def test_a_program_that_is_missing_ends_all_rows(tmp_path):
    waits = f"sleep 60; touch {tmp_path}/ended"
    rows = [[(suite("long", waits), None)], [(("none", ["no-such-program"], len), None)]]
    with pytest.raises(FileNotFoundError):
        suite_runs.run_rows(rows, live=False)
    assert not (tmp_path / "ended").exists()


# A run in the background of a shell ignores it, and hands that on.
INTERRUPTIBLE = "signal.signal(signal.SIGINT, signal.default_int_handler)"


def test_an_interrupt_ends_the_suites_of_all_rows(tmp_path):
    """Those that run are killed with their children; those that would follow do not begin."""
    program = """
        import sys; sys.path[:0] = [{scripts!r}]
        import suite_runs
        count = lambda lines: (1, 0)
        def suite(name):
            program = "sleep 100 & touch " + name + "; echo $!; wait; touch " + name + ".after"
            return name, ["sh", "-c", program], count
        suite_runs.run_rows([[(suite("a"), None)], [(suite("b"), None), (suite("c"), None)]])
    """
    program = textwrap.dedent(program).format(scripts=str(ROOT / "scripts"))
    command = [sys.executable, "-c", f"import signal\n{INTERRUPTIBLE}\n{program}"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        while not all((tmp_path / name).exists() for name in "ab"):
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in run.communicate(timeout=60)[1]
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
