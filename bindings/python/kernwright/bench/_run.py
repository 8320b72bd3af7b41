"""run(): measures benchmarks, and what came of it as one document."""

from __future__ import annotations

import datetime
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright.bench._benchmark import Benchmark, Case, Point, Skip
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound

VERSION = 1
_MOST_SAMPLES = 200
_QUICK = {"min_samples": 5, "max_samples": 20, "max_seconds": 0.1, "noise": 0.02}
_FULL = {"min_samples": 20, "max_samples": _MOST_SAMPLES, "max_seconds": 1.0, "noise": 0.002}

Row = dict[str, Any]


def device_facts(device: _core.Device) -> dict[str, Any]:
    """What two runs must share to be compared, and what they should."""
    major, minor = device.compute_capability
    return {
        "name": device.name,
        "compute_capability": f"{major}.{minor}",
        "multiprocessors": device.attributes["multiprocessor_count"],
        "is_simulated": device.is_simulated,
        "driver": device.driver_version,
    }


def _checked(case: Case) -> str | None:
    """Runs the case once; what is wrong with the result, or None."""
    case.run()
    _core.current_device().synchronize()
    if case.check is None:
        return None
    try:
        good = case.check()
    except AssertionError as error:
        first = str(error).strip().partition("\n")[0]
        return first or "the check failed"
    return "the check says no" if good is not None and not bool(good) else None


def _rates(case: Case, median_ms: float) -> Row:
    found: Row = {}
    if median_ms > 0 and case.bytes is not None:
        found["gb_per_s"] = case.bytes / median_ms / 1e6
    if median_ms > 0 and case.flops is not None:
        found["tflop_per_s"] = case.flops / median_ms / 1e9
    return found


def _measured(timer: Any, case: Case, effort: Mapping[str, Any]) -> Row:
    found = timer.measure(case.run, policy=case.policy, **effort)
    counts = found["counts"]
    if counts is not None:
        cost = float(counts["instructions"] + counts["transactions"])
        return {
            "unit": "counts", "median": cost, "interval": [cost, cost], "noise": 0.0,
            "samples": [cost], "counts": counts,
        }  # fmt: skip
    median = found["median_ms"]
    return {
        "unit": "ms", "median": median, "interval": list(found["interval_ms"]),
        "noise": found["noise"], "samples": found["times_ms"][:_MOST_SAMPLES],
        "throttled": found["is_throttled"], "sm_clock_mhz": found["sm_clock_mhz"],
        **_rates(case, median),
    }  # fmt: skip


def _row(bench: Benchmark, point: Point, timer: Any, effort: Mapping[str, Any]) -> Row:
    row: Row = {"name": bench.name, "axes": point, "status": "ok", "error": None, "checked": False}
    try:
        case = bench.case(point)
        wrong = _checked(case)
        row["checked"] = case.check is not None
        if wrong is not None:
            return {**row, "status": "wrong", "error": wrong}
        return {**row, "policy": case.policy, **_measured(timer, case, effort)}
    except Skip as reason:
        return {**row, "status": "skipped", "error": str(reason)}
    except Exception as error:
        # A benchmark is somebody's own code: the others are measured all the same.
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error}"
        return {
            **row,
            "status": "error",
            "error": text,
            "place": f"{where.filename}:{where.lineno}",
        }


def _axes(
    benchmarks: Sequence[Benchmark], axes: Mapping[str, Sequence[Any]] | None
) -> dict[str, Sequence[Any]]:
    chosen = dict(axes or {})
    known = {name for bench in benchmarks for name in bench.axes}
    for name, values in chosen.items():
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise NameNotFound(f"no benchmark has an axis {name!r}; there is: {listed}")
        if not values:
            raise InvalidArgument(f"no values are chosen for axis {name}")
    return chosen


def run(
    benchmarks: Iterable[Benchmark],
    *,
    axes: Mapping[str, Sequence[Any]] | None = None,
    quick: bool = False,
    progress: Callable[[Row], object] | None = None,
) -> dict[str, Any]:
    """Measures each benchmark at each of its points, on the current device; a document of JSON's
    types with `device`, `created` and `rows`.

    A row has name, axes, status ("ok", "wrong", "error", "skipped"), error; where it is ok also
    median, its 95 % interval, noise and samples in milliseconds. On the simulated device `unit` is
    "counts": instructions and memory transactions, the same in each run. `axes` replaces the values
    of some axes. `quick` takes few samples, of the first point of each benchmark alone.

    >>> @kw.bench.benchmark(n=[64])
    ... def double(n):
    ...     x = kw.ones(n)
    ...     return lambda: x * 2
    >>> kw.bench.run([double], quick=True)["rows"][0]["status"]
    'ok'
    """
    chosen = list(benchmarks)
    for bench in chosen:
        if not isinstance(bench, Benchmark):
            raise ArgumentError(f"run() wants benchmarks, got {type(bench).__name__}")
    names = [bench.name for bench in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgument(f"two benchmarks are named {twice[0]}: @benchmark(name=...)")
    replaced = _axes(chosen, axes)
    device = _core.current_device()
    timer = _core._Timer(device)
    effort = _QUICK if quick else _FULL
    rows: list[Row] = []
    for bench in chosen:
        points = list(bench.points(replaced))
        for point in points[:1] if quick else points:
            rows.append(_row(bench, point, timer, effort))
            if progress is not None:
                progress(rows[-1])
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "v": VERSION,
        "kind": "bench",
        "created": now.isoformat(timespec="seconds"),
        "kernwright": _core.__version__,
        "nvrtc": _core.nvrtc_status().get("version"),
        "device": device_facts(device),
        "rows": rows,
    }


def relative_width(row: Mapping[str, Any]) -> float:
    """Half the interval's width, as a part of the median."""
    low, high = row["interval"]
    return float((high - low) / 2 / (row["median"] or 1.0))
