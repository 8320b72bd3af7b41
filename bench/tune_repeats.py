"""Fresh sessions on one space, for tune_session.py --repeat: how good their winners are.

Each session has its own process and seed. They share compiled code, because only measurements
matter here. Afterwards all configurations that won or tied, and the fastest ones, run in turns for
long. A session's regret is its winner's time minus the best of these. Two sessions flip when
neither's ties contain the other's winner.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from typing import Any

FASTEST = 12  # of each session, as candidates for the long measurement
MOST = 32  # configurations in the long measurement
ROUNDS = 15

Config = dict[str, Any]


def config_key(config: Config) -> tuple:
    return tuple(sorted(config.items()))


def summary(session: Any, best: Any) -> dict:
    """The findings of one session, for the comparison."""
    correct = [trial for trial in session.trials if trial.score is not None]
    correct.sort(key=lambda trial: trial.score)
    return {
        "winner": dict(best.config),
        "tie configs": [dict(config) for config in best.ties],
        "fastest": [dict(trial.config) for trial in correct[:FASTEST]],
        "reason": session.reason,
    }


def candidates(sessions: list[dict]) -> list[Config]:
    """Winners first, then ties, then the fastest ones: each once; MOST, or all winners."""
    winners = [one["winner"] for one in sessions]
    tied = [config for one in sessions for config in one["tie configs"]]
    ranks = itertools.zip_longest(*(one["fastest"] for one in sessions))
    fastest = [config for rank in ranks for config in rank if config is not None]
    found: dict[tuple, Config] = {}
    for config in [*winners, *tied, *fastest]:
        found.setdefault(config_key(config), config)
    return list(found.values())[: max(MOST, len({config_key(winner) for winner in winners}))]


def measured_long(name: str, small: bool, configs: list[Config]) -> dict:
    """The median of each over rounds of all in turn; null for one that does not launch."""
    import numpy as np
    from tune_session import contestant, sampled
    from tune_subjects import subject

    import kernwright as kw

    chosen = subject(name, small)
    runs: list[Any] = []
    for config in configs:
        try:
            runs.append(contestant(chosen, config)[0])
        except kw.Error:
            runs.append(None)
    times: list[list[float]] = [[] for _ in configs]
    timer = kw._core._Timer()
    rounds = 1 if kw.current_device().is_simulated else ROUNDS
    for _ in range(rounds):
        for place, run in enumerate(runs):
            if run is not None:
                times[place].append(sampled(timer, run))
    return {"times": [float(np.median(each)) if each else None for each in times]}


def judged(sessions: list[dict], configs: list[Config], times: list[float | None]) -> dict:
    """Regrets and flips, from the long measurement."""
    known = {
        config_key(config): time
        for config, time in zip(configs, times, strict=True)
        if time is not None
    }
    least = min(known.values())
    taken = [known.get(config_key(one["winner"])) for one in sessions]
    regrets = [None if time is None else time / least - 1 for time in taken]
    ties = [{config_key(config) for config in one["tie configs"]} for one in sessions]
    flips = [
        [a, b]
        for a, b in itertools.combinations(range(len(sessions)), 2)
        if config_key(sessions[a]["winner"]) not in ties[b]
        and config_key(sessions[b]["winner"]) not in ties[a]
    ]
    numbers = [regret for regret in regrets if regret is not None]
    return {
        "regrets": regrets,
        "largest regret": max(numbers, default=None),
        "winners that do not launch": regrets.count(None),
        "winners": len({config_key(one["winner"]) for one in sessions}),
        "flips outside of the ties": flips,
        "best by the long measurement": dict(min(known.items(), key=lambda item: item[1])[0]),
    }


def repeated(count: int, one: Callable[[int, str], dict], long: Callable, keep: Callable) -> None:
    """`one(seed, cache)` runs a session, `long(configs)` measures, `keep(document)` writes."""
    found: dict[str, Any] = {"sessions": []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            found["sessions"].append(one(seed, folder))
            keep(found)
    sound = [row for row in found["sessions"] if "winner" in row]
    found["failed sessions"] = count - len(sound)
    if sound:
        configs = candidates(sound)
        measured = long(configs)
        found["long measurement"] = {"configs": configs, **measured}
        if any(time is not None for time in measured.get("times", [])):
            found |= judged(sound, configs, measured["times"])
    keep(found)
