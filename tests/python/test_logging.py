"""Messages of the library as records of Python's `logging`, and as lines of stderr."""

import logging
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import kernwright as kw
from kernwright import _core

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("KERNWRIGHT_LOG")), reason="KERNWRIGHT_LOG keeps messages from logging"
)
ADD = "__global__ void add(float* x) { x[threadIdx.x] += 1; }"


def run(program, *, fails=False, **environment):
    """What a program of its own writes to stderr, by line."""
    settings = {**os.environ, "KERNWRIGHT_LOG": "", **environment}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=settings,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode != 0) == fails, ran.stderr
    return ran.stderr.splitlines()


def test_levels_and_texts_reach_the_logger(caplog, capfd):
    with caplog.at_level(logging.INFO, logger="kernwright"):
        kernel = kw.kernel(ADD.replace("1;", "1.125f;"))
        kernel[1, 32](kw.zeros(32))
    (record,) = [each for each in caplog.records if "add" in each.getMessage()]
    assert (record.name, record.levelno, record.levelname) == ("kernwright", 20, "INFO")
    assert record.threadName == "MainThread" and record.process == os.getpid()
    assert capfd.readouterr().err == ""
    assert caplog.messages[0] == record.message


def test_a_record_has_the_time_of_its_message(caplog):
    import time

    before = time.time()
    _core._log_warning("100% of %s")
    after = time.time()
    (record,) = caplog.records
    assert before - 0.001 <= record.created <= after + 0.001
    assert record.getMessage() == "100% of %s" and 0 <= record.msecs < 1000
    assert abs(record.created % 1 * 1000 - record.msecs) < 1.001


@pytest.mark.parametrize(
    ("number", "level"),
    [(5, "debug"), (10, "debug"), (15, "info"), (20, "info"), (30, "warning"), (35, "error"),
     (40, "error"), (50, "off")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["kernwright", None])
def test_the_level_of_the_logger_is_the_librarys(caplog, number, level, name):
    before = _core._log_level()
    with caplog.at_level(number, logger=name):
        assert _core._log_level() == level
    assert _core._log_level() == before


def test_logging_that_is_disabled_turns_the_library_off(caplog):
    caplog.set_level(logging.DEBUG)
    try:
        logging.disable(logging.WARNING)
        assert _core._log_level() == "error"
        _core._log_warning("nobody hears this")
    finally:
        logging.disable(logging.NOTSET)
    assert _core._log_level() == "debug" and caplog.records == []


def test_each_launch_is_a_record_when_the_root_asks_for_all(caplog):
    kernel, x = kw.kernel(ADD), kw.zeros(32)
    kernel[1, 32](x)
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            kernel[1, 32](x)
            assert "launch add" in caplog.messages[-1]
    assert sum("launch add" in message for message in caplog.messages) == 3
    kernel[1, 32](x)
    assert sum("launch add" in message for message in caplog.messages) == 3


MISSPELT = "import kernwright as kw; kw.zeros(3)"


def test_without_logging_a_message_is_one_line_of_stderr():
    (line,) = run(MISSPELT, KERNWRIGHT_DEVICE="sim", KERNWRIGHT_SIM_THREAD="4")
    assert line.startswith("kernwright: warning: ") and "KERNWRIGHT_SIM_THREADS" in line


@pytest.mark.parametrize("where", ["before", "after"])
def test_with_logging_a_message_is_one_line_of_its_handler(where):
    setup = "import logging; logging.basicConfig(format='%(levelname)s|%(name)s|%(message)s')"
    parts = [setup, "import kernwright as kw"] if where == "before" else [MISSPELT[:23], setup]
    (line,) = run(
        "\n".join([*parts, "kw.zeros(3)"]), KERNWRIGHT_DEVICE="sim", KERNWRIGHT_SIM_THREAD="4"
    )
    assert line.startswith("WARNING|kernwright|") and "KERNWRIGHT_SIM_THREADS" in line


def test_a_variable_that_is_set_has_the_last_word():
    lines = run(
        "import logging; logging.basicConfig(level='DEBUG', format='%(name)s %(message)s')\n"
        f"import kernwright as kw; kw.kernel('''{ADD}''')[1, 32](kw.zeros(32))",
        KERNWRIGHT_LOG="info",
    )
    own = [line for line in lines if line.startswith("kernwright: ")]
    assert own and all(line.startswith("kernwright: info: ") for line in own)
    assert not [line for line in lines if line.startswith("kernwright ")]


def test_a_null_handler_silences():
    program = "import logging; logging.getLogger('kernwright').addHandler(logging.NullHandler())\n"
    assert run(program + MISSPELT, KERNWRIGHT_DEVICE="sim", KERNWRIGHT_SIM_THREAD="4") == []


def test_messages_of_threads_all_arrive_in_their_order(caplog):
    caplog.set_level(logging.DEBUG)
    count, threads = 50, 4

    def work(number):
        for i in range(count):
            _core._log_warning(f"{number} {i}")
            kw.synchronize()

    each = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(threads)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    deadline = threading.Event()
    for _ in range(100):
        told = [r for r in caplog.records if r.message[:1].isdigit() or r.levelno == 30]
        if len(told) == count * threads:
            break
        deadline.wait(0.05)
    for n in range(threads):
        mine = [r.getMessage() for r in told if r.getMessage().startswith(f"{n} ")]
        assert mine == [f"{n} {i}" for i in range(count)]


QUIET_MAIN = """
import logging, threading, time
import kernwright as kw
from kernwright import _core
heard = threading.Event()
class Handler(logging.Handler):
    def emit(self, record):
        print(record.threadName, record.getMessage(), flush=True)
        heard.set()
logging.getLogger().addHandler(Handler())
threading.Thread(target=lambda: _core._log_warning("from a thread"), name="Other").start()
assert heard.wait(20)  # while the main thread does nothing
"""


def test_a_thread_is_heard_while_the_main_thread_waits():
    assert run(QUIET_MAIN) == []


LOCKED = """
import logging, threading
from kernwright import _core
import kernwright as kw
heard = threading.Event()
class Handler(logging.Handler):
    def emit(self, record):
        if record.getMessage() == "first":
            _core._log_warning("again")
        if record.getMessage() == "again":
            heard.set()
        kw.zeros(3).numpy()
handler = Handler()
logging.getLogger().addHandler(handler)
handler.acquire()  # the courier waits for this lock, and holds none of the library's meanwhile
thread = threading.Thread(target=lambda: _core._log_warning("first"))
thread.start()
thread.join()
for i in range(5):
    _core._log_warning("mine")
    kw.zeros(3).numpy()
handler.release()
assert heard.wait(30)
"""


def test_handlers_may_use_the_library_and_hold_locks():
    assert run(LOCKED, KERNWRIGHT_DEVICE="sim") == []


FORKED = """
import logging, os, sys
logging.basicConfig(format="%(process)d %(message)s")
import kernwright as kw
from kernwright import _core
_core._log_warning("parent")
child = os.fork()
if child == 0:
    for i in range(3):
        _core._log_warning("child")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print(os.getpid(), child)
"""


def test_a_forked_child_has_a_log_of_its_own():
    ran = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "KERNWRIGHT_LOG": ""},
    )  # fmt: skip
    parent, child = ran.stdout.split()
    # Python 3.12 warns of every fork of a process with threads.
    said = [line for line in ran.stderr.splitlines() if "multi-threaded, use of fork" not in line]
    assert sorted(said) == sorted([f"{parent} parent"] + [f"{child} child"] * 3)


INTERRUPTED = """
import logging, signal, time
import kernwright as kw
from kernwright import _core
class Slow(logging.Handler):
    def emit(self, record):
        if record.getMessage() == "slow":
            time.sleep(20)
        print(record.getMessage(), flush=True)
logging.getLogger("kernwright").addHandler(Slow())
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    _core._log_warning("slow")
    for _ in range(100):
        time.sleep(0.02)
    print("lost")
except KeyboardInterrupt:
    print("interrupted", flush=True)
_core._log_warning("after")
"""


def test_ctrl_c_in_a_handler_interrupts_the_program():
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60,
        env={**os.environ, "KERNWRIGHT_LOG": ""},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout.split()) == (0, ["interrupted", "after"]), ran.stderr


DISABLED = """
import logging.config, time
import kernwright as kw
from kernwright import _core
logging.config.dictConfig({"version": 1})
_core._log_warning("not heard")
time.sleep(0.5)
logging.getLogger("kernwright").disabled = False
_core._log_warning("heard")
"""


def test_a_disabled_logger_is_silent_until_it_is_enabled():
    heard = [line for line in run(DISABLED) if "heard" in line]
    assert len(heard) == 1 and "not heard" not in heard[0]


ENDING = """
import logging, threading
import kernwright as kw
from kernwright import _core
logging.basicConfig(format="%(message)s")
def forever():
    while True:
        _core._log_warning("on and on")
        kw.synchronize()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
for _ in range(20):
    _core._log_warning("mine")
"""


def test_a_program_ends_while_threads_log():
    """Too many messages for the handler: what finds no room, or comes after it, is a plain line."""
    for _ in range(2):  # up to a million lines each
        lines = run(ENDING, KERNWRIGHT_DEVICE="sim")
        assert sum(line.endswith("mine") for line in lines) == 20


LAST = """
import logging, threading
from kernwright import _core
logging.basicConfig(format="%(message)s")
threading.Thread(target=lambda: _core._log_warning("last")).start()
"""


def test_what_is_logged_last_arrives():
    assert run(LAST) == ["last"]


def test_an_interrupted_call_keeps_its_error(caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(kw.ArgumentError, match="float64"):
        kw.kernel(ADD)[1, 32](kw.asarray(np.zeros(32)))
