"""Kernel Tuner's base class and wrapper for algorithms of users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from kernwright.tune.searchspace import Searchspace
from kernwright.tune.strategies.common import CostFunc
from kernwright.tune.util import StopCriterionReached

__all__ = ["OptAlg", "OptAlgWrapper"]


class OptAlg(ABC):
    """An algorithm: called with the function of costs and the space. `costfunc_kwargs` are options
    of CostFunc.

    >>> from kernwright.tune.strategies.wrapper import OptAlg, OptAlgWrapper
    >>> class First(OptAlg):
    ...     def __call__(self, func, searchspace):
    ...         func(searchspace.list[0])
    >>> strategy = OptAlgWrapper(First())    # for strategy= of tune_kernel()
    """

    costfunc_kwargs: dict[str, Any]

    def __init__(self) -> None:
        self.costfunc_kwargs = {"scaling": False, "snap": False}

    @abstractmethod
    def __call__(self, func: CostFunc, searchspace: Searchspace) -> Any:
        """Searches; `func(values)` measures."""


class OptAlgWrapper:
    """A strategy for tune_kernel() of an algorithm, an OptAlg or a callable like one.

    >>> from kernwright.tune.strategies.wrapper import OptAlgWrapper
    >>> strategy = OptAlgWrapper(lambda func, searchspace: func(searchspace.list[0]))
    """

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer

    def tune(self, searchspace: Searchspace, runner: Any, tuning_options: Any) -> Any:
        """Runs the algorithm until it returns or the budget is used up."""
        options = getattr(self.optimizer, "costfunc_kwargs", {"scaling": False, "snap": False})
        costs = CostFunc(searchspace, tuning_options, runner, **options)
        try:
            self.optimizer(costs, searchspace)
        except StopCriterionReached as end:
            if tuning_options.verbose:
                print(end)
        return costs.results
