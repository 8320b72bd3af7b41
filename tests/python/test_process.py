"""How a process ends with live objects everywhere, what a forked child is told, and that threads
never wait for each other for good."""

import textwrap

import pytest
from children import run_child

# Live objects of every kind, in globals, and the promise that the driver is left alone once exit
# has begun: a late call ends the process with 97.
PROLOGUE = r"""
import atexit, gc, os, signal, sys, threading, time
import numpy as np
import kernwright as kw
import kernwright._core as core

core._faults.install("cuda" if os.environ["KERNWRIGHT_DEVICE"].startswith("cuda") else "sim")
core._faults.forbid_late_calls()
# A test run that was started in the background ignores SIGINT, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
device = kw.current_device()
fill = kw.kernel(
    "__global__ void fill(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 2; }"
)
spin = kw.kernel(
    "__global__ void spin(int* x, int n) { for (int i = 0; i < n; ++i) x[0] += i ^ x[1]; }"
)
x = kw.zeros(64)
views = [x[::2], x.reshape(8, 8).T]
stream = kw.Stream()
event = stream.record()
bound = fill[1, 64, stream]
bound(x, 64)
host = kw.pinned(64)
alias = np.asarray(host)
counter = kw.zeros(2, dtype="int32")
LONG = 20000 if device.is_simulated else 20000000


def work():
    while True:
        fill[1, 64](x, 64)
        kw.ones(16).numpy()


def start(target, daemon=True):
    thread = threading.Thread(target=target, daemon=daemon)
    thread.start()
    time.sleep(0.05)
    return thread
"""

ENDS = {
    "at the end of the program": ("", 0),
    "with cycles that only the collector ends": (
        """
        class Node: pass
        a, b = Node(), Node()
        a.other, b.other, a.held, b.held = b, a, kw.ones(8), kw.Stream()
        gc.disable()
        del a, b
        """,
        0,
    ),
    "by sys.exit": ("sys.exit(3)", 3),
    "by sys.exit in a function that holds things": (
        "def f():\n    held = kw.ones(9), kw.Event()\n    sys.exit(4)\nf()",
        4,
    ),
    "by os._exit": ("os._exit(5)", 5),
    "by os._exit in a thread": ("start(lambda: os._exit(6), False).join()", 6),
    "by an exception": ("raise SystemError('on purpose')", 1),
    "by sys.exit in a thread, which ends that thread alone": (
        "start(lambda: sys.exit(7), False).join()",
        0,
    ),
    "while a thread still works": (
        "start(lambda: [fill[1, 64](x, 64) for _ in range(200)], daemon=False)",
        0,
    ),
    "while a daemon thread works": ("start(work)", 0),
    "while daemon threads wait": (
        "for _ in range(3): start(lambda: [device.synchronize() for _ in range(10**6)])",
        0,
    ),
    "while a daemon thread compiles": (
        # A template that takes far longer than what comes behind it.
        "text = '''template <int N, int M> struct B {\n"
        "static const long v = B<N - 1, 2 * M>::v + B<N - 1, 2 * M + 1>::v; };\n"
        "template <int M> struct B<0, M> { static const long v = M; };\n"
        "__global__ void k(long* x) { *x = B<14, 0>::v; }'''\n"
        "start(lambda: kw.kernel(text).compile())",
        0,
    ),
    "while a kernel runs": ("start(lambda: spin[1, 1](counter, LONG))", 0),
    "with work queued": ("for _ in range(100): spin[1, 1, stream](counter, 10)", 0),
    "after an atexit handler that uses the device": (
        "atexit.register(lambda: (fill[1, 64](x, 64), device.synchronize(), x.numpy()))",
        0,
    ),
    "after an atexit handler that makes things": (
        "atexit.register(lambda: globals().update(late=(kw.ones(5), kw.Stream())))",
        0,
    ),
    "with a finaliser that uses the device": (
        "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, lambda: kw.ones(4).numpy())",
        0,
    ),
    "with an object that comes back to life": (
        """
        class Back:
            def __init__(self): self.held = kw.ones(4)
            def __del__(self): sys.back = self
        back = Back()
        """,
        0,
    ),
    "inside `with stream` of a generator": (
        """
        def scope():
            with kw.Stream():
                with device:
                    yield kw.ones(3)
        suspended = scope()
        next(suspended)
        """,
        0,
    ),
    "by SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(20)", -15),
    "by SIGINT": ("os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)", -2),
    "by SIGTERM with a handler": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(8))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(20)",
        8,
    ),
    "by SIGINT while a stream is waited for": (
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\nwork()",
        -2,
    ),
    "in a child that was forked": (
        "pid = os.fork()\nif pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        0,
    ),
    "in a child that was forked while a thread worked": (
        "start(work)\npid = os.fork()\n"
        "if pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        0,
    ),
    "by becoming another program": (
        "os.execv(sys.executable, [sys.executable, '-c', 'pass'])",
        0,
    ),
    "with faulthandler on": ("import faulthandler\nfaulthandler.enable()", 0),
    "with a pool of threads": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(4)\n"
        "[pool.submit(lambda: kw.ones(7).numpy()) for _ in range(50)]",
        0,
    ),
    "after the package was forgotten": (
        "for name in [n for n in sys.modules if n.startswith('kernwright')]: del sys.modules[name]",
        0,
    ),
}
# What Python itself prints about these ends.
NOISY = {
    "by an exception": "SystemError: on purpose",
    "by SIGINT": "KeyboardInterrupt",
    "by SIGINT while a stream is waited for": "KeyboardInterrupt",
}


@pytest.mark.parametrize("way", ENDS)
def test_exit(way):
    code, expected = ENDS[way]
    ended = run_child(PROLOGUE + textwrap.dedent(code), options=("-W", "error"))
    assert ended.code == expected, ended
    assert "late driver call" not in ended.err
    if way in NOISY:
        assert ended.err.rstrip().splitlines()[-1].startswith(NOISY[way]), ended.err
    else:
        assert ended.err == ""
    assert ended.out == ""


FORKED = """
    import pickle
    uses = {
        "ones": lambda: kw.ones(3),
        "numpy": lambda: x.numpy(),
        "launch": lambda: fill[1, 64](x, 64),
        "bound": lambda: bound(x, 64),
        "stream": lambda: kw.Stream(),
        "synchronize": lambda: stream.synchronize(),
        "device": lambda: device.synchronize(),
        "memory": lambda: device.memory_info(),
        "event": lambda: event.synchronize(),
        "pinned": lambda: kw.pinned(4),
        "devices": lambda: kw.devices(),
        "reset": lambda: device.reset(),
    }
"""


def test_a_forked_child_is_told_so_by_every_call():
    ended = run_child(
        PROLOGUE
        + textwrap.dedent(FORKED)
        + textwrap.dedent("""
    pid = os.fork()
    if pid == 0:
        for number, (name, use) in enumerate(uses.items(), 1):
            try:
                use()
            except kw.Error as error:
                if "fork()" not in str(error) or "spawn" not in str(error):
                    os._exit(50 + number)
            else:
                os._exit(number)
        host[:] = 3  # plain memory stays usable
        del x, views, stream, event, bound, host
        gc.collect()
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    fill[1, 64](x, 64)
    assert (x.numpy() == 2).all()
    """)
    )
    assert (ended.code, ended.err) == (0, "")


def test_a_fork_before_the_device_is_used_leaves_the_child_free():
    ended = run_child("""
    import os
    import kernwright as kw
    pid = os.fork()
    assert (kw.ones(5).numpy() == 1).all()
    if pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    """)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method, tmp_path):
    expected = [True] * 3 if method == "fork" else [1.0, 2.0, 3.0]
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(f"""
    import multiprocessing, sys
    import kernwright as kw

    def task(n):
        try:
            return float(kw.ones(n).numpy().sum())
        except kw.Error as error:
            return "fork()" in str(error)

    if __name__ == "__main__":
        kw.ones(4).numpy()
        with multiprocessing.get_context({method!r}).Pool(2) as pool:
            assert pool.map(task, [1, 2, 3]) == {expected}
        assert kw.ones(4).numpy().sum() == 4
    """)
    )
    ended = run_child(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")
    assert (ended.code, ended.err) == (0, "")


DEADLOCKS = {
    "log lines into Python while others hold the device": """
        core._faults.arm("cuEventDestroy", 1, forever=True)
        def churn():
            for _ in range(200): kw.Event()
        threads = [start(churn, False) for _ in range(4)]
        for thread in threads: thread.join()
        core._faults.disarm()
        os._exit(0)
        """,
    "destructors run by the collector inside calls": """
        gc.set_threshold(1)
        def churn():
            for _ in range(150):
                a = [kw.ones(4), kw.Stream(), kw.Event()]
                a.append(a)
                fill[1, 64](x, 64)
        threads = [start(churn, False) for _ in range(3)]
        for thread in threads: thread.join()
        """,
    "one stream waited for by all, launched on by all": """
        def churn():
            for _ in range(200):
                bound(x, 64)
                stream.synchronize()
        threads = [start(churn, False) for _ in range(4)]
        for thread in threads: thread.join()
        """,
    "a compile asked for by all at once": """
        kernel = kw.kernel("__global__ void k(float* p) { p[0] = 41; }")
        threads = [start(lambda: kernel[1, 1](x), False) for _ in range(8)]
        for thread in threads: thread.join()
        """,
    "a slow driver does not stop other threads": """
        core._faults.arm("cuCtxSynchronize", 0, delay=2.0, after=True)
        waiting = start(device.synchronize, False)
        begin = time.monotonic()
        sum(range(10**5))
        assert time.monotonic() - begin < 1.5
        waiting.join()
        """,
    "a reset while others use the device": """
        def churn():
            for _ in range(300):
                try:
                    a = kw.ones(16)
                    fill[1, 16](a, 16)
                    a.numpy()
                except kw.DriverError:
                    pass
        if device.is_simulated:
            threads = [start(churn, False) for _ in range(3)]
            for _ in range(3): time.sleep(0.02)
            for thread in threads: thread.join()
        del views, x, stream, event, bound, host, alias, counter
        device.reset()
        assert (kw.ones(3).numpy() == 1).all()
        """,
}


@pytest.mark.parametrize("what", DEADLOCKS)
def test_no_deadlock(what):
    ended = run_child(PROLOGUE + textwrap.dedent(DEADLOCKS[what]), timeout=60)
    assert ended.code == 0, ended


def test_warnings_as_errors():
    ended = run_child(
        PROLOGUE + "x.numpy(); kw.ones((3, 4)).reshape(12)[::-1].numpy(); device.synchronize()",
        options=("-W", "error", "-b", "-X", "dev"),
    )
    assert (ended.code, ended.err) == (0, "")
