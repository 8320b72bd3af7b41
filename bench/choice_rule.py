"""The rule against the table: products of the shipped table, by its plan and by the rule's.

A seeded sample of the shapes in kernels_src/launch_choices.json for this device, the types in turn,
until --seconds are over. Both plans of a shape are measured in turns with a cold L2, short ones by
graphs over copies of the operands; the ratio is the median of the rounds' ratios, the time of the
rule divided by that of the table. Shapes for which the table has the rule ([]) have the ratio 1 and
are not measured. Whole waves of compiles go ahead of the measurements.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import json
import math
import os
import pathlib
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import harness
import kernwright as kw
from kernwright import _core
from kernwright._measure.product_timer import ProductTimer, TimedProduct
from kernwright.tune._product_operands import operands

TABLE = pathlib.Path(__file__).parent.parent / "kernels_src" / "launch_choices.json"
ROUNDS = 5
SHARE = 0.012  # seconds of one time
KINDS = {  # of _product_operands by the key's types
    "float32.float32.float32.nt.tf32": "tf32",
    "float8_e4m3fn.float8_e4m3fn.bfloat16.nt": "float8_e4m3fn.fast",
    "float8_e4m3fn.float8_e4m3fn.bfloat16.nt.promoted": "float8_e4m3fn",
    "float8_e4m3fn.float8_e4m3fn.bfloat16.nt.blocks": "float8_e4m3fn.blocks",
    "int8.int8.int32.nt": "int8",
}


def entries(device: kw.Device) -> dict[str, dict[str, list[Any]]]:
    """The exact shapes of the device's table, by types; the simulated device has those of the
    first one, for a test of this file."""
    products = json.loads(TABLE.read_text())["products"]
    name = next(iter(products)) if device.is_simulated else device.name
    if name not in products:
        raise SystemExit(f"{TABLE} has no products of {name!r}, but those of {', '.join(products)}")
    return {
        types: {shape: plan for shape, plan in entry.items() if not shape.startswith("~")}
        for types, entry in products[name].items()
    }


def sample(table: dict[str, dict[str, list[Any]]], seed: int) -> Iterator[tuple[str, str]]:
    """Types and shapes that have a plan: one of each type, then the next of each."""
    queues = []
    for types, entry in sorted(table.items()):
        shapes = sorted(shape for shape, plan in entry.items() if plan)
        random.Random(f"{seed} {types}").shuffle(shapes)
        queues.append((types, shapes))
    while any(shapes for _, shapes in queues):
        for types, shapes in queues:
            if shapes:
                yield types, shapes.pop()


def made(types: str, shape: str, number: int = 0) -> TimedProduct:
    m, n, k = map(int, shape.split("x"))
    kind = KINDS.get(types, types.partition(".")[0])
    return operands(kind, (m, n, k), ".nt" in types, kw.current_device(), number)


def compile_both(product: TimedProduct, plan: list[Any]) -> None:
    for each in (plan, []):
        _core._with_product(each, functools.partial(_core._compile_only, product.run))


def measure(types: str, shape: str, product: TimedProduct, plan: list[Any]) -> dict[str, Any]:
    timer = ProductTimer(product, SHARE, functools.partial(made, types, shape))
    rounds = [[timer.milliseconds(each) for each in ([], plan)] for _ in range(ROUNDS)]
    ratio = statistics.median(rule / table for rule, table in rounds)
    rule, table = (statistics.median(times) * 1e3 for times in zip(*rounds, strict=True))
    return {"rule, us": round(rule, 2), "table, us": round(table, 2), "ratio": round(ratio, 4)}


def geometric_mean(ratios: list[float]) -> float:
    return round(math.exp(statistics.fmean(map(math.log, ratios))), 4) if ratios else 1.0


def summary(rows: list[dict[str, Any]], table: dict[str, Any]) -> dict[str, Any]:
    """By types: shapes of the table, those with a plan, those measured, the mean of these, and the
    mean of all with 1 for shapes that have the rule."""
    result = {}
    for types, entry in table.items():
        ratios = [row["ratio"] for row in rows if row["types"] == types]
        planned = sum(bool(plan) for plan in entry.values())
        mean = geometric_mean(ratios)
        result[types] = {
            "shapes": len(entry),
            "with a plan": planned,
            "measured": len(ratios),
            "mean of measured": mean,
            "mean": round(mean ** (planned / len(entry)), 4),
        }
    return result


def waves(
    chosen: Iterator[tuple[str, str]], table: dict[str, Any], most: int
) -> Iterator[list[tuple[str, str, TimedProduct]]]:
    """The next shapes with their kernels compiled, as many at once as there are processors."""
    size = max(2, min(most, len(os.sched_getaffinity(0))))
    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        while True:
            wave = [(*entry, made(*entry)) for _, entry in zip(range(size), chosen, strict=False)]
            if not wave:
                return
            plans = [table[types][shape] for types, shape, _ in wave]
            list(pool.map(compile_both, [product for *_, product in wave], plans))
            yield wave


def measured(
    table: dict[str, Any], seed: int, seconds: float, fits: Callable[[str], bool]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    end = time.monotonic() + seconds
    chosen = (entry for entry in sample(table, seed) if fits(entry[1]))
    for wave in waves(chosen, table, 16):
        for types, shape, product in wave:
            if time.monotonic() > end:
                return rows
            plan = table[types][shape]
            row = {
                "types": types,
                "shape": shape,
                "plan": plan,
                **measure(types, shape, product, plan),
            }
            rows.append(row)
            print(f"{types} {shape}: {row['ratio']:.3f}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    output = harness.RESULTS / "choice_rule.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=output)
    options = parser.parse_args()
    device = kw.current_device()
    table = entries(device)
    most = 2**23 if device.is_simulated else 2**42

    def fits(shape: str) -> bool:
        return math.prod(map(int, shape.split("x"))) <= most

    rows = measured(table, options.seed, options.seconds, fits)
    ratios = [row["ratio"] for row in rows]
    by_types = summary(rows, table)
    logs = [
        entry["shapes"] * math.log(entry["mean"])
        for entry in by_types.values()
        if entry["measured"]
    ]
    shapes = sum(entry["shapes"] for entry in by_types.values() if entry["measured"])
    document = {
        "subject": "choice_rule",
        "machine": harness.machine(),
        "seed": options.seed,
        "mean of measured": geometric_mean(ratios),
        "mean of the table": round(math.exp(sum(logs) / shapes), 4) if shapes else 1.0,
        "types": by_types,
        "worst": sorted(rows, key=lambda row: -row["ratio"])[:10],
        "rows": rows,
    }
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
