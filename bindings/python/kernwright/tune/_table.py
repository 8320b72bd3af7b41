"""Table: what every configuration of a space cost, to replay searches without a GPU."""

from __future__ import annotations

import gzip
import json
import math
import os
import statistics
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from kernwright._support.files import read_bytes
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._kernel_tuner.cache import KernelTunerCache, checked_cost
from kernwright.tune._space import Space
from kernwright.tune._strategy import Strategy


def _cost(row: Mapping[str, Any], objective: str) -> float | None:
    """What a row of a T4 file measured; None where it failed."""
    if row.get("invalidity", "correct") != "correct":
        return None
    for measurement in row.get("measurements") or ():
        if measurement.get("name") == objective:
            value = float(measurement["value"])
            return checked_cost(objective, value) if math.isfinite(value) else None
    times = (row.get("times") or {}).get("runtimes") or ()
    if objective != "time" or not times:
        raise InvalidArgument(f"a valid configuration has no measurement {objective!r}")
    return checked_cost(objective, statistics.fmean(checked_cost("time", t) for t in times))


def _read(row: Any, objective: str, place: int) -> tuple[Config, float | None]:
    """Raises InvalidArgument with the number of the wrong result."""
    if not isinstance(row, Mapping) or not isinstance(row.get("configuration"), Mapping):
        raise InvalidArgument(f'result {place + 1} of the T4 file has no "configuration"')
    try:
        return Config(row["configuration"]), _cost(row, objective)
    except InvalidArgument:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(
            f"result {place + 1} of the T4 file cannot be read: {type(error).__name__}: {error}"
        ) from None


class Table:
    """Costs of configurations, as a brute-force session leaves them.

    After the example of kw.tune.Session:

    >>> session.export("t4.json")
    >>> table = kw.tune.Table.from_t4("t4.json")
    >>> table.replay("random", 3, seed=1)[-1] == table.best_cost
    True
    """

    def __init__(self, costs: Mapping[Config, float | None]) -> None:
        """`costs`: of each configuration, None for one that failed."""
        if not isinstance(costs, Mapping):
            raise ArgumentError(f"Table(costs) wants a mapping, got {type(costs).__name__}")
        for config, cost in costs.items():
            if cost is not None and not isinstance(cost, (int, float)):
                raise ArgumentError(f"the cost of {config} is a number or None, got {cost!r}")
            if cost is not None and math.isnan(cost):
                raise InvalidArgument(f"the cost of {config} is NaN: write None where it failed")
        valid = [cost for cost in costs.values() if cost is not None]
        if not valid:
            raise InvalidArgument("a table wants at least one configuration that did not fail")
        self.costs = dict(costs)
        self.space = Space.from_configurations(self.costs)
        self.best_cost = min(valid)

    @classmethod
    def from_t4(cls, path: str | os.PathLike[str], objective: str = "time") -> Table:
        """Of a T4 file (JSON, also .gz) as Kernel Tuner and the benchmark hub write it: rows with
        `configuration`, `invalidity` and `measurements`. Or of a cache file of Kernel Tuner, also
        of a session that was cut off. InvalidArgument for another document and for times of 0 or
        below, StoreError for a file that cannot be read."""
        data = read_bytes(path)
        name = os.fspath(path)
        try:
            if data[:2] == b"\x1f\x8b":
                data = gzip.decompress(data)
            if KernelTunerCache.is_cache(data):
                return cls(KernelTunerCache(data, name).costs(objective))
            document = json.loads(data)
        except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(f"{name} is no JSON: {error}") from None
        rows = document.get("results") if isinstance(document, dict) else None
        if not isinstance(rows, list):
            raise InvalidArgument(f'{name} is no T4 file: it has no list "results"')
        try:
            return cls(dict(_read(row, objective, place) for place, row in enumerate(rows)))
        except (InvalidArgument, ArgumentError) as error:
            raise InvalidArgument(f"{name}: {error}") from None

    def replay(
        self,
        strategy: str = "portfolio",
        evaluations: int = 200,
        *,
        seed: int = 0,
        batch: int = 1,
        initial: Iterable[Mapping[str, Any]] = (),
    ) -> list[float]:
        """The best cost after each evaluation of a search with `batch` configurations at a time;
        infinite before the first success. Failures are evaluations as well."""
        search = Strategy(self.space, strategy, seed=seed, initial=initial)
        trace: list[float] = []
        best = math.inf
        while len(trace) < evaluations:
            asked = search.ask(min(batch, evaluations - len(trace)))
            if not asked:
                break
            for config in asked:
                cost = self.costs[config]
                search.tell(config, cost)
                best = min(best, math.inf if cost is None else cost)
                trace.append(best)
        return trace

    def __len__(self) -> int:
        return len(self.costs)

    def __repr__(self) -> str:
        failed = sum(cost is None for cost in self.costs.values())
        return f"Table({len(self)} configurations, {failed} failed, best {self.best_cost})"
