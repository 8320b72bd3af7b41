"""Tuning one configuration after the other: with observers, with arguments that follow a parameter,
or by a strategy of the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kernwright.errors import InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._kernel_tuner.observing import Launches, Observation
from kernwright.tune._kernel_tuner.options import (
    BUDGETS,
    given_options,
    is_tunable,
    selected,
    strategy_of,
)
from kernwright.tune._kernel_tuner.results import Metrics, best_of
from kernwright.tune._kernel_tuner.step_store import StepStore
from kernwright.tune._sessions.session import Session
from kernwright.tune._sessions.single import SingleTrials
from kernwright.tune._sessions.trial import Trial
from kernwright.tune._space import Space
from kernwright.tune.searchspace import Searchspace
from kernwright.tune.strategies import NamedStrategy
from kernwright.tune.util import StopCriterionReached, TuningBudget


class Options(dict[str, Any]):
    """A dict whose items are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no option {name!r}; there is: {', '.join(self)}")


def own_strategy(given: Any) -> Any:
    """A caller's strategy, a module, an object or a function, as an object with tune(searchspace,
    runner, tuning_options); None for names."""
    if given is None or isinstance(given, str):
        return None
    if callable(getattr(given, "tune", None)):
        return given
    if not callable(given):
        raise InvalidArgument(
            f"strategy= is a name, an object with tune(searchspace, runner, tuning_options), or "
            f"such a function, got {type(given).__name__}"
        )
    if hasattr(given, "costfunc_kwargs"):
        from kernwright.tune.strategies.wrapper import OptAlgWrapper

        return OptAlgWrapper(given)
    return Options(tune=given)


class _Group(NamedTuple):
    """Configurations with the same arguments."""

    trials: SingleTrials
    session: Session
    arguments: list[Any]
    store: StepStore | None


class Measurer:
    """The result of a configuration: a trial in a worker, then the observers here."""

    def __init__(
        self,
        space: Space,
        arguments: Sequence[Any],
        make_session: Callable[[Space, Sequence[Any]], Session],
        observation: Observation,
        launches: Launches,
        derived: Metrics,
        store: str | None,
    ) -> None:
        self._space, self._arguments, self._make = space, arguments, make_session
        self._observation, self._launches, self._derived = observation, launches, derived
        self._path = store
        # By the identity of their arguments: each has buffers of its own.
        self._groups: dict[tuple[int, ...], _Group] = {}

    def searched(self, search: Search) -> tuple[Session, Any]:
        """The session with the best, and its result, those of the Pareto front for several
        objectives, or None."""
        try:
            runner = search.run(self)
        finally:
            self._observation.close()
        best = best_of(runner.costs(), len(self._derived.objectives))
        row = best[0] if isinstance(best, list) else best
        config = {name: row[name] for name in self._space.parameters} if row else self._space[0]
        return self._group(config).session, best

    def _group(self, config: Mapping[str, Any]) -> _Group:
        own = selected(self._arguments, config)
        key = tuple(map(id, own))
        if key not in self._groups:
            space, watching = self._space, self._observation
            if any(map(is_tunable, self._arguments)):
                space = space._copy().require(
                    lambda values: tuple(map(id, selected(self._arguments, values))) == key
                )
            session = self._make(space, own)
            store = None
            if self._path is not None:
                store = StepStore(
                    self._path, session, self._space, own, watching.identities, watching.answer
                )
            self._groups[key] = _Group(SingleTrials(session), session, own, store)
        return self._groups[key]

    def __call__(self, config: Config) -> dict[str, Any]:
        group = self._group(config)
        known = None if group.store is None else group.store.find(config)
        trial, observed = self._measured(group, config) if known is None else known
        found = self._derived.result(trial, observed)
        score, metrics = None, {}
        if trial.status == "correct":
            numbers = {n: float(v) for n, v in observed.items() if isinstance(v, (int, float))}
            costs = {name: self._derived.cost(name, found) for name in self._derived.objectives}
            score, metrics = next(iter(costs.values())), {**numbers, **costs}
        group.trials.keep(trial, score, metrics)
        return found

    def _measured(self, group: _Group, config: Config) -> tuple[Trial, dict[str, Any]]:
        self._observation.configure(config)
        trial = group.trials(config)
        observed: dict[str, Any] = {}
        if trial.status == "correct":
            self._launches.arguments = group.arguments
            observed = self._observation(
                self._launches, config, trial.time, trial.resources.registers
            )
        if group.store is not None:
            group.store.add(trial, observed)
        return trial, observed


class Runner:
    """Kernel Tuner's runner, as strategies know it: results of configurations, each measured once,
    until the budget is used up."""

    def __init__(
        self,
        searchspace: Searchspace,
        measure: Callable[[Config], dict[str, Any]],
        derived: Metrics,
        budget: TuningBudget,
        keep: Callable[[dict[str, Any]], None],
    ) -> None:
        self._searchspace, self._measure, self._derived = searchspace, measure, derived
        self._budget, self._keep = budget, keep
        self._known: dict[Config, dict[str, Any]] = {}

    def run(self, parameter_space: Any, tuning_options: Any = None) -> list[dict[str, Any] | None]:
        """A result for each configuration, a tuple of values: None once the budget is used up."""
        found: list[dict[str, Any] | None] = []
        for values in parameter_space:
            if self._budget.is_done():
                found.append(None)
                continue
            config = self._searchspace._config(values)
            if config not in self._known:
                if config not in self._searchspace.space:
                    raise InvalidArgument(f"the space does not have {config!r}")
                self._known[config] = self._measure(config)
                self._keep(self._known[config])
            self._budget.add_evaluations(1)
            found.append(dict(self._known[config]))
        return found

    def cost(self, row: Mapping[str, Any]) -> float:
        """Of the first objective, less being better."""
        return self._derived.cost(next(iter(self._derived.objectives)), row)

    def costs(self) -> list[tuple[list[Any], dict[str, Any]]]:
        """The costs of all objectives, and the result, of each configuration that did not fail."""
        return [
            ([self._derived.cost(name, row) for name in self._derived.objectives], row)
            for row in self._known.values()
            if "__error__" not in row
        ]


class Search:
    """How a tuning searches: by a strategy `chosen` of ours within its `budget`, or by the caller's
    `own`. `keep` gets each result; `more` are further items of a strategy's tuning_options."""

    def __init__(
        self, strategy: Any, options: Any, space: Space, derived: Metrics,
        keep: Callable[[dict[str, Any]], None], more: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.space, self.derived, self.keep = space, derived, keep
        self.seed: int | None = more["seed"]
        self._more = more
        if isinstance(strategy, NamedStrategy):
            strategy = strategy.name
        self.own = own_strategy(strategy)
        self.chosen, self.budget = "", None
        self._options = given_options(options)
        if self.own is None:
            self.chosen, self.budget = strategy_of(strategy, options, space)
            limits = self.budget or {}
            self._options = {
                theirs: limits[ours] for theirs, ours in BUDGETS.items() if ours in limits
            }

    def run(self, measure: Callable[[Config], dict[str, Any]]) -> Runner:
        """Measures one configuration after the other, until the strategy returns or the budget is
        used up."""
        searchspace = Searchspace(self.space)
        options, objectives = self._options, self.derived.objectives
        budget = TuningBudget(options.get("time_limit"), options.get("max_fevals"))
        budget.max_fevals = min(budget.max_fevals or len(self.space), len(self.space))
        runner = Runner(searchspace, measure, self.derived, budget, self.keep)
        told = Options(
            strategy_options=Options(options), budget=budget,
            objective=list(objectives), objective_higher_is_better=list(objectives.values()),
            tune_params=searchspace.tune_params, cache={}, cachefile=None, simulated_time=0,
            **{name: options[name] for name in BUDGETS if name in options}, **self._more,
        )  # fmt: skip
        strategy = NamedStrategy(self.chosen) if self.own is None else self.own
        try:
            strategy.tune(searchspace, runner, told)
        except Exception as error:
            # Strategies written for Kernel Tuner may let its own exception of this name pass.
            if type(error).__name__ != StopCriterionReached.__name__:
                raise
        return runner
