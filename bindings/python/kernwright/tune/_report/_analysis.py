"""Figures of a report about a session's trials: progress, importance, fronts, use of the lanes."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

from kernwright import _core
from kernwright._support.words import headline
from kernwright.tune._report._record import Record, TrialRow

_MOST_SAMPLES = 1500
_PROBES = 600  # points at which the forest is asked, for each parameter once more
_FEWEST = 10  # trials without which nothing is said of importance


def best_so_far(record: Record) -> list[TrialRow]:
    """The trials with the best value up to their end."""
    found: list[TrialRow] = []
    best = math.inf
    for trial in record.trials:
        if trial.value is not None and trial.value < best:
            best = trial.value
            found.append(trial)
    return found


@dataclasses.dataclass(frozen=True)
class Importance:
    """By parameter: the share of the variance that goes when this parameter is held.

    The forest explains the share `fit` of the variance of unseen trials.
    """

    shares: dict[str, float]
    fit: float
    trials: int


def values_of(record: Record, name: str) -> list[Any]:
    """The tried values of a parameter, in order; numbers before texts."""
    seen = {repr(t.config[name]): t.config[name] for t in record.trials if name in t.config}

    def key(value: Any) -> tuple[bool, float, str]:
        is_number = isinstance(value, (bool, int, float))
        return (not is_number, float(value) if is_number else 0.0, str(value))

    return sorted(seen.values(), key=key)


def _places(record: Record, names: Sequence[str]) -> dict[str, dict[str, int]]:
    return {name: {repr(v): i for i, v in enumerate(values_of(record, name))} for name in names}


def varied(record: Record) -> list[str]:
    """The parameters with more than one tried value."""
    return [name for name in record.parameters if len(values_of(record, name)) > 1]


def _explained(rows: list[list[float]], targets: list[float]) -> float:
    """The share of the variance of a fifth explained by a forest over the others, on average."""
    guesses = [0.0] * len(targets)
    for part in range(5):
        learn = [i for i in range(len(targets)) if i % 5 != part]
        ask = [i for i in range(len(targets)) if i % 5 == part]
        flat = [x for i in learn for x in rows[i]]
        queries = [x for i in ask for x in rows[i]]
        answers = _core._tune_forest(flat, len(rows[0]), [targets[i] for i in learn], queries, part)
        for i, answer in zip(ask, answers, strict=True):
            guesses[i] = answer
    left = sum((g - t) ** 2 for g, t in zip(guesses, targets, strict=True))
    mean = statistics.fmean(targets)
    total = sum((t - mean) ** 2 for t in targets)
    return max(0.0, 1 - left / total) if total > 0 else 0.0


def importance(record: Record) -> Importance | None:
    """Of each parameter: its total effect (Jansen's estimator of Sobol's index) on the logarithm of
    the value, as a random forest over the trials predicts it. None for too few trials.

    The forest is asked at points drawn evenly from the tried values. So a search in one corner
    alone does not decide which parameters matter.
    """
    names = varied(record)
    good = [t for t in record.correct if t.value is not None and all(n in t.config for n in names)]
    if len(good) > _MOST_SAMPLES:
        good = random.Random(0).sample(good, _MOST_SAMPLES)
    if len(good) < _FEWEST or not names:
        return None
    places = _places(record, names)
    rows = [[float(places[n][repr(t.config[n])]) for n in names] for t in good]
    positive = all(t.value is not None and t.value > 0 for t in good)
    targets = [math.log(t.value or 1) if positive else float(t.value or 0) for t in good]
    order = list(range(len(good)))
    random.Random(1).shuffle(order)
    rows, targets = [rows[i] for i in order], [targets[i] for i in order]
    draw = random.Random(2)
    counts = [len(places[n]) for n in names]
    first = [[float(draw.randrange(c)) for c in counts] for _ in range(_PROBES)]
    second = [[float(draw.randrange(c)) for c in counts] for _ in range(_PROBES)]
    queries = [x for row in first for x in row]
    for column in range(len(names)):
        for row, other in zip(first, second, strict=True):
            queries += [*row[:column], other[column], *row[column + 1 :]]
    flat = [x for row in rows for x in row]
    answers = _core._tune_forest(flat, len(names), targets, queries, 7)
    base = answers[:_PROBES]
    variance = statistics.pvariance(base)
    shares = {}
    for column, name in enumerate(names):
        changed = answers[_PROBES * (column + 1) : _PROBES * (column + 2)]
        half = statistics.fmean((a - b) ** 2 for a, b in zip(base, changed, strict=True)) / 2
        shares[name] = min(half / variance, 1.0) if variance > 0 else 0.0
    ordered = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return Importance(ordered, _explained(rows, targets), len(good))


@dataclasses.dataclass(frozen=True)
class PairMap:
    """The best value, and how many trials, for each pair of values of two parameters."""

    rows: str
    columns: str
    row_values: list[Any]
    column_values: list[Any]
    cells: dict[tuple[int, int], tuple[float | None, int]]


def pair_map(record: Record, rows: str, columns: str) -> PairMap:
    row_values, column_values = values_of(record, rows), values_of(record, columns)
    places = _places(record, [rows, columns])
    cells: dict[tuple[int, int], tuple[float | None, int]] = {}
    for trial in record.trials:
        if rows not in trial.config or columns not in trial.config:
            continue
        place = (
            places[rows][repr(trial.config[rows])],
            places[columns][repr(trial.config[columns])],
        )
        best, count = cells.get(place, (None, 0))
        if trial.value is not None:
            best = trial.value if best is None else min(best, trial.value)
        cells[place] = best, count + 1
    return PairMap(rows, columns, row_values, column_values, cells)


def metrics_of(record: Record) -> list[str]:
    """The metrics of several trials, with the objective in front where it is none."""
    names = list(dict.fromkeys(name for trial in record.correct for name in trial.metrics))
    chosen = [name for name in record.objective.split(", ") if name in names]
    if len(chosen) > 1:
        return chosen
    if record.objective in names or record.is_counted:  # there it is the sum of the metrics
        return names
    return [record.objective, *names]


def metric(record: Record, trial: TrialRow, name: str) -> float | None:
    if name in trial.metrics:
        return trial.metrics[name]
    return trial.value if name == record.objective else None


def pareto_front(points: Sequence[tuple[float, ...]]) -> list[int]:
    """The places of points that no other beats: as small in all numbers, and smaller in one. The
    smallest first number comes first."""
    if not points:
        return []
    columns = [list(column) for column in zip(*points, strict=True)]
    return sorted(_core._pareto_front(columns), key=lambda i: points[i])


def lanes(
    spans: Sequence[tuple[float, float, TrialRow]],
) -> list[list[tuple[float, float, TrialRow]]]:
    """Spans of time as few lanes as hold them without overlap."""
    found: list[list[tuple[float, float, TrialRow]]] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        free = [lane for lane in found if lane[-1][1] <= span[0] + 1e-9]
        if free:
            max(free, key=lambda lane: lane[-1][1]).append(span)
        else:
            found.append([span])
    return found


def use(spans: Sequence[tuple[float, float, TrialRow]], seconds: float) -> float:
    """The share of `seconds` inside of at least one of the spans."""
    busy, reached = 0.0, 0.0
    for begin, end, _ in sorted(spans, key=lambda span: span[:2]):
        busy += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return min(1.0, busy / seconds) if seconds > 0 else 0.0


def failures(record: Record) -> list[tuple[str, str, list[TrialRow]]]:
    """Status, headline of the message, and its trials; the most frequent first."""
    groups: dict[tuple[str, str], list[TrialRow]] = {}
    for trial in record.trials:
        if not trial.correct:
            groups.setdefault((trial.status, headline(trial.error)), []).append(trial)
    return sorted(
        ((status, first, trials) for (status, first), trials in groups.items()),
        key=lambda group: -len(group[2]),
    )
