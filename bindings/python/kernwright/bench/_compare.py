"""compare(): two runs of the same benchmarks on the same device, row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernwright import _core
from kernwright.bench._run import device_facts
from kernwright.errors import InvalidArgument

_BAND = 0.01  # no smaller difference counts: two processes differ by that much
_DRAWS = 2000
_SAME_DEVICE = ("name", "compute_capability", "multiprocessors", "is_simulated")


def _is_row(row: Any) -> bool:
    return isinstance(row, Mapping) and {"name", "axes", "status"} <= row.keys()


def _key(row: Mapping[str, Any]) -> str:
    return json.dumps([row["name"], row["axes"]], sort_keys=True)


def ratio_interval(new: list[float], old: list[float]) -> tuple[float, float]:
    """The 95 % interval of median(new) / median(old), by a bootstrap of both (percentiles, the same
    draws each time)."""
    if len(new) == len(old) == 1:
        return new[0] / old[0], new[0] / old[0]
    draw = np.random.default_rng(0)

    def medians(samples: list[float]) -> Any:
        values = np.asarray(samples, float)
        return np.median(values[draw.integers(0, len(values), (_DRAWS, len(values)))], axis=1)

    ratios = medians(new) / medians(old)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)


def _samples(row: Mapping[str, Any]) -> list[float]:
    found = row.get("samples")
    if not isinstance(found, list) or not found:
        return []
    good = [float(v) for v in found if isinstance(v, (int, float)) and v > 0]
    return good if len(good) == len(found) else []


def _compared(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": new["name"], "axes": new["axes"], "ratio": None,
                             "interval": None}  # fmt: skip
    if new["status"] != "ok":
        worse = new["status"] != "skipped" and old.get("status") == "ok"
        return {**found, "verdict": "broken" if worse else new["status"]}
    mine, other = _samples(new), _samples(old)
    if old.get("status") != "ok" or not mine or not other:
        return {**found, "verdict": "new"}
    if new.get("unit") != old.get("unit") or new.get("policy") != old.get("policy"):
        return {**found, "verdict": "measured otherwise"}
    ratio = float(np.median(mine) / np.median(other))
    low, high = ratio_interval(mine, other)
    band = 0.0 if new.get("unit") == "counts" else _BAND
    if low > 1 + band:
        verdict = "slower"
    elif high < 1 - band:
        verdict = "faster"
    else:
        verdict = "same" if low >= 1 - band and high <= 1 + band else "unclear"
    return {**found, "verdict": verdict, "ratio": ratio, "interval": [low, high]}


def device_now() -> dict[str, Any]:
    """A run of nothing on the current device."""
    return {"device": device_facts(_core.current_device()), "rows": []}


def same_device(new: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Raises InvalidArgument where the two runs are of different devices."""
    mine, other = new.get("device") or {}, old.get("device") or {}
    for fact in _SAME_DEVICE:
        if mine.get(fact) != other.get(fact):
            raise InvalidArgument(
                f"the runs are of different devices: {fact.replace('_', ' ')} {mine.get(fact)} "
                f"here, {other.get(fact)} there; times of two devices are not compared"
            )


def compare(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each row of `new`, and each of `old` that has none there: name, axes, verdict, ratio (new
    / old) and its 95 % interval.

    Verdicts: "same" (within 1 %), "faster", "slower", "unclear" (the interval says neither),
    "broken" (was ok, is wrong or an error now), "wrong", "error", "skipped", "new", "gone", and
    "measured otherwise". Raises InvalidArgument for runs of different devices, for documents that
    are no runs, and for two runs without a common row.

    With the benchmark of the example of kw.bench.run:

    >>> before, after = kw.bench.run([double], quick=True), kw.bench.run([double], quick=True)
    >>> kw.bench.compare(after, before)[0]["verdict"]
    'same'
    """
    for document in (new, old):
        rows = document.get("rows") if isinstance(document, Mapping) else None
        if not isinstance(rows, list) or not all(map(_is_row, rows)):
            raise InvalidArgument("a run of benchmarks has rows: this is another document")
    same_device(new, old)
    known = {_key(row): row for row in old["rows"]}
    found = []
    for row in new["rows"]:
        other = known.pop(_key(row), {})
        found.append(_compared(row, other))
    if found and all(row["verdict"] == "new" for row in found):
        raise InvalidArgument("the runs have no benchmark in common: nothing to compare")
    for row in known.values():
        found.append({"name": row["name"], "axes": row["axes"], "ratio": None,
                      "interval": None, "verdict": "gone"})  # fmt: skip
    return found


def regressions(compared: list[dict[str, Any]], percent: float) -> list[dict[str, Any]]:
    """Rows slower by more than that, beyond noise, and rows that broke."""
    limit = 1 + percent / 100
    return [
        row for row in compared
        if row["verdict"] == "broken"
        or (row["ratio"] is not None and row["ratio"] > limit and row["interval"][0] > 1)
    ]  # fmt: skip
