"""Partitions: making them, launches and graphs inside, and a small kernel beside a full device."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

SOURCE = r"""
extern "C" __global__ void add(float* x, float v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += v;
}
// Lasts as long at every clock rate; its shared memory keeps a second block off a multiprocessor.
extern "C" __global__ void hold(long long nanoseconds, int* done) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while ((long long)(now - start) < nanoseconds);
    if (threadIdx.x == 0) atomicAdd(done, 1);
}"""
N = 1024
KERNELS = 100


def microseconds(call: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Of each call by itself; what it returns goes before the next one, outside of the time."""
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        made = call()
        samples.append((time.perf_counter() - start) * 1e6)
        del made
        gc.collect()
    return {"min": round(min(samples), 1), "median": round(statistics.median(samples), 1)}


def division(device: kw.Device, sizes: list[int | None]) -> dict[str, Any]:
    """Sizes asked and given, and whether a kernel saw multiprocessors of two partitions."""
    parts = device.partitions(sizes)
    places = [set(part.smids()) for part in parts]
    return {
        "asked": sizes,
        "given": [part.sms for part in parts],
        "seen": [len(each) for each in places],
        "disjoint": sum(map(len, places)) == len(set().union(*places)),
        "multiprocessors": [sorted(each) for each in places],
    }


def making(device: kw.Device, rounds: int) -> dict[str, Any]:
    start = time.perf_counter()
    parts = device.partitions([8, None])
    first = (time.perf_counter() - start) * 1e6
    times = {
        "stream of a partition": microseconds(parts[0].stream, rounds),
        "stream of the device": microseconds(kw.Stream, rounds),
    }
    del parts
    gc.collect()
    return {
        "two partitions, the first time": {"min": round(first, 1)},
        "two partitions": microseconds(lambda: device.partitions([8, None]), rounds),
        **times,
    }


def launches(device: kw.Device, parts: list[kw.Partition]) -> dict[str, Any]:
    """Host time of a launch, and of a graph of 100 kernels until it is done."""
    add, x = kw.module(SOURCE)["add"], kw.zeros(N)
    streams = {"device": kw.Stream(), "partition": parts[0].stream()}
    device.synchronize()
    single, graphs = {}, {}
    for name, stream in streams.items():
        run = add[4, 256, stream]
        single[name] = lambda run=run: run(x, 1.0, N)
        graph = kw.Graph()
        with graph.capture(stream):
            for _ in range(KERNELS):
                add[4, 256](x, 0.0, N)

        def replay(graph: kw.Graph = graph, stream: kw.Stream = stream) -> None:
            graph.launch(stream)
            stream.synchronize()

        graphs[name] = replay
    calls = 2 if device.is_simulated else 2000
    return {
        "launch": harness.alternate(single, device.synchronize, calls=calls, reference="device"),
        f"graph of {KERNELS} kernels until done": harness.alternate(
            graphs, device.synchronize, calls=max(1, calls // 20), reference="device"
        ),
    }


def beside(device: kw.Device, parts: list[kw.Partition], rounds: int) -> dict[str, Any]:
    """From its launch to its end, for a kernel of 20 us while the rest of the device is full."""
    hold, done = kw.module(SOURCE)["hold"], kw.zeros(1, "i4")
    room = device.attributes.max_shared_memory_per_block_optin * 3 // 4
    total, rest = device.attributes.multiprocessor_count, parts[1]
    cases = {
        "alone": (kw.Stream(), None, 0),
        "same priority": (kw.Stream(), kw.Stream(), total),
        "high priority": (kw.Stream("high"), kw.Stream("low"), total),
        "partition": (parts[0].stream(), rest.stream(), rest.sms),
    }
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name, (small, full, count) in cases.items():
            device.synchronize()
            if full is not None:  # two waves of blocks that last 1 ms each
                hold[2 * count, 32, full, room](1_000_000, done)
                time.sleep(3e-4)
            begin = time.perf_counter()
            hold[1, 32, small, room](20_000, done)
            small.synchronize()
            if turn > 0:
                samples[name].append((time.perf_counter() - begin) * 1e6)
    return {
        name: {"median": round(statistics.median(v), 1), "worst": round(max(v), 1)}
        for name, v in samples.items()
    }


def works_inside(parts: list[kw.Partition]) -> bool:
    a = np.random.default_rng(1).standard_normal((256, 192)).astype(np.float32)
    x = kw.asarray(a)
    expected = (x @ x.T).numpy()
    kw.synchronize()
    with parts[0].stream():
        inside = (x @ x.T).numpy()
    return bool(np.array_equal(inside, expected) and np.allclose(inside, a @ a.T, atol=1e-3))


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "partitions")
    device = kw.current_device()
    rules = device.partition_rules
    rounds = 5 if device.is_simulated else 100
    document: dict[str, Any] = {
        "subject": "partitions",
        "unit": "us",
        "machine": harness.machine(),
        "rules": rules._asdict(),
        "priorities": device.priority_range,
        "making": making(device, rounds),
    }
    half = rules.multiprocessors // 2
    document["divisions"] = [
        division(device, sizes)
        for sizes in ([8, None], [8, rules.multiprocessors - 8], [16, 32, half], [None])
    ]
    parts = device.partitions([8, None])
    document["right inside"] = works_inside(parts)
    document["inside"] = launches(device, parts)
    if not device.is_simulated:
        document["beside"] = beside(device, parts, rounds)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
