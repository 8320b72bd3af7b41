"""Rows of a made-up tuning session, as a store has them: a search over known costs, with compile
lanes, one device, noise and failures."""

import math
import random
import statistics

from kernwright import tune

FAILURES = {
    "compile": 'fused.cu(12): error: identifier "tile_w" is undefined\n    x[tile_w] = 0;\n1 error',
    "constraints": "129 KiB of shared memory a block, the device has 99 KiB",
    "timeout": "the kernel ran longer than 2 s",
    "runtime": "illegal memory access in convolve\nblock (3, 0, 0), thread (17, 0, 0)",
    "correctness": "argument 2 differs at (0, 17): 1.25 instead of 1.0",
}


def small_space():
    space = tune.Space(
        block=[32, 64, 128, 256], tile=[1, 2, 4, 8], vec=[1, 2, 4], use_smem=[False, True]
    )
    return space.require("block * tile <= 1024")


def small_cost(config):
    """Milliseconds; None for what fails. `vec` hardly matters, `block` does most."""
    if config["block"] == 256 and config["vec"] == 4:
        return None
    block = abs(math.log2(config["block"] / 128))
    tile = abs(math.log2(config["tile"] / 4))
    return (
        0.4
        * (1 + 0.9 * block + 0.3 * tile + 0.01 * config["vec"])
        * (0.8 if config["use_smem"] else 1.0)
    )


class _Clock:
    """When each lane, and the device, is free again."""

    def __init__(self, lanes):
        self.lanes = [0.0] * lanes
        self.device = 0.0

    def compile(self, seconds):
        lane = self.lanes.index(min(self.lanes))
        begin = self.lanes[lane]
        self.lanes[lane] = begin + seconds
        return begin, begin + seconds

    def measure(self, ready, seconds):
        self.device = max(self.device, ready) + seconds
        return self.device


def _trial(number, config, cost, draw, clock, metrics):
    compile_s = draw.lognormvariate(-0.3, 0.6)
    begin, end = clock.compile(compile_s)
    row = {
        "v": 1, "kind": "trial", "session": "s1", "number": number, "config": dict(config),
        "status": "correct", "error": None, "compile_s": compile_s, "compile_started_s": begin,
        "compile_ended_s": end, "measure_s": 0.0, "verify_s": 0.0, "started_s": begin,
        "times_ms": [], "median_ms": None, "interval_ms": None, "score": None, "metrics": {},
    }  # fmt: skip
    if cost is None:
        status = draw.choice(list(FAILURES))
        spent = {"compile": 0.0, "constraints": 0.0, "timeout": 2.0}.get(status, 0.02)
        ended = clock.measure(end, spent) if spent else end
        return {
            **row, "status": status, "error": FAILURES[status], "ended_s": ended, "measure_s": spent
        }  # fmt: skip
    times = [cost * draw.lognormvariate(0, 0.004) for _ in range(12)]
    measure_s = 0.05 + 12 * cost / 1000
    ordered = sorted(times)
    row.update(
        times_ms=times, median_ms=statistics.median(times), interval_ms=[ordered[2], ordered[9]],
        score=statistics.median(times), measure_s=measure_s, verify_s=0.004,
        ended_s=clock.measure(end, measure_s + 0.004), code=f"{draw.getrandbits(64):016x}",
        resources={"registers": draw.randrange(24, 128), "shared_bytes": 4096, "local_bytes": 0},
    )  # fmt: skip
    if metrics:
        row["metrics"] = {"energy_mj": 90 * cost**0.5 * draw.lognormvariate(0, 0.1)}
    return row


def session_rows(
    space=None, cost=small_cost, count=60, *, seed=0, lanes=4, metrics=False, kernel="convolve"
):
    """A list of rows: the session, its trials, its result."""
    space = small_space() if space is None else space
    draw, clock = random.Random(seed), _Clock(lanes)
    search = tune.Strategy(space, "portfolio", seed=seed)
    session = {
        "v": 1, "kind": "session", "session": "s1", "kernel": kernel, "source": "5f2c9a7d11e0",
        "space": {"parameters": {n: list(v) for n, v in space.parameters.items()}, "hash": "c01"},
        "device": {"name": "NVIDIA Test 100", "major": 9, "minor": 0, "sm_count": 132,
                   "driver": 13000},
        "nvrtc": "13.0", "policy": "cold", "objective": "time", "strategy": "portfolio",
        "problem": {"n": 4096, "m": 4096}, "seed": seed, "budget": {"evaluations": count},
        "grid": "-(-n // (block * tile))", "block": "block", "started": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    rows = [session]
    while len(rows) <= count:
        for config in search.ask(1):
            made = _trial(len(rows) - 1, config, cost(config), draw, clock, metrics)
            search.tell(config, cost=made["score"])
            rows.append(made)
    good = sorted((r for r in rows[1:] if r["score"] is not None), key=lambda r: r["score"])
    if not good:
        return rows
    session["default"] = good[len(good) // 2]["config"]
    best = good[0]
    ties = [r["config"] for r in good[1:] if r["score"] < 1.01 * best["score"]]
    rows.append(
        {
            "v": 1, "kind": "result", "session": "s1", "kernel": kernel, "config": best["config"],
            "median_ms": best["median_ms"], "interval_ms": best["interval_ms"], "ties": ties,
            "default_ms": good[len(good) // 2]["median_ms"], "noise": 0.008, "reason": "budget",
            "evaluations": count, "seconds": max(r["ended_s"] for r in rows[1:]),
        }
    )  # fmt: skip
    return rows
