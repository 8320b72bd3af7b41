"""Measures which kernel a product takes, for `tune=True` and for kw.tune.products()."""

from __future__ import annotations

import json
import pathlib
import threading
from collections.abc import Callable
from typing import Any

from kernwright import _core
from kernwright._measure.choice_table import update
from kernwright._measure.product_timer import ProductTimer, TimedProduct
from kernwright._support.warn import warn_caller
from kernwright.errors import Error, InvalidArgument

SECONDS = 0.1  # to measure one plan
# A plan replaces the rule where it is faster by more than this.
_GAIN = 0.02

_measuring = threading.Lock()
# What this process has measured: device, types, shape, plan.
_kept: list[tuple[str, str, str, list[Any]]] = []


def measure_plans(
    product: TimedProduct, seconds: float, copy: Callable[[int], TimedProduct] | None = None
) -> dict[str, Any]:
    """A row for the product: its names in tables, the times of all plans and of the rule, the best
    plan ([] for the rule). `copy` makes other operands for a cold L2 (see ProductTimer)."""
    types, shape, bucket, plans = _core._product(*product.key)
    timer = ProductTimer(product, seconds, copy)
    rule = timer.rule
    times: list[tuple[list[Any], float]] = []
    for plan in plans:
        try:
            times.append((plan, timer.milliseconds(plan)))
        except Error:  # the device refuses this plan alone
            continue
    best, least = min(times, key=lambda plan_time: plan_time[1], default=([], rule))
    wins = least < (1 - _GAIN) * rule
    return {
        "device": product.a.device.name,
        "types": types,
        "shape": shape,
        "bucket": bucket,
        "plans": [{"plan": plan, "ms": ms} for plan, ms in times],
        "rule_ms": rule,
        "best_ms": min(least, rule),
        "plan": best if wins else [],
    }


def write_plans(path: pathlib.Path, rows: list[dict[str, Any]], bucket: bool) -> None:
    """Puts the plans of the rows into the table of a file, for each shape and, where `bucket` is
    true, for the bucket of the shape too. Raises as update()."""

    def change(table: dict[str, Any]) -> None:
        for row in rows:
            device = table.setdefault("products", {}).setdefault(row["device"], {})
            plans = device.setdefault(row["types"], {})
            plans[row["shape"]] = row["plan"]
            if bucket:
                plans[row["bucket"]] = row["plan"]

    update(path, change)


def tune_product(a: Any, b: Any, run: Callable[[], object], precision: str | None = None) -> None:
    """Measures the product of `a` and `b` that `run` queues, unless a table has the product. The
    plan goes to the user's table on disk; without a folder for a table it stays in this process.
    While a stream is captured, nothing is measured."""
    product = TimedProduct(a, b, run, None, "tf32" if precision == "tf32" else "plain")
    if _core._has_product(*product.key) or _core.current_stream(a.device).is_capturing:
        return
    if not _core._product(*product.key)[3]:  # no choice
        return
    with _measuring:
        if _core._has_product(*product.key):
            return
        a.device.synchronize()
        row = measure_plans(product, SECONDS)
        if not _is_written(row):
            _keep_here(row)


def _is_written(row: dict[str, Any]) -> bool:
    name = _core._launch_table_path()
    if not name:
        return False
    try:
        write_plans(pathlib.Path(name), [row], bucket=False)
    except (OSError, InvalidArgument) as error:
        warn_caller(f"the measured product is kept in this process only: {error}")
        return False
    return True


def tune_layer(
    x: Any, weight: Any, run: Callable[[], object], precision: str | None = None
) -> None:
    """tune_product() for x @ weight.T, arrays of any library."""
    tune_product(*_core._layer_operands(x, weight), run, precision)


def _keep_here(row: dict[str, Any]) -> None:
    """Has this process alone use the plan of the row."""
    _kept.append((row["device"], row["types"], row["shape"], row["plan"]))
    table: dict[str, Any] = {}
    for device, types, shape, plan in _kept:
        table.setdefault(device, {}).setdefault(types, {})[shape] = plan
    text = json.dumps({"format": 1, "devices": {}, "products": table})
    _core._use_launch_table(text)
