"""Strategy: which configurations to try next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._space import Space, seed_argument


def strategies() -> tuple[str, ...]:
    """The names of the strategies, the default first.

    >>> kw.tune.strategies()[:3]
    ('portfolio', 'brute_force', 'random')
    """
    return _core._tune_strategies()


class Strategy:
    """A search through a space: ask() for configurations, measure them, tell() what they cost.

    >>> space = kw.tune.Space(block=[32, 64, 128], tile=range(1, 9))
    >>> search = kw.tune.Strategy(space, "portfolio", seed=0)
    >>> while search.told < len(space):
    ...     for config in search.ask(8):
    ...         search.tell(config, config["block"] / config["tile"])    # None for a failure
    >>> search.best, search.best_cost
    (Config(block=32, tile=8), 4.0)

    Nothing is measured here. Results may come late and in any order; what was asked and not told is
    pending, and any number may be. The same seed and the same sequence of calls give the same
    configurations. The space is copied; threads may share a strategy.

    "portfolio" (a forest's bound, neighbours of the best, differential evolution and random ones,
    used as they succeed), "surrogate" (the forest alone), "genetic", "differential_evolution",
    "annealing", "greedy_ils", "random", "brute_force". `initial` are configurations to ask first.
    """

    def __init__(
        self,
        space: Space,
        name: str = "portfolio",
        *,
        seed: int | None = 0,
        initial: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        if not isinstance(space, Space):
            raise ArgumentError(f"Strategy(space) wants a Space, got {type(space).__name__}")
        if not isinstance(name, str):
            raise ArgumentError(f"a strategy's name is a str, got {type(name).__name__}")
        first = [space.index(config) for config in initial]
        self.name = name
        self._core = _core.TuneStrategy(name, space._core, seed_argument(seed), first)
        self.space = space._copy()

    def ask(self, n: int = 1) -> list[Config]:
        """`n` configurations that were neither asked nor told before; fewer when no more are left,
        none at the end."""
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise ArgumentError(f"ask(n) wants an int, got {type(n).__name__}")
        if n.__index__() < 0:
            raise InvalidArgument(f"ask(n) cannot be {n}")
        return [self.space[index] for index in self._core.ask(n.__index__())]

    def tell(self, config: Mapping[str, Any], cost: float | None) -> None:
        """The cost of a configuration, less being better; None (or infinity) for one that failed.
        Also for one that was never asked: results of an earlier search. A second cost replaces the
        first."""
        if cost is not None:
            if isinstance(cost, (str, bool)) or not hasattr(cost, "__float__"):
                raise ArgumentError(f"a cost is a number or None, got {type(cost).__name__}")
            cost = float(cost)
        self._core.tell(self.space.index(config), cost)

    @property
    def best(self) -> Config | None:
        """The cheapest so far."""
        index = self._core.best()
        return None if index is None else self.space[index]

    @property
    def best_cost(self) -> float | None:
        """The least cost that was told; None before any."""
        return self._core.best_cost()

    @property
    def told(self) -> int:
        """How many configurations have a result, failures included."""
        return self._core.told()

    @property
    def pending(self) -> int:
        """How many were asked and not told yet."""
        return self._core.pending()

    def __repr__(self) -> str:
        return f"Strategy({self.name!r}, {self.space!r}: {self.told} told, best {self.best_cost})"
