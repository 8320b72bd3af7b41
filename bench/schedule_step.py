"""Measures why a decoder's step takes longer as a task: bare, and with each part of a task.

Usage: python bench/schedule_step.py [--seconds 12] [-o FILE]

The graph of bench/schedule.py with nothing beside, in turns of 0.25 s: bare; its end polled; with
an event in front; as a task, awaited in three ways. Times are from a request to its end; where two
events stand around the graph, its time on the device, too.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import schedule

import harness
import kernwright as kw


def step_parts(seconds: float) -> dict[str, Any]:
    """A step with nothing beside: milliseconds from a request to its end, and on the device. Each
    kind has its turns of 0.25 s, so that all see the same clocks."""
    decoder = schedule.Decoder()
    stream = kw.Stream(-5)
    begin, end = kw.Event(), kw.Event()
    device: dict[str, list[float]] = {}

    def bare() -> None:
        decoder.graph.launch(stream)
        end.record(stream)
        end.synchronize()

    def polled() -> None:
        decoder.graph.launch(stream)
        end.record(stream)
        while not end.done:
            pass

    def polled_seldom() -> None:
        decoder.graph.launch(stream)
        end.record(stream)
        while not end.done:
            again = time.perf_counter() + 10e-6
            while time.perf_counter() < again:
                pass

    def begun() -> None:
        begin.record(stream)
        bare()
        device.setdefault("begin event", []).append(end.elapsed_ms(begin))

    with kw.schedule.Scheduler() as scheduler:

        def task() -> None:
            made = scheduler.submit(decoder.graph)
            made.result()
            device.setdefault("task", []).append(1e3 * made.stats["device"])

        def synchronized() -> None:
            scheduler.submit(decoder.graph)
            kw.synchronize()

        def called() -> None:
            scheduler.submit(decoder.graph.launch).result()

        kinds: dict[str, Callable[[], None]] = {
            "bare": bare, "polled": polled, "polled each 10 us": polled_seldom,
            "begin event": begun, "task": task, "task, device synchronized": synchronized,
            "task of a call": called,
        }  # fmt: skip
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(max(int(seconds / 0.25 / len(kinds)), 1)):
            for name, step in kinds.items():
                for _ in range(3):
                    step()
                times[name] += schedule.requests(step, 0.25)
    decoder.check()
    rows: dict[str, Any] = {name: schedule.percentiles(found) for name, found in times.items()}
    for name, found in device.items():
        rows[name]["device_p50_ms"] = round(float(np.median(found)), 4)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2 if schedule.SIMULATED else 12)
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=harness.RESULTS / "schedule_step.json"
    )
    options = parser.parse_args()
    document = {"machine": harness.machine(), "step": step_parts(options.seconds)}
    harness.write(options.output, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
