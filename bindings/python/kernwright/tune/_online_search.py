"""OnlineSearch: the configuration in service for one bucket of problems, and trials beside it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernwright.errors import Error
from kernwright.schedule._blocks import as_task, is_busy
from kernwright.tune._config import Config, Value
from kernwright.tune._expression import Expression
from kernwright.tune._meter import Meter
from kernwright.tune._shadow import Comparison, NotShadowed, Outcome, Shadow
from kernwright.tune._strategy import Strategy
from kernwright.tune._tuned import configured

SAMPLES = 5  # pairs of launches that decide
GAIN = 0.98  # a challenger that takes more than this of the incumbent's time is no gain
MOST_CALLS = 4096  # before Python looks again
WAIT_CALLS = 16  # while a candidate is compiled or its results are on their way
AHEAD = 4  # candidates that are compiled before they are needed
REFUSALS = 32  # calls in a row whose arguments have no shadows
# Verified launches of a candidate before its time is measured, and before it serves: one that is
# right in its first launches alone, or wrong in every third one, must not serve.
FIRST_CHECKS, LAST_CHECKS = 2, 3
UNPROVEN = 32  # verified launches whose outputs were right before them


@dataclass
class OnlineTrial:
    """A configuration tried beside the incumbent. `status` has T4's words (correct,
    correctness, compile, runtime), "rolled back" and, before that is known, "running"; `ratio` is
    its time by the incumbent's.

    After the example of kw.tune.Online:

    >>> while not serve.frozen:
    ...     serve(x, y, x.size)
    >>> [trial.status for trial in serve.trials]
    ['correct']
    """

    config: Config
    status: str = "running"
    ratio: float | None = None
    error: str = ""


@dataclass
class Duel:
    """Two configurations on the same inputs, the incumbent for the caller and the
    challenger on shadows."""

    challenger: Config
    trial: OnlineTrial
    checks: int = FIRST_CHECKS  # launches to verify before anything else
    wins: float | None = None  # its ratio, once its time was good enough
    unproven: int = 0
    probe: bool = False  # the incumbent itself, on poisoned outputs
    probation: bool = False  # the incumbent is new, the challenger the one before it
    relative: float = 1.0  # in a probation: what self.relative was before
    cost: float = 0.0  # in a probation: what self.cost was before
    ratios: list[float] = field(default_factory=list)
    comparison: Comparison | None = None
    pair: tuple[Callable[[], float | None], ...] = ()


@dataclass(frozen=True)
class OnlinePlan:
    """The common parts of all searches of one Online."""

    kernel: Any
    space: Any
    rule: Any
    overhead: float
    guard: float
    tolerances: tuple[float, float]
    shadow_bytes: int
    patience: int
    strategy: str
    seed: int
    settled: Callable[[OnlineSearch, str], None]  # a new incumbent, or the end with a reason
    changed: Callable[[], None]  # another incumbent: what was handed out is out of date
    scheduler: Any = None


class OnlineSearch:
    """Not thread-safe: whoever serves holds its lock. Only serve_only() runs beside others."""

    def __init__(
        self, plan: OnlinePlan, problem: Mapping[str, Value], meter: Meter, default: Config
    ) -> None:
        self.plan, self.problem, self.meter = plan, dict(problem), meter
        self.space = plan.space.with_problem(problem)
        self.default = self.incumbent = default
        self.cost: float | None = None  # of the incumbent
        self.default_cost: float | None = None
        self.relative = 1.0  # the incumbent's cost by the default's, as pairs tell it
        self.spent = self.served = 0.0
        self.trials: list[OnlineTrial] = []
        self.frozen = ""  # why
        self._strategy = Strategy(self.space, plan.strategy, seed=plan.seed)
        if default in self.space:
            self._strategy.tell(default, 1.0)
        self._ahead: list[tuple[Config, Any]] = []
        self._duel: Duel | None = None
        self._extra: list[Callable[[], float | None]] = []  # costs that are on their way
        self._step_cost = 0.0
        self._calibration: list[Callable[[], float | None]] = []
        self._granted: dict[Any, int] = {}
        # Those that another problem of the bucket may break.
        self._restrictions = [
            what
            for kind, what in plan.space._requirements
            if kind == "restriction"
            and not (isinstance(what, str) and set(Expression(what).names) <= set(default))
        ]
        self._kernels: dict[Config, Any] = {}
        self._launches: dict[Any, Any] = {}
        self._parameters: Any = None
        self._since_best = 0
        self._refusals = 0
        # Whether the contents of floating-point outputs before a launch do not matter; None before
        # that is known.
        self._free: bool | None = None
        self._turn = 0

    # -- what is launched ------------------------------------------------------------------------

    def launch(self, config: Config, problem: Mapping[str, Value]) -> Any:
        """kernel[grid, block] of a configuration for a problem of this bucket."""
        key = (config, tuple(problem.items()))
        launch = self._launches.get(key)
        if launch is None:
            if len(self._launches) > MOST_CALLS:
                self._launches.clear()
            launch = self.plan.rule.bind(self._kernel(config), {**problem, **config})
            self._launches[key] = launch
        return launch

    def _kernel(self, config: Config) -> Any:
        kernel = self._kernels.get(config)
        if kernel is None:
            kernel = self._kernels[config] = configured(self.plan.kernel, config)
        return kernel

    def _drop(self, config: Config) -> None:
        """Forgets the code of a configuration without further launches."""
        if config in (self.incumbent, self.default):
            return
        self._kernels.pop(config, None)
        for key in list(self._launches):
            if key[0] == config:
                self._launches.pop(key, None)

    def serve(
        self, problem: Mapping[str, Value], arguments: tuple[Any, ...]
    ) -> tuple[Any, int, bool]:
        """The answer for TunedCall: target, calls until the next look, whether it was launched."""
        key = tuple(problem.items())
        self._account(key)
        begin = self.meter.host()
        config = self.incumbent if self._allows(self.incumbent, problem) else self.default
        target = self.launch(config, problem)
        if self.frozen:
            return target, -1, False
        if config != self.incumbent:
            return target, MOST_CALLS, False
        launched = self._explore(problem, arguments, target)
        if self.frozen:
            return self.launch(self.incumbent, problem), -1, launched
        self.spent += self.meter.host() - begin
        calls = self._calls_until_due()
        self._granted[key] = calls
        return self.launch(self.incumbent, problem), calls, launched

    def serve_only(self, problem: Mapping[str, Value]) -> Any:
        """The launch in service, with nothing else done."""
        allowed = self._allows(self.incumbent, problem)
        return self.launch(self.incumbent if allowed else self.default, problem)

    def nvrtc(self) -> str:
        """The version of the incumbent's compiler."""
        return str(self._kernel(self.incumbent)._facts(None)["nvrtc_version"])

    def forget_calls(self) -> None:
        """Granted calls are no longer counted: their targets were dropped."""
        self._granted.clear()

    def _account(self, key: Any) -> None:
        if self.cost is not None:
            self.served += self.cost * (1 + self._granted.pop(key, 0))

    def _calls_until_due(self) -> int:
        if self.cost is None:
            return 1
        due = (self.spent + self._step_cost) / self.plan.overhead - self.served
        calls = math.ceil(due / self.cost) if self.cost > 0 and due > 0 else 1
        waits = self._duel is None or self._duel.comparison is not None or bool(self._duel.pair)
        return max(1, min(MOST_CALLS, max(calls, WAIT_CALLS if waits else 1)))

    def _is_due(self) -> bool:
        return self.spent + self._step_cost <= self.plan.overhead * self.served

    def _allows(self, config: Config, problem: Mapping[str, Value]) -> bool:
        """Whether the restrictions hold for a problem of the bucket as well."""
        if problem == self.problem or not self._restrictions:
            return True
        single = type(self.space)({name: [value] for name, value in config.items()})
        single = single.with_problem(problem)
        for what in self._restrictions:
            single.require(what)
        try:
            return len(single) == 1
        except Error:
            return False

    # -- exploring -------------------------------------------------------------------------------

    def _explore(
        self, problem: Mapping[str, Value], arguments: tuple[Any, ...], target: Any
    ) -> bool:
        """One step of a duel, where one is due. Whether the caller was served with it."""
        self._collect()
        if self.cost is None:
            return self._calibrate(target, arguments)
        duel = self._duel or self._next_duel()
        if duel is None or self.frozen or duel.comparison or duel.pair or not self._is_due():
            return False
        if self.plan.scheduler is not None and is_busy(self.plan.scheduler):
            return False
        if not self._allows(duel.challenger, problem):
            self._end_trial(duel, "constraints", f"a restriction does not hold for {problem}")
            return False
        return self._step(duel, problem, arguments, target)

    def _calibrate(self, target: Any, arguments: tuple[Any, ...]) -> bool:
        if len(self._calibration) >= SAMPLES:
            return False  # their results are on their way
        self._calibration.append(self.meter.run(lambda: target(*arguments)))
        self._collect()
        return True

    def _collect(self) -> None:
        """Takes the finished work of the device."""
        if self.cost is None and self._calibration:
            samples = [sample() for sample in self._calibration]
            known = [sample for sample in samples if sample is not None]
            if self.meter.is_synchronous:
                self._calibration.clear()
            if known and len(known) >= (1 if self.meter.is_synchronous else SAMPLES):
                self.cost = statistics.median(known)
                self.default_cost = self.cost
                self._step_cost = 3 * self.cost
        waiting = []
        for extra in self._extra:
            cost = extra()
            if cost is None:
                waiting.append(extra)
            else:
                self.spent += cost
        self._extra = [] if self.meter.is_synchronous else waiting
        if self._duel is not None:
            self._collect_duel(self._duel)

    def _collect_duel(self, duel: Duel) -> None:
        comparison = duel.comparison
        if comparison is not None and comparison.result is not None:
            self.spent += comparison.cost
            duel.comparison = None
            self._verify(duel, comparison.result, comparison.outcome.is_evidence)
        if not duel.pair:
            return
        own, other = (sample() for sample in duel.pair)
        if own is None or other is None:
            if self.meter.is_synchronous:
                duel.pair = ()
            return
        duel.pair = ()
        self.cost = own if self.meter.is_synchronous else 0.9 * (self.cost or own) + 0.1 * own
        duel.ratios.append(other / own if own > 0 else math.inf)
        self._judge(duel)

    def _verify(self, duel: Duel, found: str, is_evidence: bool) -> None:
        if duel.probe:
            self._free, self._duel = not found, None
        elif found and duel.probation:
            self._roll_back(duel, None, found)
        elif found:
            self._end_trial(duel, "correctness", found)
        elif not is_evidence and not duel.probation:
            duel.unproven += 1
            if duel.unproven >= UNPROVEN:
                self._end_trial(
                    duel,
                    "correctness",
                    f"the outputs held the right values before each of {UNPROVEN} launches, so "
                    "nothing shows that this configuration writes them",
                )
        else:
            duel.checks -= 1
            if duel.checks == 0 and duel.wins is not None:
                self._promote(duel, duel.wins)

    def _next_duel(self) -> Duel | None:
        """The next compiled candidate, while others are being compiled."""
        while len(self._ahead) < AHEAD and (asked := self._strategy.ask(1)):
            try:
                self._ahead.append((asked[0], self._kernel(asked[0]).compile_async()))
            except Error as error:
                self._ahead.append((asked[0], error))
        if not self._ahead:
            self._freeze("complete")
            return None
        if self._free is None:
            self._duel = Duel(self.incumbent, OnlineTrial(self.incumbent), checks=1, probe=True)
            return self._duel
        config, future = self._ahead[0]
        if not isinstance(future, Error):
            if not (self.meter.is_synchronous or future.done()):
                return None
            future = future.exception()
        self._ahead.pop(0)
        trial = OnlineTrial(config)
        self.trials.append(trial)
        duel = Duel(config, trial)
        if future is not None:
            self._end_trial(duel, "compile", str(future))
            return None
        self._duel = duel
        return duel

    def _step(
        self, duel: Duel, problem: Mapping[str, Value], arguments: tuple[Any, ...], target: Any
    ) -> bool:
        """Serves the caller and runs the challenger on shadows of the same inputs."""
        served = False

        def serve() -> None:
            nonlocal served
            served = True
            target(*arguments)

        try:
            challenger = self.launch(duel.challenger, problem)
        except Error as error:
            self._end_trial(duel, "runtime", str(error))
            return False
        if self._parameters is None:
            self._parameters = self._kernel(self.incumbent).parameters
        if len(arguments) != len(self._parameters):
            return False  # the launch itself says so
        try:
            shadows: list[Shadow] = []
            copies = self._beside(lambda: shadows.append(self._shadow(duel, arguments)))
        except (NotShadowed, Error) as error:
            self._refusals += 1
            if self._refusals >= REFUSALS:
                self._freeze(f"the arguments have no shadows: {error}")
            return False
        self._refusals = 0
        (shadow,) = shadows
        before: list[Any] = []
        if duel.checks:
            is_poisoned = (duel.probe or self._free is True) and shadow.poison(self._turn)
            self._turn += 1
            if duel.probe and not is_poisoned:
                self._end_trial(duel, "")
                return False
            before = [] if is_poisoned else [array.copy() for array in shadow.written]
        own = self.meter.run(serve)  # what the caller's own arguments raise is the caller's
        try:
            expected = [array.copy() for array in shadow.written] if duel.checks else []
            other = self._beside(lambda: challenger(*shadow.arguments))
        except Error as error:
            self._end_trial(duel, "runtime", str(error))
            return served
        self._extra += [copies, other]
        self._step_cost = max(self._step_cost, sum(cost() or 0.0 for cost in (copies, other)))
        outcome = Outcome(expected, shadow, before, self.plan.tolerances)
        if not duel.checks:
            duel.pair = (own, other)
        elif self.meter.is_synchronous:
            self._verify(duel, outcome.difference(), outcome.is_evidence)
        else:
            duel.comparison = Comparison(outcome, self.meter.host)
        self._collect()
        return served

    def _beside(self, work: Callable[[], Any]) -> Callable[[], float | None]:
        """Work of a trial alone: a best-effort task where there is a scheduler."""
        with as_task(self.plan.scheduler, f"online {self.plan.kernel.name}"):
            return self.meter.run(work)

    def _shadow(self, duel: Duel, arguments: tuple[Any, ...]) -> Shadow:
        """A candidate gets copies of const arrays in every launch; the former incumbent has served
        the caller's own."""
        compares = duel.checks > 0 and not duel.probe
        guards = compares or not (duel.probe or duel.probation)
        return Shadow(self._parameters, arguments, self.plan.shadow_bytes, guards, compares)

    # -- deciding --------------------------------------------------------------------------------

    def _judge(self, duel: Duel) -> None:
        ratio = statistics.median(duel.ratios)
        enough = len(duel.ratios) >= (1 if self.meter.is_synchronous else SAMPLES)
        if duel.probation:
            # Here the challenger is the former incumbent.
            slowdown = 1 / ratio if ratio > 0 else math.inf
            if enough and slowdown > self.plan.guard:
                self._roll_back(duel, slowdown)
            elif enough:
                self._settle(duel)
            return
        hopeless = len(duel.ratios) >= 2 and min(duel.ratios) > self.plan.guard
        if hopeless or (enough and ratio >= GAIN):
            self._end_trial(duel, "correct", "", ratio)
        elif enough:
            duel.wins, duel.checks = ratio, LAST_CHECKS

    def _promote(self, duel: Duel, ratio: float) -> None:
        before, relative, cost = self.incumbent, self.relative, self.cost or 0.0
        duel.trial.status, duel.trial.ratio = "correct", ratio
        self._strategy.tell(duel.challenger, ratio * relative)
        self.incumbent = duel.challenger
        self.relative *= ratio
        self.cost = (self.cost or 0.0) * ratio
        self._since_best = 0
        self._duel = Duel(
            before, duel.trial, checks=1, probation=True, relative=relative, cost=cost
        )
        self.plan.changed()

    def _settle(self, duel: Duel) -> None:
        self._duel = None
        self._drop(duel.challenger)
        self.plan.settled(self, "")

    def _roll_back(self, duel: Duel, slowdown: float | None, found: str = "") -> None:
        """The new incumbent takes `slowdown` times as long as the former one, or it is wrong."""
        failed, self.incumbent = self.incumbent, duel.challenger
        duel.trial.status, duel.trial.ratio = "rolled back", slowdown
        self.relative = duel.relative
        if slowdown is None:
            duel.trial.status, duel.trial.error = "correctness", found
            self.cost = duel.cost
            self._strategy.tell(failed, None)
        else:
            self.cost = (self.cost or 0.0) / slowdown
            self._strategy.tell(failed, slowdown * self.relative)
        self._duel = None
        self._drop(failed)
        self.plan.changed()

    def _end_trial(
        self, duel: Duel, status: str, error: str = "", ratio: float | None = None
    ) -> None:
        if duel.probe:
            self._free, self._duel = False, None
            return
        if duel.probation:  # the former incumbent fails here: it is no measure any more
            self._settle(duel)
            return
        duel.trial.status, duel.trial.error, duel.trial.ratio = status, error, ratio
        self._duel = None
        self._drop(duel.challenger)
        self._strategy.tell(duel.challenger, None if ratio is None else ratio * self.relative)
        self._step_cost = 3 * (self.cost or 0.0)
        self._since_best += 1
        if self._since_best >= self.plan.patience:
            self._freeze(f"no gain in {self._since_best} trials")

    def _freeze(self, reason: str) -> None:
        if not self.frozen:
            self.frozen = reason
            self._duel = None
            self._ahead.clear()
            self.plan.settled(self, reason)

    def stop(self) -> None:
        """Explores no more."""
        for _, future in self._ahead:
            if not isinstance(future, Error):
                future.cancel()
        self._freeze("stopped")
