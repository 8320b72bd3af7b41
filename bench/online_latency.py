"""Requests to kernel.online() during tuning, and to the default configuration, bound once."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import harness
import kernwright as kw

TEXT = """
__global__ void triad(const float* a, const float* b, float* c, float s, int n) {
    int first = (blockIdx.x * BLOCK + threadIdx.x) * V;
#pragma unroll
    for (int i = first; i < first + V; ++i)
        if (i < n) c[i] = a[i] + s * b[i];
}
"""
GRID = "-(-n // (BLOCK * V))"
DEFAULT = {"BLOCK": 32, "V": 16}  # a slow one
ROUNDS = 4


def latencies(request: Callable[[], Any], count: int) -> list[float]:
    """Microseconds of each request: a launch, and the wait for it."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        request()
        kw.synchronize()
        found.append((time.perf_counter() - begin) * 1e6)
    return found


def summary(samples: list[float]) -> dict[str, float]:
    ordered = sorted(samples)

    def at(part: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))], 2)

    return {
        "p50": at(0.5),
        "p99": at(0.99),
        "p99.9": at(0.999),
        "worst": round(ordered[-1], 1),
        "mean": round(statistics.fmean(samples), 3),
    }


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "online_latency")
    simulated = kw.current_device().is_simulated
    n, count = (1 << 10, 2000) if simulated else (1 << 22, 100_000)
    kernel = kw.kernel(TEXT)
    space = kw.tune.Space(BLOCK=[32, 64, 128, 256, 512, 1024], V=[1, 2, 4, 8, 16])
    serve = kernel.online(space, overhead=0.02, grid=GRID, block="BLOCK", default=DEFAULT)
    a, b, c = (kw.ones(n, dtype="float32") for _ in range(3))
    bound = kw.kernel(TEXT, defines=DEFAULT)[-(-n // (32 * 16)), 32]
    plain: list[float] = []
    online: list[float] = []
    history = []
    latencies(lambda: bound(a, b, c, 2.0, n), 200)
    for _ in range(ROUNDS):
        plain += latencies(lambda: bound(a, b, c, 2.0, n), count // ROUNDS)
        online += latencies(lambda: serve(a, b, c, 2.0, n), count // ROUNDS)
        history.append({"trials": len(serve.trials), "overhead": round(serve.overhead, 4),
                        "frozen": serve.frozen, "config": dict(serve.config or {})})  # fmt: skip
        assert (c.numpy() == 3).all()
    extra = 0
    while not serve.frozen and extra < 10 * count:
        latencies(lambda: serve(a, b, c, 2.0, n), 1000)
        extra += 1000
    after = latencies(lambda: serve(a, b, c, 2.0, n), count // ROUNDS)
    statuses: dict[str, int] = {}
    for trial in serve.trials:
        statuses[trial.status] = statuses.get(trial.status, 0) + 1
    harness.write(
        options.output,
        {
            "subject": "online_latency",
            "unit": "us per request",
            "machine": harness.machine(),
            "requests": count,
            "results": {
                "default": summary(plain),
                "online, while it tunes": summary(online),
                "online, frozen": summary(after),
            },
            "budget": 0.02,
            "overhead": round(serve.overhead, 4),
            "requests until frozen": count + extra,
            "history": history,
            "statuses": statuses,
            "why": serve.why,
        },
    )


if __name__ == "__main__":
    main()
