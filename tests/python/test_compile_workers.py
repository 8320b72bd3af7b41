"""Compiles in processes of their own: their failures, and compiles without such processes."""

import os
import time

import pytest
from compile_children import child, run_child


def test_what_nvrtc_does_not_stop_is_stopped_and_keeps_no_other_compile_waiting():
    out = run_child(
        """
    (first,) = workers()
    try:
        unending.compile(timeout=0.3)
    except kw.Timeout:
        print("timeout")
    print(at_rest(), first in workers())
    check(1)
    bomb = unending.compile_async()
    time.sleep(0.5)
    waiting = [kw.kernel(f"__global__ void w() {{}} // {i}").compile_async() for i in range(2)]
    for w in waiting:
        w.result(timeout=100)
    print(bomb.done(), bomb.cancel(), at_rest())
    check(2)
    """
    )
    assert out == ["timeout", "True", "False", "False", "True", "True"]


def test_the_compiler_is_not_in_this_process_and_its_folder_goes_away(tmp_path):
    out = run_child(
        f"""
    os.environ["TMPDIR"] = {str(tmp_path)!r}
    (old,) = workers()
    os.kill(old, signal.SIGKILL)
    text = "#include <cuda_fp16.h>\\n__global__ void h(__half* x) {{}} //"
    for i in range(3):  # the second makes a precompiled header
        kw.kernel(text + str(i)).compile()
    print("libnvrtc" in open("/proc/self/maps").read(), len(os.listdir({str(tmp_path)!r})))
    """
    )
    assert out == ["False", "1"]
    assert os.listdir(tmp_path) == []


def test_a_worker_that_somebody_kills_is_replaced():
    out = run_child(
        """
    for i in range(3):
        (worker,) = workers()
        os.kill(worker, signal.SIGKILL)
        check(i)
        print(worker in workers())
    bomb = unending.compile_async()
    killed = [worker]
    for i in range(2):  # it is begun once more, and then blamed
        busy = []
        while not busy:
            time.sleep(0.02)
            busy = [pid for pid, ticks in workers().items() if ticks > 30 and pid not in killed]
        killed.append(busy[0])
        os.kill(busy[0], signal.SIGKILL)
    try:
        bomb.result(timeout=60)
    except kw.CompileError as error:
        print("signal 9" in str(error))
    """
    )
    assert out == ["False", "False", "False", "True"]


def test_a_program_that_closes_all_descriptors_compiles_on():
    out = run_child(
        """
    (old,) = workers()
    os.closerange(3, 256)
    check(1)
    print(old in workers(), len(workers()))
    """,
        KERNWRIGHT_DEVICE="sim",  # a GPU's driver needs its own
    )
    assert out == ["False", "1"]


def test_another_nvrtc_in_the_place_of_the_old_one_compiles_from_then_on(tmp_path):
    with child(
        f"""
    import shutil
    from pathlib import Path
    status = kw._core.nvrtc_status()
    library, builtins = Path(status["path"]), Path(status["builtins"])
    folder = Path({str(tmp_path)!r})

    def install():
        for file in (library, builtins):
            shutil.copy(file, folder / "new")
            os.replace(folder / "new", folder / file.name)

    install()
    os.environ["KERNWRIGHT_NVRTC"] = str(folder / library.name)
    before = 0
    for i in range(3):
        x = kw.zeros(1, dtype="int32")
        kw.kernel(f"__global__ void k(int* x) {{{{ *x = {{i}}; }}}}")[1, 1](x)
        assert x.item() == i
        (worker,) = workers()
        print(worker == before)
        before = worker
        if i == 1:
            install()
    """,
        KERNWRIGHT_CACHE="disk",
        KERNWRIGHT_CACHE_DIR=str(tmp_path / "cache"),
    ) as process:
        out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, "")
    assert out.split() == ["False", "True", "False"]


def test_workers_end_with_a_parent_that_is_killed():
    process = child(
        """
    bombs = [kw.kernel(BOMB + f"// {i}", defines={"DEPTH": 17}).compile_async() for i in range(2)]
    end = time.monotonic() + 60
    while len(found := workers()) < 2:
        time.sleep(0.01)
        assert time.monotonic() < end, ([bomb.done() for bomb in bombs], found)
    print(*found, flush=True)
    time.sleep(100)
    """
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    _, err = process.communicate()
    end = time.monotonic() + 10
    while time.monotonic() < end and any(os.path.exists(f"/proc/{pid}/cwd") for pid in pids):
        time.sleep(0.01)
    assert len(pids) == 2, err
    for pid in pids:  # gone, or waiting for a parent to collect them
        try:
            with open(f"/proc/{pid}/stat") as file:
                assert file.read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            pass


@pytest.mark.parametrize(
    "spoil",
    [
        'kw._core._set_worker_command(["/nowhere/worker"])',
        'kw._core._set_worker_command(["/bin/false"])',
        "resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, last + 1))",
    ],
)
def test_with_no_worker_kernels_are_compiled_in_this_process_and_the_log_says_so_once(spoil):
    with child(
        f"""
    import resource
    x = kw.zeros(1, dtype="int32")  # the device is there: it may hold files of its own
    HIGHEST = max(int(f) for f in os.listdir("/proc/self/fd"))
    while (last := os.open("/dev/null", os.O_RDONLY)) < HIGHEST + 1:
        pass
    os.close(last)  # one file more can be open: a library
    {spoil}
    for i in (1, 2):
        kw.kernel(f"__global__ void k(int* x) {{{{ *x = {{i}}; }}}}")[1, 1](x)
        assert x.item() == i
    try:
        kw.kernel("__global__ void k() {{ oops; }}").compile()
    except kw.CompileError as error:
        print("oops" in str(error), len(kw.lint("__global__ void k() {{ oops; }}")))
    print(workers())
    """,
        KERNWRIGHT_CACHE="off",
        KERNWRIGHT_DEVICE="sim",  # a GPU's driver has no room for its files either
    ) as process:
        out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (0, "True 1\n{}\n"), err
    assert len(err.splitlines()) == 1 and "kernels are compiled in this process" in err


def test_what_nests_too_deep_for_nvrtc_is_an_error_beside_any_handler_of_faults():
    out = run_child(
        """
    import faulthandler
    deep = "__global__ void k(int* x) { *x = " + "(" * 100000 + "1" + ")" * 100000 + "; }"
    for enable in (False, True):
        if enable:
            faulthandler.enable()
        try:
            kw.kernel(deep).compile()
        except kw.CompileError as error:
            print("nests too deep" in str(error), "nests too deep" in error.log)
        check(5 + enable)
        faulthandler.disable()
    print([d.severity for d in kw.lint(deep)])
    check(7)
    """
    )
    assert out == ["True", "True", "True", "True", "['error']"]


def test_a_child_that_was_forked_during_a_compile_compiles():
    out = run_child(
        """
    bomb = unending.compile_async()
    time.sleep(0.5)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            kw.Program("__global__ void c(int* x) { *x = 7; }").compile("ptx", timeout=60)
            code = 0
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), bomb.done())
    bomb.cancel()
    """
    )
    assert out == ["0", "False"]


PREFETCH = """
    kernel = kw.kernel("__global__ void ahead(int* x) { *x = 5; }")
    end = time.monotonic() + WAIT
    while not workers() and time.monotonic() < end:  # what has begun may not have its name yet
        time.sleep(0.01)
    print(len(workers()))
    kernel.compile()
    print(len(workers()))
"""


def test_a_worker_is_started_ahead_only_where_it_will_be_needed(tmp_path):
    disk = {"KERNWRIGHT_CACHE": "disk", "KERNWRIGHT_CACHE_DIR": str(tmp_path)}

    def run(wait, **environment):
        process = child(PREFETCH.replace("WAIT", str(wait)), **environment)
        out, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, "")
        return out.split()

    assert run(20, **disk) == ["1", "1"]
    # Now the cache has the kernel with its NVRTC.
    assert run(0.5, **disk) == ["0", "0"]
    assert run(20, KERNWRIGHT_CACHE="off") == ["1", "1"]
