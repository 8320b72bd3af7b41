"""Tasks that share one device: latency beside best effort, shares, the cost of a submission.

Usage: python bench/schedule.py [--parts latency,start,shares,submit,await,evict] [--seconds 6]
                               [-o FILE]

latency: the step of a decoder with 1 B parameters (bfloat16, one row, a graph), begun at random
every 5 ms, beside endless products of 8192^3: the 50th and 99th percentile of the time from a
request to its end, and the products a second. p99_of_alone of the scheduler is by steps alone right
before and right after. Beside the scheduler: one stream for both, streams with priorities,
partitions of 8 multiprocessors and of the rest, the same in torch, and the products in another
process. start: see schedule_start.py. shares: products of 4096^3 by tenants with shares. submit,
await: see schedule_submit.py. evict: 8 GB to the host and back. Each result is checked. On the
simulated device sizes are small and times mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import schedule_start
import schedule_submit

import harness
import kernwright as kw

SIMULATED = kw.current_device().is_simulated
WIDTH, HIDDEN, LAYERS = (64, 128, 2) if SIMULATED else (2048, 8192, 16)
PRODUCT, SMALL_PRODUCT = (64, 64) if SIMULATED else (8192, 4096)
INTERVAL = 0.005  # seconds between requests, on average
SHARES = ((0.3, 0.7), (0.1, 0.9), (0.2, 0.3, 0.5))


def matrix(*shape: int) -> kw.Array:
    return (kw.random.normal(shape=shape, dtype="float32", seed=sum(shape)) * 0.02).astype(
        "bfloat16"
    )


class Decoder:
    """One step as a graph: 16 layers of projections, a gated network, residuals."""

    def __init__(self) -> None:
        self.layers = [
            [matrix(WIDTH, WIDTH) for _ in range(4)]
            + [matrix(HIDDEN, WIDTH), matrix(HIDDEN, WIDTH), matrix(WIDTH, HIDDEN)]
            for _ in range(LAYERS)
        ]
        self.x = matrix(1, WIDTH)
        self.graph = kw.Graph()
        self.run()
        with self.graph.capture(kw.Stream()):
            self.y = self.run()
        self.expected = self.run().numpy()
        assert np.isfinite(self.expected.astype(np.float32)).all()

    def run(self) -> kw.Array:
        x = self.x
        for query, key, value, out, gate, up, down in self.layers:
            y = kw.nn.rms_norm(x)
            mixed = kw.nn.linear(y, query) + kw.nn.linear(y, key) + kw.nn.linear(y, value)
            x = x + kw.nn.linear(mixed, out)
            y = kw.nn.rms_norm(x)
            x = x + kw.nn.linear(kw.nn.silu(kw.nn.linear(y, gate)) * kw.nn.linear(y, up), down)
        return x

    def check(self) -> None:
        assert np.array_equal(self.y.numpy(), self.expected), "a step under load has other results"


class Products:
    """Endless products with at most `depth` of them queued."""

    def __init__(self, size: int, depth: int = 3) -> None:
        self.a, self.b = matrix(size, size), matrix(size, size)
        self.count, self.depth, self.stopped = 0, depth, threading.Event()
        self.last: kw.Array | None = None
        self.expected = kw.matmul(self.a, self.b)

    def loop(self) -> None:
        """On the current stream."""
        marks: list[kw.Event] = []
        while not self.stopped.is_set():
            self.last = kw.matmul(self.a, self.b)
            marks.append(kw.current_stream().record())
            if len(marks) > self.depth:
                marks.pop(0).synchronize()
                self.count += 1

    def stop(self) -> None:
        self.stopped.set()

    def check(self) -> None:
        kw.synchronize()
        assert self.last is not None
        assert bool(kw.all(self.last == self.expected)), "a product under load has other results"


def requests(step: Callable[[], None], seconds: float) -> list[float]:
    """Milliseconds from each request to its end; requests come at random and may queue."""
    draw = random.Random(7)
    times, due = [], time.perf_counter() + INTERVAL
    end = time.perf_counter() + seconds
    while due < end:
        while (left := due - time.perf_counter()) > 0:  # other threads get the interpreter
            time.sleep(left - 0.0003 if left > 0.0005 else 0)
        step()
        times.append((time.perf_counter() - due) * 1e3)
        due += draw.expovariate(1 / INTERVAL)
    return times


def percentiles(times: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(times, [50, 99])
    return {"p50_ms": round(float(p50), 4), "p99_ms": round(float(p99), 4), "samples": len(times)}


@contextlib.contextmanager
def in_thread(work: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        time.sleep(0.2)
        yield
    finally:
        stop()
        thread.join()


def beside(
    load: Products, work: Callable[[], None], step: Callable[[], None], seconds: float
) -> Any:
    """Percentiles of the steps, and products a second, while `work` runs in a thread."""
    with in_thread(work, load.stop):
        before, begin = load.count, time.perf_counter()
        result = percentiles(requests(step, seconds))
        result["products_per_second"] = round(
            (load.count - before) / (time.perf_counter() - begin), 1
        )
    load.check()
    return result


def on_streams(decoder: Decoder, seconds: float, urgent: kw.Stream, low: kw.Stream) -> Any:
    load = Products(PRODUCT)

    def work() -> None:
        with low:
            load.loop()

    def step() -> None:
        decoder.graph.launch(urgent)
        urgent.record().synchronize()

    return beside(load, work, step, seconds)


def in_partitions(decoder: Decoder, seconds: float) -> Any:
    """The graph is replayed on the multiprocessors of the stream that it was captured on."""
    small, rest = kw.current_device().partitions([8, None])
    urgent, graph = small.stream(), kw.Graph()
    with graph.capture(urgent):
        y = decoder.run()
    graph.launch(urgent)
    urgent.synchronize()
    expected = y.numpy()
    load = Products(PRODUCT)

    def work() -> None:
        with rest.stream():
            load.loop()

    def step() -> None:
        graph.launch(urgent)
        urgent.record().synchronize()

    row = beside(load, work, step, seconds)
    assert np.array_equal(y.numpy(), expected), "a step in a partition has other results"
    return row


def scheduled(decoder: Decoder, seconds: float, **options: Any) -> Any:
    load = Products(PRODUCT)
    with kw.schedule.Scheduler(**options) as scheduler:
        task = scheduler.submit(load.loop, qos="best_effort", name="products")
        result = beside(
            load, task.exception, lambda: scheduler.submit(decoder.graph).result(), seconds
        )
        result["preemptions"] = task.stats["preemptions"]
    return result


def products_alone(seconds: float) -> float:
    load = Products(PRODUCT)
    with in_thread(load.loop, load.stop):
        before, begin = load.count, time.perf_counter()
        time.sleep(seconds)
        return round((load.count - before) / (time.perf_counter() - begin), 1)


def other_process() -> None:
    """The products of the other process, until its input ends."""
    load = Products(PRODUCT)
    threading.Thread(target=lambda: (sys.stdin.read(), load.stop()), daemon=True).start()
    print("ready", flush=True)
    begin = time.perf_counter()
    with kw.Stream():
        load.loop()
    print(load.count / (time.perf_counter() - begin), flush=True)


def two_processes(step: Callable[[], None], seconds: float) -> Any:
    here = [sys.executable, str(pathlib.Path(__file__).resolve()), "--other-process"]
    with subprocess.Popen(here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        time.sleep(0.2)
        result = percentiles(requests(step, seconds))
        other.stdin.close()
        result["products_per_second"] = round(float(other.stdout.readline()), 1)
    return result


def torch_streams(seconds: float) -> Any:
    """The same step and products in torch: a graph on a stream of high priority."""
    import torch
    import torch.nn.functional as nn

    def torch_matrix(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02

    layers = [
        [torch_matrix(WIDTH, WIDTH) for _ in range(4)]
        + [torch_matrix(HIDDEN, WIDTH), torch_matrix(HIDDEN, WIDTH), torch_matrix(WIDTH, HIDDEN)]
        for _ in range(LAYERS)
    ]
    first = torch_matrix(1, WIDTH)

    def run() -> Any:
        x = first
        for query, key, value, out, gate, up, down in layers:
            y = nn.rms_norm(x, (WIDTH,))
            mixed = nn.linear(y, query) + nn.linear(y, key) + nn.linear(y, value)
            x = x + nn.linear(mixed, out)
            y = nn.rms_norm(x, (WIDTH,))
            x = x + nn.linear(nn.silu(nn.linear(y, gate)) * nn.linear(y, up), down)
        return x

    urgent, low = torch.cuda.Stream(priority=-5), torch.cuda.Stream(priority=0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(urgent):
        run()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=urgent):
        run()
    stopped, count = threading.Event(), [0]
    a, b = torch_matrix(PRODUCT, PRODUCT), torch_matrix(PRODUCT, PRODUCT)

    def step() -> None:
        with torch.cuda.stream(urgent):
            graph.replay()
        urgent.synchronize()

    def work() -> None:
        marks: list[Any] = []
        with torch.cuda.stream(low):
            while not stopped.is_set():
                torch.matmul(a, b)
                marks.append(low.record_event())
                if len(marks) > 3:
                    marks.pop(0).synchronize()
                    count[0] += 1

    alone = percentiles(requests(step, seconds))
    with in_thread(work, stopped.set):
        before, begin = count[0], time.perf_counter()
        result = percentiles(requests(step, seconds))
        result["products_per_second"] = round(
            (count[0] - before) / (time.perf_counter() - begin), 1
        )
    torch.cuda.synchronize()
    result["p99_alone_ms"] = alone["p99_ms"]
    return result


def latency(seconds: float) -> dict[str, Any]:
    decoder = Decoder()
    urgent = kw.Stream(-5)

    def step() -> None:
        decoder.graph.launch(urgent)
        urgent.record().synchronize()

    rows: dict[str, Any] = {"products_alone_per_second": products_alone(min(seconds, 2))}
    requests(step, 0.2)
    rows["alone"] = last = percentiles(requests(step, seconds))

    def as_task() -> Any:
        with kw.schedule.Scheduler() as scheduler:
            return percentiles(requests(lambda: scheduler.submit(decoder.graph).result(), seconds))

    measures: dict[str, Callable[[], Any]] = {
        "scheduler": lambda: scheduled(decoder, seconds),
        "scheduler, yields": lambda: scheduled(decoder, seconds, yields=True),
        "scheduler, strict": lambda: scheduled(decoder, seconds, policy="strict"),
        "scheduler, alone": as_task,
    }
    for name, measure in measures.items():
        rows[name] = measure()
        # A device's clocks drift: by the steps alone right before and right after.
        before, last = last, percentiles(requests(step, seconds))
        rows[name]["p99_beside_ms"] = round((before["p99_ms"] + last["p99_ms"]) / 2, 4)
    rows["one stream"] = on_streams(decoder, seconds, urgent, urgent)
    rows["priority streams"] = on_streams(decoder, seconds, urgent, kw.Stream(0))
    rows["partitions 8/124"] = in_partitions(decoder, seconds)
    if not SIMULATED:
        rows["two processes"] = two_processes(step, seconds)
        with contextlib.suppress(ImportError):
            rows["torch streams"] = torch_streams(seconds / 2)
    decoder.check()
    for row in rows.values():
        if isinstance(row, dict):
            alone = row.get("p99_alone_ms", row.get("p99_beside_ms", rows["alone"]["p99_ms"]))
            row["p99_of_alone"] = round(row["p99_ms"] / alone, 3)
            if "products_per_second" in row:
                rate = row["products_per_second"] / rows["products_alone_per_second"]
                row["products_of_alone"] = round(rate, 3)
    return rows


def share_rows(shares: tuple[float, ...], seconds: float) -> dict[str, Any]:
    """The parts of the device's time that tenants got; samples of the two windows."""
    loads = [Products(SMALL_PRODUCT, 8) for _ in shares]
    names = [f"tenant {i}" for i in range(len(shares))]
    second, slot = [], []
    with kw.schedule.Scheduler(policy="weighted") as scheduler:
        tasks = []
        for load, share, name in zip(loads, shares, names, strict=True):
            tasks.append(
                scheduler.submit(load.loop, qos="best_effort", share=(share, 1.0), model=name)
            )
        time.sleep(1.2)
        counts, begin = [load.count for load in loads], time.perf_counter()
        while time.perf_counter() - begin < seconds:
            time.sleep(0.03)
            tenants = scheduler.stats()["tenants"]
            second.append([tenants[name]["used"] for name in names])
            slot.append([tenants[name]["used_10ms"] for name in names])
        done = [load.count - count for load, count in zip(loads, counts, strict=True)]
        for load in loads:
            load.stop()
        for task in tasks:
            task.result()
    for load in loads:
        load.check()
    got = np.array(done) / max(sum(done), 1)
    off = {
        name: np.abs(
            np.array(rows) / np.maximum(np.sum(rows, axis=1, keepdims=True), 1e-9) - shares
        )
        for name, rows in (("second", second), ("10ms", slot))
    }
    return {
        "asked": list(shares),
        "got": [round(float(each), 4) for each in got],
        "busy": round(float(np.mean(np.sum(second, axis=1))), 3),
        "worst_of_a_second_points": round(100 * float(off["second"].max()), 2),
        "p95_of_10ms_points": round(100 * float(np.percentile(off["10ms"], 95)), 2),
        "worst_of_10ms_points": round(100 * float(off["10ms"].max()), 2),
    }


def evict() -> dict[str, Any]:
    count = 1000 if SIMULATED else 2 * 10**9
    x = kw.arange(count, dtype="int32")
    total = int(kw.sum(x.astype("int64") if SIMULATED else x[:1000]).numpy())
    held = kw.memory.Evictable(x)
    del x
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        assert held.evict()
        middle = time.perf_counter()
        pin = held.pin()
        times.append((middle - begin, time.perf_counter() - middle))
        again = int(kw.sum(pin.astype("int64") if SIMULATED else pin[:1000]).numpy())
        assert again == total, "the restored content differs"
        del pin
    size = held.nbytes / 1e9
    out, back = (min(column) for column in zip(*times, strict=True))
    return {
        "gigabytes": size,
        "evict_gbs": round(size / out, 2),
        "restore_gbs": round(size / back, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="latency,start,shares,submit,await,evict")
    parser.add_argument("--seconds", type=float, default=0.2 if SIMULATED else 6)
    parser.add_argument("--other-process", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=harness.RESULTS / "schedule.json"
    )
    options = parser.parse_args()
    if options.other_process:
        other_process()
        return 0
    document: dict[str, Any] = {"machine": harness.machine()}
    parts: dict[str, Callable[[], Any]] = {
        "latency": lambda: latency(options.seconds),
        "start": schedule_start.starts,
        "shares": lambda: [share_rows(shares, options.seconds / 2) for shares in SHARES],
        "submit": schedule_submit.submit_cost,
        "await": schedule_submit.await_cost,
        "evict": evict,
    }
    for name in options.parts.split(","):
        document[name] = parts[name]()
        harness.save(options.output, document)
    harness.write(options.output, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
