"""A small kernel plain and as a task, and a kernel of 10 us that asyncio awaits.

A part of schedule.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

SIMULATED = kw.current_device().is_simulated


def submit_cost() -> dict[str, Any]:
    kernel = kw.kernel("__global__ void add(float* x) { x[threadIdx.x] += 1; }")
    x = kw.zeros(32)
    bound = kernel[1, 32]
    calls = 20 if SIMULATED else 2000
    done = [0]
    with kw.schedule.Scheduler() as scheduler, kw.Stream() as stream:
        submit = scheduler.submit
        event = kw.Event()

        def settle() -> None:
            scheduler.drain()
            kw.synchronize()

        def nothing() -> None:
            pass

        rows: dict[str, Any] = dict(
            harness.alternate(
                {
                    "plain": lambda: bound(x),
                    "task": lambda: submit(bound, x),
                    "burstable task": lambda: submit(bound, x, qos="burstable"),
                    # The parts of a task: a question, an event, and what is left without a launch.
                    "query of a stream": lambda: stream.done,
                    "event": lambda: event.record(stream),
                    "task without a launch": lambda: submit(nothing),
                },
                settle, calls, rounds=3 if SIMULATED else 9,
            )
        )  # fmt: skip
        begin, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        for _ in range(10 * calls):
            submit(bound, x)
        rows["processor_us"] = round((time.thread_time() - thread) / calls * 1e5, 3)
        rows["submissions_per_second"] = round(10 * calls / (time.perf_counter() - begin))
        scheduler.drain()
        rows["tasks_per_second"] = round(10 * calls / (time.perf_counter() - begin))
        rows["processor_us_of_all_threads"] = round(
            (time.process_time() - process) / calls * 1e5, 3
        )
        counts = scheduler.stats()["classes"]
        done[0] = sum(row["done"] for row in counts.values())
        assert done[0] == sum(row["submitted"] for row in counts.values())
    rows["over_plain_us"] = round(rows["task"]["median"] - rows["plain"]["median"], 3)
    return rows


SPIN = """__global__ void spin(long long ns) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < ns);
}"""


def await_cost() -> dict[str, Any]:
    """Microseconds from a call to its return, with a kernel of 10 us, and without a scheduler."""
    spin = kw.kernel(SPIN)[1, 1]
    rounds = 20 if SIMULATED else 2000

    async def awaited(scheduler: Any) -> list[float]:
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            await scheduler.submit(spin, 10_000)
            times.append((time.perf_counter() - begin) * 1e6)
        return times

    def timed(call: Callable[[], object]) -> list[float]:
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e6)
        return times

    stream = kw.Stream()

    def plain() -> None:
        with stream:
            spin(10_000)
        stream.synchronize()

    plain()
    with kw.schedule.Scheduler() as scheduler:
        rows = {
            "plain": timed(plain),
            "result": timed(lambda: scheduler.submit(spin, 10_000).result()),
            "await": asyncio.run(awaited(scheduler)),
        }
    found = {name: round(float(np.median(times)), 2) for name, times in rows.items()}
    p99 = {f"{name}_p99": round(float(np.percentile(t, 99)), 2) for name, t in rows.items()}
    return {**found, **p99, "await_over_plain_us": round(found["await"] - found["plain"], 2)}
