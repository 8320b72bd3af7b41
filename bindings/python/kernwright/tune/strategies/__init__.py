"""Strategies of Kernel Tuner's names, for `strategy=` of tune_kernel(); called, their names here.

>>> kw.tune.strategies()[:3]
('portfolio', 'brute_force', 'random')
>>> kw.tune.strategies.minimize
<strategy minimize>
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from kernwright._support.typed import typed
from kernwright.tune._kernel_tuner.options import NAMES, our_strategy
from kernwright.tune._strategy import Strategy
from kernwright.tune._strategy import strategies as _names
from kernwright.tune.searchspace import Searchspace


class NamedStrategy:
    """`strategy=strategies.minimize` is `strategy="minimize"`; strategies of users may call its
    tune(), too."""

    def __init__(self, name: str) -> None:
        self.name = name

    def tune(self, searchspace: Searchspace, runner: Any, tuning_options: Any) -> Any:
        """Searches with the strategy that stands for this one here."""
        search = Strategy(searchspace.space, our_strategy(self.name), seed=tuning_options.seed)
        found = []
        while not tuning_options.budget.is_done() and (asked := search.ask(1)):
            [row] = runner.run([tuple(asked[0].values())], tuning_options)
            if row is None:
                break
            found.append(row)
            search.tell(asked[0], None if "__error__" in row else runner.cost(row))
        return found

    def __repr__(self) -> str:
        return f"<strategy {self.name}>"


class _Strategies(ModuleType):
    """This module: Kernel Tuner has strategies as its members, kernwright.tune the function."""

    def __call__(self) -> tuple[str, ...]:
        return _names()


def __getattr__(name: str) -> NamedStrategy:
    if name in NAMES:
        return NamedStrategy(name)
    raise AttributeError(f"module {__name__!r} has no strategy {name!r}: {', '.join(NAMES)}")


sys.modules[__name__].__class__ = typed(_Strategies)
