"""What the engine of a session asks of Python."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._sessions.arguments import Arguments, Parameter, Verifier
from kernwright.tune._sessions.kernel import Planner, failure_text
from kernwright.tune._sessions.settings import read_proposals
from kernwright.tune._sessions.trial import Trial
from kernwright.tune._store import _fingerprint

_NAMED = ("time", "energy", "edp")


def _named_score(name: str, trial: Trial) -> float | None:
    if name == "time":
        return trial.score if trial.time is None else trial.time
    energy = trial.metrics.get("energy_j")
    if energy is None or name == "energy":
        return energy
    return None if trial.time is None else energy * trial.time / 1000


class Objective:
    """One number of a trial, less being better."""

    def __init__(self, given: Any) -> None:
        if not callable(given) and given not in _NAMED:
            raise InvalidArgument(
                f"objective= is one of {', '.join(_NAMED)}, a callable of a trial, or a list of "
                f"these, got {given!r}"
            )
        self.name = given if isinstance(given, str) else getattr(given, "__name__", "objective")
        self._function: Callable[[Trial], Any] | None = given if callable(given) else None

    @property
    def is_function(self) -> bool:
        return self._function is not None

    @property
    def identity(self) -> str:
        """Equal for functions of the same code, constants and closure."""
        text = _fingerprint(self._function).encode("utf-8", "replace")
        return hashlib.sha256(text).hexdigest()[:16]

    def rename(self, taken: set[str]) -> None:
        """A name that is not taken, which it takes."""
        plain, count = self.name, 1
        while self.name in taken:
            count += 1
            self.name = f"{plain} {count}"
        taken.add(self.name)

    def __call__(self, trial: Trial) -> float | None:
        if self._function is None:
            return _named_score(self.name, trial)
        value = self._function(trial)
        if value is None:
            return None
        if isinstance(value, (str, bool)) or not hasattr(value, "__float__"):
            raise ArgumentError(f"the objective {self.name} gave a {type(value).__name__}")
        try:
            return float(value)
        except (OverflowError, TypeError, ValueError) as error:
            raise ArgumentError(f"the objective {self.name} gave no number: {error}") from None


class Hooks:
    """Holds no reference to its session. Called in the session's thread, check() in lanes'."""

    def __init__(
        self,
        planner: Planner,
        arguments: Arguments,
        verifier: Verifier | None,
        objective: Any,
        is_simulated: bool,
    ) -> None:
        self._planner, self._arguments, self._verifier = planner, arguments, verifier
        given = list(objective) if isinstance(objective, (list, tuple)) else [objective]
        if not given:
            raise InvalidArgument("objective= is an empty list")
        self._objectives = [Objective(item) for item in given]
        taken = set(_NAMED)  # metrics go by the name, and so does what a store knows
        for item in self._objectives:
            if item.is_function:
                item.rename(taken)
        names = [item.name for item in self._objectives]
        self.objective_name = ", ".join(names)
        self.wants_energy = any(name in ("energy", "edp") for name in names)
        self.scores = names != ["time"] or self._objectives[0].is_function
        own = [item for item in self._objectives if item.is_function]
        #: Equal texts mean equal functions of trials; None where there are none.
        self.scored = "; ".join(f"{item.name}={item.identity}" for item in own) or None
        self._have_fitted = False
        self._lane_event: Any = None
        self._propose: Any = None

    def observe_by(self, method: Any) -> None:
        """`method`: a weak reference."""
        self._lane_event = method

    def propose_by(self, function: Any, session: Any) -> None:
        import weakref

        self._propose = function
        self._session = weakref.ref(session)

    # -- asked by the engine ---------------------------------------------------------------------

    def plan(self, index: int) -> Any:
        try:
            return self._planner(index)
        except Exception as error:  # of the caller's functions
            return failure_text(error)

    def arguments(self, parameters: Sequence[Parameter]) -> Any:
        try:
            packed = self._arguments.pack(parameters)
        except ArgumentError as error:
            # Whether no other configuration could do better.
            if not self._have_fitted and self._planner.has_one_signature():
                raise
            return str(error)
        self._have_fitted = True
        return packed

    def check(self, outputs: Sequence[tuple[int, bytes]]) -> str | None:
        return None if self._verifier is None else self._verifier(outputs)

    def score(self, text: str) -> tuple[float | None, str]:
        trial = Trial(json.loads(text))
        values = [objective(trial) for objective in self._objectives]
        metrics = dict(trial.metrics)
        for objective, value in zip(self._objectives, values, strict=True):
            if value is not None and math.isfinite(value):
                metrics[objective.name] = value
        return values[0], json.dumps(metrics)

    def propose(self) -> list[int]:
        session = self._session()
        if session is None or self._propose is None:
            return []
        proposed = self._propose(session)
        if isinstance(proposed, Iterable) and not isinstance(proposed, (str, Mapping)):
            proposed = list(proposed)
        return read_proposals(proposed, session.space)

    def lane_event(self, is_gpu: bool, begins: bool, number: int, seconds: float) -> None:
        method = self._lane_event() if self._lane_event is not None else None
        if method is not None:
            method(is_gpu, begins, number, seconds)

    def front(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials that none beats in all objectives, by the first of them."""
        rows = []
        for trial in trials:
            values = [trial.metrics.get(o.name) for o in self._objectives]
            if values[0] is None:
                values[0] = trial.score
            if trial.status == "correct" and all(value is not None for value in values):
                rows.append((tuple(float(v) for v in values if v is not None), trial))
        if not rows:
            return []
        rows.sort(key=lambda row: (row[0], row[1].number))
        columns = [list(column) for column in zip(*(row for row, _ in rows), strict=True)]
        return [rows[i][1] for i in _core._pareto_front(columns)]
