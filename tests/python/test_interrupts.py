"""Ctrl-C and limits of time during a launch on the simulated device."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

PROLOGUE = """
import os, signal, threading, time
import numpy as np
import kernwright as kw

# A test run that was started in the background ignores SIGINT, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
count = kw.kernel("__global__ void count(int* x) { atomicAdd(x, 1); }")
forever = kw.kernel("__global__ void forever(volatile int* x) { while (x[0] < 1 << 30) {} }")
second = kw.kernel("__global__ void second(volatile int* x) { while (blockIdx.x && x[1] == 0) {} }")
waits = kw.kernel("__global__ void waits(volatile int* x) { while (x[1] == 0) __syncthreads(); }")
x = kw.zeros(2, dtype="int32")
count[1, 1](x)
x.numpy()


def press_later():
    def press():
        global when
        time.sleep(0.3)
        when = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press, daemon=True).start()


def check(before):
    count[4, 64](x)
    assert x.numpy()[0] >= before + 256
"""

# A grid of some minutes.
MANY = "count[1 << 30, 1](x)"

LAUNCHES = {
    "one warp": ("forever[1, 1](x)", {}),
    "full blocks": ("forever[8, 1024](x)", {}),
    "barriers": ("waits[3, 96](x)", {}),
    "one thread": ("forever[2, 32](x)", {"THREADS": "1"}),
    "many blocks": (MANY, {}),
    "many blocks, one thread": (MANY, {"THREADS": "1"}),
    "the last of two blocks": ("second[2, 1](x)", {"THREADS": "2"}),
    "a cooperative grid": (
        "waits.launch(kw.LaunchConfig(3, 64, cooperative=True), x)",
        {"THREADS": "2"},
    ),
    "a stream that waits": ("forever[1, 1](x); kw.current_device().synchronize()", {"SEED": "3"}),
    "chosen orders": (MANY, {"SEED": "3"}),
    "checks": ("with kw.checks('race', 'init'): forever[2, 64](x)", {}),
    "a profile": ("with kw.line_profile(): forever[2, 64](x)", {}),
    "clusters": (
        "forever.launch(kw.LaunchConfig(4, 32, cluster=2), x)",
        {"CAPABILITY": "9.0"},
    ),
}


def run(code, **settings):
    process = subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "KERNWRIGHT_DEVICE": "sim",
            **{f"KERNWRIGHT_SIM_{name}": value for name, value in settings.items()},
        },
    )
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("launch", LAUNCHES)
def test_ctrl_c_ends_a_launch_and_the_next_works(launch):
    code, settings = LAUNCHES[launch]
    returned, out, err = run(
        f"""
    press_later()
    try:
        {code}
        kw.current_device().synchronize()
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - when)
    check(0)
    forever_ended = kw.current_device().synchronize()
    print("healthy")
    """,
        **settings,
    )
    assert (returned, err) == (0, "")
    words = out.split()
    assert words[0] == "interrupted" and words[2] == "healthy"
    assert float(words[1]) < 5  # a busy machine; some 60 ms else


def test_ctrl_c_that_nobody_catches_ends_the_process():
    returned, _, err = run("press_later()\nforever[1, 1](x)")
    assert returned == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("wait", ["task.result()", "scheduler.drain()", "scheduler.close()"])
def test_ctrl_c_ends_a_wait_for_tasks(wait):
    returned, out, err = run(
        f"""
    scheduler, go = kw.schedule.Scheduler(), threading.Event()
    task = scheduler.submit(go.wait, 100, qos="best_effort")
    press_later()
    try:
        {wait}
    except KeyboardInterrupt:
        print(task.done(), time.monotonic() - when < 20)
    go.set()
    scheduler.close()
    print(task.result())
    """
    )
    assert (returned, out, err) == (0, "False True\nTrue\n", "")


def test_ctrl_c_ends_the_wait_for_the_memory_of_a_block():
    returned, out, err = run(
        """
    scheduler, go = kw.schedule.Scheduler(memory=1000), threading.Event()
    first = scheduler.submit(go.wait, 100, memory=800, qos="best_effort")
    while first.state != "running":  # else the block, which is more urgent, begins first
        time.sleep(0.001)
    press_later()
    try:
        with scheduler.task(memory=800, name="block"):
            print("it began")
    except KeyboardInterrupt:
        print(time.monotonic() - when < 20)
    block = scheduler.tasks()[0]
    print(block["name"], block["state"], "interrupted" in block["explained"])
    print(scheduler.stats()["memory"]["reserved"], len(scheduler.tasks()))
    go.set()
    print(first.result())
    with scheduler.task(memory=800) as again:
        count[1, 1](x)
    print(again.result())
    scheduler.close()
    """
    )
    said = "True\nblock cancelled True\n800 2\nTrue\nNone\n"
    assert (returned, out, err) == (0, said, "")


def test_a_handler_of_one_s_own_is_called_after_the_launch():
    returned, out, err = run(
        """
    calls = []
    signal.signal(signal.SIGINT, lambda *_: calls.append(len(calls)))
    press_later()
    took = time.monotonic()
    while time.monotonic() - took < 1:
        count[1 << 16, 32](x)
    print(calls, x.numpy()[0] % (1 << 21))
    """
    )
    assert (returned, out, err) == (0, "[0] 1\n", "")


def test_a_thread_other_than_the_main_one_is_not_interrupted():
    returned, out, err = run(
        """
    worker = threading.Thread(target=lambda: forever[1, 1](x), daemon=True)
    worker.start()
    press_later()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", worker.is_alive())
    """
    )
    assert (returned, out, err) == (0, "interrupted True\n", "")


@pytest.mark.parametrize("launch", ["one warp", "many blocks", "barriers"])
def test_a_launch_ends_at_the_limit_of_time(launch):
    start = time.monotonic()
    returned, out, err = run(
        f"""
    try:
        {LAUNCHES[launch][0]}
    except kw.Timeout as error:
        print(error)
    check(0)
    print("healthy")
    """,
        TIMEOUT="1",
    )
    assert (returned, err) == (0, "")
    assert "took longer than 1 s (KERNWRIGHT_SIM_TIMEOUT)" in out and out.endswith("healthy\n")
    assert "in " in out and "block" in out
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("name", ["sum", "cumulative_sum"])
def test_an_operation_that_was_interrupted_is_right_the_next_time(name):
    code, out, err = run(
        f"""
        operation = kw.{name}
        some = kw.ones(50000)
        operation(some)
        large = kw.ones(1 << 26, dtype="float32")
        pressed = 0
        for _ in range(3):
            press_later()
            try:
                while True:
                    operation(large)
                    kw.synchronize()
            except KeyboardInterrupt:
                pressed += 1
            for call in (kw.sum, kw.cumulative_sum):
                assert call(some).numpy().ravel()[-1] == 50000
        print(pressed)
        """
    )
    assert (code, out) == (0, "3\n"), err
