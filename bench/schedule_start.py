"""The time from a submission to the first block of its kernel, beside a persistent product.

A part of schedule.py. The kernel writes the GPU's clock; bounds of what a submission and its end
have between them tie this clock to that of the host, on an idle device.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import kernwright as kw

SIMULATED = kw.current_device().is_simulated
SIZES = (64,) if SIMULATED else (4096, 8192)
SAMPLES = 5 if SIMULATED else 2000
MARK_US, MARK_COST = 60, 0.01

STAMP = """__global__ void stamp(unsigned long long* at) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    *at = now;
}"""


def matrix(size: int) -> kw.Array:
    values = kw.random.normal(shape=(size, size), dtype="float32", seed=size)
    return (values * 0.02).astype("bfloat16")


class Clock:
    """Microseconds from a submission to the first block."""

    def __init__(self, scheduler: kw.schedule.Scheduler) -> None:
        self.scheduler, self.at = scheduler, kw.zeros(1, "uint64")
        self.kernel = kw.kernel(STAMP)[1, 1]
        samples = [self.sample() for _ in range(200)][20:]
        # The stamp lies between the submission and the end.
        self.offset = min(stamp - begin for begin, stamp, _ in samples)
        self.least = max(stamp - end for _, stamp, end in samples)

    def sample(self) -> tuple[int, int, int]:
        begin = time.time_ns()
        self.scheduler.submit(self.kernel, self.at).result()
        end = time.time_ns()
        return begin, int(self.at.numpy()[0]), end

    def times(self, samples: int) -> list[float]:
        """Too short by the time of the fastest start on an idle device, which `rows` adds."""
        found = []
        for _ in range(samples):
            time.sleep(0.002)
            begin, stamp, _ = self.sample()
            found.append((stamp - begin - self.offset) / 1e3)
        return found

    def rows(self, times: list[float]) -> dict[str, float]:
        most = (self.offset - self.least) / 1e3  # of a start: all of the fastest round trip
        p50, p99 = np.percentile(times, [50, 99])
        return {
            "p50_us": round(float(p50) + most / 2, 1),
            "p99_us": round(float(p99) + most / 2, 1),
            "uncertain_us": round(most / 2, 1),
        }


def start(size: int, yields: bool | None) -> dict[str, Any]:
    """None: without products."""
    a, b = matrix(size), matrix(size)
    whole = kw.matmul(a, b)
    stopped, counts, last = threading.Event(), [0], [whole]

    def products() -> None:
        while not stopped.is_set():
            last[0] = kw.matmul(a, b)
            counts[0] += 1
            if counts[0] % 4 == 0:
                kw.current_stream().synchronize()

    with kw.schedule.Scheduler(yields=yields is not False) as scheduler:
        clock = Clock(scheduler)
        task = None
        if yields is not None:
            task = scheduler.submit(products, qos="best_effort")
            time.sleep(0.2)
        begin, before = time.perf_counter(), counts[0]
        row: dict[str, Any] = clock.rows(clock.times(SAMPLES))
        if task is not None:
            row["products_per_second"] = round((counts[0] - before) / (time.perf_counter() - begin))
            row["preemptions"] = task.stats["preemptions"]
            stopped.set()
            task.result()
            kw.synchronize()
            assert bool(kw.all(last[0] == whole)), "a product that yielded has other results"
    return row


def per_call(call: Callable[[], None], size: int) -> float:
    """Microseconds on the device of one product, the median of 15 runs."""
    calls = 1 if SIMULATED else max(1, 8 * (4096 // size) ** 3)
    times = []
    for _ in range(3 if SIMULATED else 15):
        begin = kw.current_stream().record()
        for _ in range(calls):
            call()
        end = kw.current_stream().record()
        end.synchronize()
        times.append(end.elapsed_ms(begin) / calls * 1e3)
    return float(np.median(times))


def cost(size: int) -> dict[str, float]:
    """What a product costs that is never told to yield. `as_task_us`: with the gaps
    between the launches of a task."""
    a, b = matrix(size), matrix(size)
    words = kw.zeros(2, "uint32")

    def yielding() -> None:
        words.fill(0)
        with kw.slices(2**31 - 1, words=words.ptr):
            kw.matmul(a, b)

    def plain() -> None:
        words.fill(0)
        kw.matmul(a, b)

    def as_task() -> float:
        count = 4 if SIMULATED else 400
        with kw.schedule.Scheduler(yields=True) as scheduler:

            def products() -> None:
                for _ in range(count):
                    kw.matmul(a, b)

            scheduler.submit(products, qos="best_effort").result()
            begin = time.perf_counter()
            scheduler.submit(products, qos="best_effort").result()
            return (time.perf_counter() - begin) / count * 1e6

    plain()
    yielding()
    rounds = [(per_call(plain, size), per_call(yielding, size)) for _ in range(5)]
    ratio = float(np.median([other / alone for alone, other in rounds]))
    return {
        "plain_us": round(float(np.median([alone for alone, _ in rounds])), 2),
        "yielding_us": round(float(np.median([other for _, other in rounds])), 2),
        "cost": round(ratio - 1, 4),
        "as_task_us": round(as_task(), 2),
    }


def starts() -> dict[str, Any]:
    return {
        f"{size}^3": {
            "alone": start(size, None),
            "slices": start(size, False),
            "yield words": start(size, True),
            "nobody asks": cost(size),
        }
        for size in SIZES
    } | {"mark_us": MARK_US, "mark_cost": MARK_COST}
