"""CostFunc: what strategies of users ask for the cost of a configuration, as in Kernel Tuner."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernwright.errors import InvalidArgument
from kernwright.tune.searchspace import Searchspace
from kernwright.tune.util import StopCriterionReached

__all__ = ["CostFunc", "get_options"]

_ALWAYS = ("max_fevals", "time_limit", "x0")


def get_options(
    strategy_options: Mapping[str, Any],
    options: Mapping[str, tuple[str, Any]],
    unsupported: Sequence[str] = (),
) -> list[Any]:
    """The values of `options`, (what it is, default) by name, in their order. InvalidArgument for
    another name in `strategy_options`.

    >>> from kernwright.tune.strategies.common import get_options
    >>> get_options({"popsize": 8}, {"popsize": ("size of a generation", 20)})
    [8]
    """
    accepted = [name for name in (*options, *_ALWAYS) if name not in unsupported]
    for name in strategy_options:
        if name not in accepted:
            raise InvalidArgument(
                f"strategy_options has {name!r}; the strategy takes: {', '.join(accepted)}"
            )
    return [strategy_options.get(name, default) for name, (_, default) in options.items()]


class CostFunc:
    """The cost of configurations, less being better; each is measured once.

    Values are those of the parameters; with `snap` the nearest ones count. With `scaling` a value
    is a place: from 0 to eps * (number of values) for each parameter, so that they are alike. A
    configuration that is not valid or failed costs `invalid_value`. StopCriterionReached when the
    budget is used up.

    >>> from kernwright.tune.strategies.common import CostFunc
    >>> def tune(searchspace, runner, tuning_options):
    ...     cost = CostFunc(searchspace, tuning_options, runner)
    ...     for values in searchspace.get_random_sample(2):
    ...         cost(values)
    >>> text = "__global__ void twice(float* x) { x[blockIdx.x * BLOCK + threadIdx.x] *= 2; }"
    >>> rows, _ = kw.tune.tune_kernel(
    ...     "twice", text, 256, [np.ones(256, np.float32)], {"BLOCK": [32, 64, 128]}, quiet=True,
    ...     block_size_names=["BLOCK"], strategy=tune)
    >>> len(rows)
    2
    """

    def __init__(
        self,
        searchspace: Searchspace,
        tuning_options: Any,
        runner: Any,
        *,
        scaling: bool = False,
        snap: bool = True,
        return_invalid: bool = False,
        invalid_value: float = sys.float_info.max,
    ) -> None:
        self.searchspace, self.tuning_options, self.runner = searchspace, tuning_options, runner
        self.scaling, self.snap, self.invalid_value = scaling, snap, invalid_value
        self.return_invalid = return_invalid
        self.results: list[dict[str, Any]] = []
        self.unique_results: dict[str, dict[str, Any]] = {}
        self.budget_spent_fraction = 0.0
        self._eps = min(1.0 / len(values) for values in searchspace.params_values)

    # -- values ----------------------------------------------------------------------------------

    def _nearest(self, value: Any, values: Sequence[Any]) -> Any:
        if self.scaling:
            place = round(float(value) / self._eps - 0.5)
            return values[min(max(place, 0), len(values) - 1)]
        if value in values:
            return value
        try:
            return min(values, key=lambda known: abs(known - value))
        except TypeError:
            raise InvalidArgument(f"{value!r} is near none of the values {values!r}") from None

    def _values(self, x: Sequence[Any]) -> tuple[Any, ...]:
        if not self.snap:
            return tuple(x)
        values = self.searchspace.params_values
        return tuple(self._nearest(v, known) for v, known in zip(x, values, strict=True))

    def get_bounds(self) -> list[tuple[Any, Any]]:
        """The least and the greatest value of each parameter; for strings the first and last."""
        if self.scaling:
            return [(0.0, self._eps * len(values)) for values in self.searchspace.params_values]
        return [
            (values[0], values[-1])
            if any(isinstance(value, str) for value in values)
            else (min(values), max(values))
            for values in self.searchspace.params_values
        ]

    def get_start_pos(self) -> list[Any]:
        """strategy_options' x0, else a random configuration."""
        start = self.tuning_options.strategy_options.get("x0")
        if start is None:
            start = self.searchspace.get_random_sample(1)[0]
        if len(start) != self.searchspace.num_params:
            raise InvalidArgument(f"x0={start!r} has not a value for each parameter")
        if not self.scaling:
            return list(start)
        known = self.searchspace.params_values
        return [(v.index(x) + 0.5) * self._eps for x, v in zip(start, known, strict=True)]

    def get_bounds_x0_eps(self) -> tuple[list[tuple[Any, Any]], Any, float]:
        """The bounds, where to start, and the smallest step."""
        eps = self._eps if self.scaling else 1.0
        self.tuning_options["eps"] = eps
        start = self.get_start_pos()
        return self.get_bounds(), np.array(start) if self.scaling else start, eps

    # -- costs -----------------------------------------------------------------------------------

    def _cost(self, found: Mapping[str, Any]) -> Any:
        failed = "__error__" in found
        options = self.tuning_options
        costs = [
            self.invalid_value if failed else found[name] * (-1 if higher else 1)
            for name, higher in zip(
                options.objective, options.objective_higher_is_better, strict=True
            )
        ]
        return costs[0] if len(costs) == 1 else costs

    def eval_all(self, xs: Sequence[Sequence[Any]], check_restrictions: bool = True) -> list[Any]:
        """The cost of each."""
        budget = self.tuning_options.budget
        budget.raise_exception_if_done()
        wanted = [self._values(x) for x in xs]
        valid = [self.searchspace.is_param_config_valid(values) for values in wanted]
        asked = [values for values, is_valid in zip(wanted, valid, strict=True) if is_valid]
        measured = self.runner.run(asked, self.tuning_options)
        for values, found in zip(asked, measured, strict=True):
            if found is not None:
                self.results.append(found)
                self.unique_results.setdefault(",".join(map(str, values)), found)
        self.budget_spent_fraction = budget.get_fraction_consumed()
        if any(found is None for found in measured):
            raise StopCriterionReached("the budget was used up within a series of configurations")
        answers = iter(measured)
        invalid = {"__error__": True}
        return [self._cost(next(answers) if is_valid else invalid) for is_valid in valid]

    def eval(self, x: Sequence[Any], check_restrictions: bool = True) -> Any:
        """The cost of one."""
        return self.eval_all([x], check_restrictions)[0]

    def __call__(self, x: Sequence[Any], check_restrictions: bool = True) -> Any:
        return self.eval(x, check_restrictions)

    def get_results(self) -> list[dict[str, Any]]:
        """The results of all evaluations."""
        return self.results

    def get_num_unique_results(self) -> int:
        """How many configurations were measured."""
        return len(self.unique_results)
