"""Compiling in the background, with a deadline, and Ctrl-C meanwhile."""

import concurrent.futures
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from compile_children import BOMB, at_rest, child

import kernwright as kw

serial = iter(range(10**9))


def bomb(depth=14):
    return kw.kernel(BOMB + f"// {os.getpid()} {next(serial)}\n", defines={"DEPTH": depth})


def scale(factor=None):
    """A kernel never compiled before."""
    number = next(serial) if factor is None else factor
    text = f"__global__ void scale(float* x) {{ x[threadIdx.x] *= {number}; }} // {os.getpid()}"
    return kw.kernel(text)


@pytest.fixture
def warm():
    """A worker is there: the test times the compile alone."""
    scale().compile()
    yield
    assert at_rest()


def test_a_future_gives_the_kernel_itself(device):
    kernel = scale(3)
    future = kernel.compile_async()
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(timeout=60) is kernel
    x = kw.asarray(np.ones(32, np.float32))
    kernel[1, 32](x)
    assert (x.numpy() == 3).all()


def test_two_futures_run_at_once_though_the_first_thread_has_just_taken_its_own():
    from kernwright._jit import background

    taken, go = threading.Event(), threading.Event()

    class SlowQueue(queue.SimpleQueue):
        def get(self, timeout):
            task = super().get(timeout=timeout)
            taken.set()
            assert go.wait(20)
            return task

    threads = background._Workers()
    threads.tasks = SlowQueue()
    meeting = threading.Barrier(2)
    first = threads.submit(lambda stop: meeting.wait(20))
    assert taken.wait(20)
    second = threads.submit(lambda stop: meeting.wait(20))
    go.set()
    assert sorted([first.result(), second.result()]) == [0, 1]
    threads.close()


def test_errors_travel_through_the_future():
    future = kw.kernel("__global__ void k() { nothing; }").compile_async()
    with pytest.raises(kw.CompileError, match="nothing"):
        future.result(timeout=60)
    called = []
    future.add_done_callback(called.append)
    assert called == [future]


def test_warmup_compiles_kernels_and_modules():
    kernels = [scale() for _ in range(6)]
    module = kw.module(f"__global__ void a() {{}} __global__ void b() {{}} // {next(serial)}")
    futures = kw.warmup([*kernels, module])
    done, waiting = concurrent.futures.wait(futures, timeout=120)
    assert not waiting and len(done) == 7
    assert [f.result() for f in futures] == [*kernels, module]
    assert kw.warmup([]) == []
    assert all(f.done() for f in kw.warmup([scale(), scale()], wait=True))


def test_warmup_raises_the_first_error_and_says_what_it_takes():
    broken = kw.kernel(f"__global__ void k() {{ nothing{next(serial)}; }}")
    with pytest.raises(kw.CompileError):
        kw.warmup([scale(), broken], wait=True)
    with pytest.raises(kw.ArgumentError, match="got a str"):
        kw.warmup(["__global__ void k() {}"])


def seconds_to_timeout(program):
    start = time.monotonic()
    with pytest.raises(kw.Timeout, match="100 ms"):
        program.compile(timeout=0.1)
    return time.monotonic() - start


def test_a_timeout_ends_a_template_bomb(warm):
    assert seconds_to_timeout(bomb()) < 0.2
    assert scale().compile() is not None
    module = kw.module(BOMB + f"// {next(serial)}", defines={"DEPTH": 14})
    assert seconds_to_timeout(module) < 0.2


def test_timeouts_are_checked():
    with pytest.raises(kw.InvalidArgument):
        scale().compile(timeout=-1)
    assert scale().compile(timeout=60) is not None


def test_cancel_stops_what_runs_and_what_is_queued(warm):
    running = [bomb().compile_async() for _ in range(os.cpu_count() or 1)]
    queued = scale().compile_async()
    time.sleep(0.1)
    start = time.monotonic()
    assert queued.cancel() and all(f.cancel() for f in running)
    assert all(f.cancelled() and f.done() for f in [queued, *running])
    with pytest.raises(concurrent.futures.CancelledError):
        running[0].result()
    assert time.monotonic() - start < 0.1
    assert scale().compile_async().result(timeout=60) is not None
    done = scale().compile_async()
    done.result(timeout=60)
    assert not done.cancel()


def test_a_thread_with_no_timeout_is_not_hurt_by_one_that_has(warm):
    kernel = bomb(11)
    slow = kernel.compile_async()
    time.sleep(0.05)
    with pytest.raises(kw.Timeout):
        kernel.compile(timeout=0.01)
    assert slow.result(timeout=120) is kernel


INTERRUPT = """
    kw.kernel("__global__ void a() {}").compile()
    def interrupt():
        global when
        time.sleep(0.3)
        when = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        WAIT
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - when)
    print(at_rest())
    kw.kernel("__global__ void b(int* x) { *x = 1; }").compile()
    print("healthy")
"""


@pytest.mark.parametrize(
    "wait",
    [
        'kw.kernel(BOMB, defines={"DEPTH": 16}).compile()',
        'kw.kernel(BOMB, defines={"DEPTH": 16}).signature',
        'kw.Program(BOMB, kw.ProgramOptions(defines={"DEPTH": 16})).compile("ptx")',
        'kw.kernel(BOMB, defines={"DEPTH": 16}).compile_async().result()',
        'kw.warmup([kw.kernel(BOMB, defines={"DEPTH": 16})], wait=True)',
    ],
)
def test_ctrl_c_ends_a_wait_within_100_ms_and_the_exit_is_clean(wait):
    process = child(INTERRUPT.replace("WAIT", wait))
    start = time.monotonic()
    out, err = process.communicate(timeout=100)
    assert time.monotonic() - start < 20
    assert process.returncode == 0, err
    assert err == ""
    words = out.split()
    # A future goes on without anybody waiting for it.
    rests = str("compile_async" not in wait)
    assert words[0] == "interrupted" and words[2:] == [rests, "healthy"]
    assert float(words[1]) < 0.1


def test_a_handler_of_signals_may_raise_what_it_likes():
    process = child(
        """
        class Bell(Exception): pass
        def ring(*_): raise Bell
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            kw.kernel(BOMB, defines={"DEPTH": 15}).compile()
        except Bell:
            print("rung")
        """
    )
    out, err = process.communicate(timeout=100)
    assert (process.returncode, out, err) == (0, "rung\n", "")


def test_the_end_of_the_interpreter_stops_what_is_in_the_background():
    process = child(
        """
        futures = kw.warmup([kw.kernel(BOMB + f"// {i}", defines={"DEPTH": 15}) for i in range(4)])
        time.sleep(0.4)
        """
    )
    start = time.monotonic()
    out, err = process.communicate(timeout=100)
    assert (process.returncode, out, err) == (0, "", "")
    assert time.monotonic() - start < 15


def test_a_forked_child_compiles_in_the_background_too():
    scale().compile_async().result(timeout=60)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            text = "__global__ void c(int* x) { *x = 7; }"
            kw.Program(text, kw.ProgramOptions(arch="compute_80")).compile("ptx", timeout=30)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_nothing_of_it_is_imported_before_it_is_used():
    code = "import kernwright, sys; print('concurrent.futures' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


def test_signals_are_python_s_own_when_nothing_is_compiled():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
    finally:
        signal.signal(signal.SIGINT, before)


DEVICE_ALONE = """
    kw.ones(4).numpy()
    print("libnvrtc" in open("/proc/self/maps").read(), workers())
"""


def test_a_device_alone_makes_no_cache_and_starts_no_compiler(tmp_path):
    def run(folder):
        process = child(
            DEVICE_ALONE, KERNWRIGHT_CACHE="disk", KERNWRIGHT_CACHE_DIR=str(tmp_path / folder)
        )
        out, err = process.communicate(timeout=100)
        assert (process.returncode, out, err) == (0, "False {}\n", "")

    run("absent")
    assert not (tmp_path / "absent").exists()
    (tmp_path / "empty").mkdir(mode=0o700)
    run("empty")


REHEARSAL = """
    from kernwright._jit import kernels as _kernels
    calls, real = [], _kernels.rehearse

    class Bell(Exception): pass
    def ring(*_): raise Bell
    signal.signal(signal.SIGALRM, ring)

    def rehearse():
        calls.append(1)
        for number in SIGNALS:
            signal.raise_signal(number)
        real()

    _kernels.rehearse = rehearse
    try:
        assert kw.ones(4).numpy().sum() == 4
        assert kw.ones(4).numpy().sum() == 4
    except (KeyboardInterrupt, Bell) as raised:
        print(type(raised).__name__)
    stats = kw.cache.info()["process"]
    print(len(calls), sum(stats[kind] for kind in ("misses", "compiles", "disk_hits", "stored")))
    x = kw.zeros(1, dtype="int32")
    kw.kernel("__global__ void once(int* x) { *x = 5; }")[1, 1](x)
    assert x.item() == 5
"""


def test_the_first_kernel_is_rehearsed_where_a_cache_is_known(tmp_path):
    disk = {"KERNWRIGHT_CACHE": "disk", "KERNWRIGHT_CACHE_DIR": str(tmp_path)}

    def run(*signals):
        process = child(REHEARSAL.replace("SIGNALS", str([int(s) for s in signals])), **disk)
        out, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, "")
        return out.split()

    assert run() == ["0", "0"]  # the cache knows no compiler yet
    assert run() == ["1", "0"]
    assert run(signal.SIGINT) == ["KeyboardInterrupt", "1", "0"]
    assert run(signal.SIGALRM) == ["Bell", "1", "0"]
