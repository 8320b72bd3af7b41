"""What slices and yielding blocks cost, and how long urgent work waits beside them.

Costs: the time of a launch in slices, and with blocks that may be told to stop, divided by the time
of the plain launch, the kernels in turns; results are compared in all bits. Waits: a tiny kernel on
a stream of high priority, from its submission to its end, while a stream of low priority runs long
launches: plain, in slices, and told to stop first.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

LATENCY_US = 50.0
RUNS = 5
TEXT = r"""
__global__ void triad(const float* x, const float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + 2.5f * y[i];
}
__global__ void turn(const float* x, float* y, int n) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * n + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) y[(row + i) * n + column] = tile[threadIdx.x][threadIdx.y + i];
}
__global__ void busy(float* x, int rounds) {
    float v = threadIdx.x;
    for (int i = 0; i < rounds; ++i) v = v * 1.0001f + 0.5f;
    x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void tiny(int* x) { x[threadIdx.x] += 1; }
__global__ void tell(volatile unsigned* words, unsigned order) {
    words[0] = order;
    if (order == 0) words[1] = 0;
}
"""


def median_us(call: Callable[[], Any], calls: int) -> float:
    """Of one call, the device's time over a run of them."""
    start, end = kw.Event(), kw.Event()
    stream = kw.current_stream()
    times = []
    for _ in range(RUNS):
        start.record(stream)
        for _ in range(calls):
            call()
        end.record(stream)
        end.synchronize()
        times.append(1000 * end.elapsed_ms(start) / calls)
    return statistics.median(times)


def costs(
    plain: Callable[[], Any],
    cut: Callable[[int], Any],
    yielding: tuple[Callable[[], Any], Callable[[], Any]] | None,
    result: Callable[[], np.ndarray],
    blocks: int,
    calls: int,
) -> dict[str, Any]:
    """Of one kernel, by turns of the three."""
    plain()
    expected = result().tobytes()
    whole = median_us(plain, calls)
    size = kw.slice_blocks(blocks, whole, LATENCY_US)
    cut(size)
    equal = result().tobytes() == expected
    with kw.slices(size) as counts:
        plain()
    rows: dict[str, list[float]] = {"plain": [], "slices": [], "yielding": []}
    for _ in range(3):
        rows["plain"].append(median_us(plain, calls))
        rows["slices"].append(median_us(lambda: cut(size), calls))
        if yielding is not None:
            yielding[1]()
            rows["yielding"].append(median_us(yielding[0], calls))
    base = statistics.median(rows["plain"])
    document: dict[str, Any] = {"us": base, "blocks": blocks, "blocks of a slice": size}
    document["launches"] = {"plain": counts.launches, "slices": counts.queued}
    for name in ("slices", "yielding"):
        if rows[name]:
            document[name] = statistics.median(rows[name]) / base
    if yielding is not None:
        yielding[1]()
        yielding[0]()
        equal = equal and result().tobytes() == expected
    document["correct"] = equal
    return document


def kernel_row(
    kernel: kw.Kernel, grid: tuple[int, ...], block: Any, arguments: tuple[Any, ...], out: kw.Array,
    calls: int,
) -> dict[str, Any]:  # fmt: skip
    run = kernel[grid, block]
    sliced: dict[int, Any] = {}
    # Words for each launch between two resets, so that no reset is timed.
    words = kw.zeros(2 * RUNS * calls + 2, "uint32")
    going = [
        kernel.yielding(words[2 * i : 2 * i + 2])[grid, block] for i in range(RUNS * calls + 1)
    ]
    turn = itertools.count()

    def cut(size: int) -> None:
        if size not in sliced:
            sliced[size] = kernel.slice(size)[grid, block]
        sliced[size](*arguments)

    def reset() -> None:
        nonlocal turn
        words[...] = 0
        turn = itertools.count()

    def yielding() -> None:
        going[next(turn)](*arguments)

    blocks = int(np.prod(grid))
    plain = lambda: run(*arguments)  # noqa: E731
    return costs(plain, cut, (yielding, reset), out.numpy, blocks, calls)


def operation_row(call: Callable[[], kw.Array], blocks: int, calls: int) -> dict[str, Any]:
    kept: list[kw.Array] = []

    def plain() -> None:
        kept[:] = [call()]

    def cut(size: int) -> None:
        with kw.slices(size):
            plain()

    return costs(plain, cut, None, lambda: kept[0].numpy(), blocks, calls)


def waits(urgent: Callable[[], None], long: Callable[[], None], count: int) -> dict[str, float]:
    """Microseconds from the submission of urgent work to its end, beside long work."""
    times = []
    for _ in range(count):
        long()
        time.sleep(0.0003)  # the long work is on its way
        begin = time.perf_counter()
        urgent()
        times.append(1e6 * (time.perf_counter() - begin))
        kw.synchronize()
    times.sort()
    return {"p50": times[count // 2], "p99": times[-(-99 * count // 100) - 1]}


def beside(big: bool, half: kw.Array) -> dict[str, Any]:
    module = kw.module(TEXT)
    low, high = kw.Stream(priority=0), kw.Stream(priority=-5)
    count = kw.current_device().attributes["multiprocessor_count"]
    blocks, rounds, samples = (count * 8 * 20, 20000, 200) if big else (8, 10, 2)
    x, small = kw.zeros(blocks * 256), kw.zeros(32, "int32")
    words = kw.zeros(2, "uint32")
    mark, tell = module["tiny"][1, 32, high], module["tell"][1, 1, high]
    reset, start = module["tell"][1, 1, low], module["busy"][blocks, 256, low]
    start_slices = module["busy"].slice(count * 8)[blocks, 256, low]
    start_yielding = module["busy"].yielding(words)[blocks, 256, low]

    def urgent() -> None:
        mark(small)
        high.synchronize()

    def stop() -> None:
        tell(words, 1)
        urgent()

    def begin_yielding() -> None:
        reset(words, 0)
        start_yielding(x, rounds)

    def product() -> None:
        with low:
            half @ half

    def product_slices() -> None:
        with low, kw.slices(count):
            half @ half

    long = {
        "blocks": (urgent, lambda: start(x, rounds)),
        "blocks in slices": (urgent, lambda: start_slices(x, rounds)),
        "blocks told to stop": (stop, begin_yielding),
        "product": (urgent, product),
        "product in slices": (urgent, product_slices),
    }
    for first, second in long.values():  # compiled before anything is timed
        second()
        first()
        kw.synchronize()
    result = {"alone": waits(urgent, lambda: None, samples)}
    return result | {name: waits(*pair, samples) for name, pair in long.items()}


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "slices")
    big = not kw.current_device().is_simulated
    calls = 20 if big else 1
    n, side = (1 << 26, 8192) if big else (1 << 12, 64)
    module = kw.module(TEXT)
    x, y, z = kw.ones(n), kw.ones(n), kw.zeros(n)
    square, turned = kw.random.normal(shape=(side, side), seed=1), kw.zeros((side, side))
    half = square.astype("bfloat16")
    q = kw.random.normal(shape=(2, 16, side // 2, 64), seed=2).astype("bfloat16") if big else None
    tiles = -(-side // 128) * -(-side // 256)
    document: dict[str, Any] = {
        "subject": "slices",
        "machine": harness.machine(),
        "latency_us": LATENCY_US,
        "unit": "times the plain launch; waits in microseconds",
        "triad": kernel_row(module["triad"], (n // 256,), 256, (x, y, z, n), z, calls),
        "transpose": kernel_row(
            module["turn"], (side // 32, side // 32), (32, 8), (square, turned, side), turned, calls
        ),
        "exp": operation_row(lambda: kw.exp(square), side * side // 1024, calls),
        "softmax": operation_row(lambda: kw.nn.softmax(square), side, calls),
        "product of bfloat16": operation_row(lambda: half @ half, tiles, calls),
    }
    if q is not None:
        document["attention"] = operation_row(
            lambda: kw.nn.attention(q, q, q), 2 * 16 * side // 2 // 128, calls
        )
    document["waits"] = beside(big, half)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
