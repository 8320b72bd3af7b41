"""Session: tunes a kernel on the device at hand."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError, Error, InvalidArgument
from kernwright.schedule._blocks import as_task, require_scheduler
from kernwright.tune._cluster import Cluster, ClusterBackend, session_backend
from kernwright.tune._launch_rule import LaunchRule
from kernwright.tune._sessions.budget import read_budget
from kernwright.tune._sessions.hooks import Hooks
from kernwright.tune._sessions.outcome import told_row
from kernwright.tune._sessions.settings import (
    check_choices,
    devices_of,
    lanes_of,
    measure_settings,
    read_proposals,
    warm_start,
    worker_program,
)
from kernwright.tune._sessions.subject import Subject
from kernwright.tune._sessions.trial import Best, Trial
from kernwright.tune._sessions.words import TrialObserver, warn_of_end, warn_of_unsaved
from kernwright.tune._space import Space, seed_argument
from kernwright.tune._store import Store, as_store

_BEST_MEMBERS = ("config", "median_ms", "interval_ms", "score")


class Session:
    """Tunes a kernel: compiles configurations, checks and measures each in a process of its own.

    - `kernel`: a kernel, its text or path, or a callable of the configuration. Each parameter of
      the `space` becomes a define.
    - `args`: as for a launch; NumPy arrays are copied to the device. Arrays without const are
      restored before each trial, and `kw.Out` is filled with 0xff. Const arrays must not change.
    - `grid`, `block`, `shared_bytes`, `cluster`: numbers, tuples, expressions of parameters and of
      `problem` (values by name), or callables of a dict of both. Other names are the kernel's
      arguments.
    - `constants`: contents of `__constant__` and `__device__` variables, by name.
    - `budget`: "120s", or a dict of `seconds`, `evaluations`, `gpu_seconds`, `target`; None
      measures the whole space.
    - `verify`: a tuple with the expected value of each argument (None: not compared), a callable
      of the arguments with this result, or "default": the results of the default configuration.
      A difference of `rtol` times the value plus `atol` is allowed, by default 1e-8 (float64),
      1e-4 (float32) or 1e-2 (float16) of the value and of the mean.
    - `objective`: "time", "energy", "edp", a callable of a trial, or a list of these: the first is
      minimised, and `front` is the Pareto front. The simulated device counts instructions and
      memory transactions in place of time.
    - `store`: a file with each trial. With `resume` a session continues from its trials of the same
      kernel, space, arguments, device and tools.
    - `default`: is measured first and compared with the winner. `proposals`: configurations to try
      first: a list, a JSON file of one, or a callable of the session.
    - `scheduler`: a kw.schedule.Scheduler; each trial is a best-effort task.

    The same `seed` and results give the same trials. A failure is a trial's status, no exception.
    One thread at a time calls run(); any thread may call stop().

    >>> text = '''__global__ void twice(const float* x, float* y, int n) {
    ...     int i = blockIdx.x * BLOCK + threadIdx.x;
    ...     if (i < n) y[i] = 2 * x[i];
    ... }'''
    >>> session = kw.tune.Session(
    ...     text, kw.tune.Space(BLOCK=[64, 128, 256]), (x, y, x.size), grid="-(-n // BLOCK)",
    ...     block="BLOCK", verify=lambda x, y, n: (None, 2 * x, None), store="tuned.jsonl")
    >>> best = session.run()
    >>> [trial.status for trial in session.trials]
    ['correct', 'correct', 'correct']
    """

    _core: Any = None  # the session of the extension, once it has started
    _started_backend: ClusterBackend | None = None
    _result: dict[str, Any] | None = None
    _is_stopped = False
    _is_asked_out = False
    _warned = False

    def __init__(
        self,
        kernel: Any,
        space: Space,
        args: Sequence[Any] = (),
        *,
        grid: Any = None,
        block: Any = None,
        shared_bytes: Any = 0,
        cluster: Any = None,
        problem: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
        budget: Any = None,
        objective: Any = "time",
        verify: Any = None,
        rtol: float | None = None,
        atol: float | None = None,
        strategy: str = "portfolio",
        isolation: str = "process",
        store: str | os.PathLike[str] | Store | None = None,
        resume: bool = True,
        seed: int | None = 0,
        default: Mapping[str, Any] | None = None,
        proposals: Any = None,
        policy: str = "cold",
        samples: int = 8,
        workers: int | None = None,
        devices: Any = None,
        window: int | None = None,
        compile_timeout: float = 60.0,
        run_timeout: float = 30.0,
        scheduler: Any = None,
        _compare: Any = None,
    ) -> None:
        check_choices(space, grid, block, strategy, isolation, policy)
        self._scheduler = require_scheduler(scheduler)
        self._budget = read_budget(budget)
        self._cluster = devices if isinstance(devices, Cluster) else None
        self._devices, labels = devices_of(None if self._cluster is not None else devices)
        device = self._devices[0]
        rule = LaunchRule(grid, block, shared_bytes)
        own = {"cluster": cluster, "problem": problem, "constants": constants, "default": default}
        subject = Subject(kernel, space, args, rule, **own)
        subject.source.warn_of_unused(cluster)
        self._subject, self.space, self.name = subject, subject.space, subject.name
        self._verifier = subject.verifier(verify, rtol, atol, _compare)
        planner = subject.planner()
        initial = [] if callable(proposals) else read_proposals(proposals, self.space)
        self._hooks = Hooks(
            planner, subject.arguments, self._verifier, objective, device.is_simulated
        )
        self._hooks.propose_by(proposals if callable(proposals) else None, self)
        self._store = None if store is None else as_store(store)
        policy = "counts" if device.is_simulated else policy
        self.key = subject.key(device, policy, self._hooks.objective_name)
        if self._store is not None:
            initial += warm_start(self._store, self.key, self.space)
        limits = [compile_timeout, run_timeout]
        chosen = {"strategy": strategy, "seed": seed, "budget": self._budget}
        self._about = {**subject.about(self._verifier, limits), **chosen,
                       "scored": self._hooks.scored}  # fmt: skip
        self._lanes = lanes_of(workers)
        self._settings = {
            "device": device,
            "devices": labels,
            "worker": worker_program(),
            **subject.settings(self._verifier),
            "compile_lanes": self._lanes,
            "energy": self._hooks.wants_energy,
            **self._budget,
            **measure_settings(isolation, policy, samples, window, compile_timeout, run_timeout),
            "strategy": None if strategy == "portfolio" else strategy,
            "seed": seed_argument(seed),
            "initial": initial,
            "resume": bool(resume),
            "proposes": callable(proposals),
            "scores": self._hooks.scores,
            "events": True,
            "store": None if self._store is None else self._store.own_path(),
            "key": json.dumps(self.key),
            "about": json.dumps(self._about),
        }
        self._lock = threading.Lock()
        self._trials: list[Trial] = []
        self._open: set[int] = set()  # numbers of ask(), without an outcome
        self._told: set[int] = set()
        self._observers: list[Any] = []
        self._hooks.observe_by(weakref.WeakMethod(self._lane_event))
        if self._hooks.wants_energy and device.is_simulated:
            raise InvalidArgument(
                f'objective="{objective}" wants a GPU: {device.name} has no power'
            )

    # -- running ---------------------------------------------------------------------------------

    @property
    def _wants_default(self) -> bool:
        return self._verifier is not None and self._verifier.wants_default

    def _started(self) -> Any:
        with self._lock:
            if self._core is None:
                settings = self._settings
                if self._cluster is not None:
                    settings = self._on_cluster(self._cluster, settings)
                core = _core.TuneSession(self.space._core, self._hooks, settings)
                if self._wants_default and self._cluster is None:
                    self._try_default(core)
                core.begin()
                self._core = core
                if self._is_stopped:
                    core.stop()
            return self._core

    def _on_cluster(self, cluster: Cluster, settings: dict[str, Any]) -> dict[str, Any]:
        if self._verifier is not None:
            own = _core.TuneSession(self.space._core, self._hooks, {**settings, "store": None})
            if self._wants_default:  # expected from now on, on every node
                self._try_default(own)
            settings = {**settings, "free_outputs": own.free_outputs()}
        reference = self._subject.source.kernel(self._subject.reference)
        parts = (self._subject.arguments, self._verifier)
        self._started_backend = session_backend(cluster, self._hooks, settings, reference, parts)
        return {**settings, "backend": self._started_backend}

    def _try_default(self, core: Any) -> None:
        try:
            core.try_once(self._subject.reference_index)
        except Error as error:
            config = self.space[self._subject.reference_index]
            raise InvalidArgument(f'verify="default": {config!r} itself fails: {error}') from error

    def _lane_event(self, is_gpu: bool, begins: bool, number: int, seconds: float) -> None:
        for observer in list(self._observers):
            observer.lane("gpu" if is_gpu else "compile", begins, number, seconds)

    def subscribe(self, observer: Any) -> Callable[[], None]:
        """Calls `observer.trial(trial)` at the end of each trial and `observer.lane(kind, begins,
        number, seconds)` when a lane, "compile" or "gpu", begins or ends its work on one; in the
        thread that runs the session. A callable gets trials alone. Returns a function that ends the
        subscription."""
        if not hasattr(observer, "trial"):
            if not callable(observer):
                raise ArgumentError(
                    f"a {type(observer).__name__} observes nothing: pass a callable, or an object "
                    "with a method trial()"
                )
            observer = TrialObserver(observer)
        self._observers.append(observer)

        def end() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return end

    def _trial(self, text: str) -> Trial:
        row = json.loads(text)
        row["config"] = {name: row["config"][name] for name in self.space.parameters}
        return Trial(row)

    def _keep(self, trial: Trial) -> Trial:
        self._trials.append(trial)
        for observer in list(self._observers):
            observer.trial(trial)
        return trial

    def _warn_of_unsaved(self) -> None:
        unsaved, why = self._core.unsaved()
        if unsaved and not self._warned:
            self._warned = True
            warn_of_unsaved(unsaved, why)

    def _next(self) -> Trial | None:
        while True:
            core = self._started()
            with as_task(self._scheduler, f"tune {self.name}"):
                text = core.next()
            self._warn_of_unsaved()
            if text is None:
                return None
            if (trial := self._trial(text)).number not in self._told:  # tell() returned it
                return self._keep(trial)

    def __iter__(self) -> Iterator[Trial]:
        """Trials as they end. What is left out of the loop can be looped over later."""
        while (trial := self._next()) is not None:
            yield trial
        self._finish()

    def _finish(self) -> Best | None:
        is_first = self._result is None
        self._result = self._ordered(self._started().finish())
        if self._started_backend is not None:
            self._started_backend.close()  # others want its devices
        best = self.best
        if is_first:
            warn_of_end(self._trials, best is None, str(self.reason), *self._core.unsaved())
        return best

    def run(self, progress: Any = None) -> Best | None:
        """Tunes until the budget is used up, and returns the best; None where no trial was correct.

        `progress`: "live" for a panel on the terminal, or a callable that gets each trial. Ctrl-C
        ends it with KeyboardInterrupt; `best` and `trials` then have what was found.
        """
        if progress is None:
            return self._run()
        if progress != "live":
            if isinstance(progress, (bool, str)):
                raise ArgumentError(
                    f'progress= is "live", for a panel, or a callable that gets each trial, got '
                    f"{progress!r}"
                )
            end = self.subscribe(progress)
            try:
                return self._run()
            finally:
                end()
        from kernwright.tune._sessions.panel import Panel

        panel = Panel(
            self.name,
            budget=self._budget,
            compile_lanes=self._lanes,
            device_lanes=len(self._settings["devices"]),
        )
        with panel:
            end = self.subscribe(panel)
            try:
                return self._run()
            finally:
                end()

    def _run(self) -> Best | None:
        try:
            for _ in self:
                pass
        except KeyboardInterrupt:
            if self._trials:
                with contextlib.suppress(Error, Warning):
                    self._finish()  # so that the store has the best until now
            raise
        return self.best

    async def run_async(self, progress: Any = None) -> Best | None:
        """run() in a thread of its own; cancelling it stops the session."""
        task = asyncio.ensure_future(asyncio.to_thread(self.run, progress))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self.stop()
            await task
            raise

    def stop(self) -> None:
        """Ends the session soon, from any thread, also before it has started."""
        # Takes no lock: a signal's handler may come while the session starts.
        self._is_stopped = True
        if self._core is not None:
            self._core.stop()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        """Ends the session. The store has its best as the result, also where a loop ended early."""
        self.stop()
        if self._trials:
            with contextlib.suppress(Error, Warning):
                self._finish()

    # -- for foreign optimisers --------------------------------------------------------------------

    def ask(self) -> Trial | None:
        """A trial to measure elsewhere: its `config`; None when the budget is used up. What the
        store knows is not asked for."""
        text = self._started().ask()
        if text is None:
            self._is_asked_out = True
            self._end_if_told()
            return None
        trial = self._trial(text)
        self._open.add(trial.number)
        return trial

    def tell(self, trial: Trial, outcome: Any, error: str = "") -> Trial:
        """The outcome of a trial of ask(): a time in milliseconds, a sequence of them, or a status
        ("compile", "runtime", ...)."""
        row = told_row(trial, outcome, error)
        told = self._trial(self._started().tell(json.dumps(row)))
        self._open.discard(told.number)
        self._told.add(told.number)
        told = self._keep(told)
        self._warn_of_unsaved()
        self._end_if_told()
        return told

    def _end_if_told(self) -> None:
        """The end, where nothing is left to ask for or to tell: with what the store knows."""
        if self._is_asked_out and not self._open:
            self._run()

    # -- what was found ----------------------------------------------------------------------------

    @property
    def trials(self) -> list[Trial]:
        """In the order in which they ended."""
        return list(self._trials)

    def _result_row(self) -> dict[str, Any]:
        if self._result is not None:
            return self._result
        correct = [trial for trial in self._trials if trial.score is not None]
        if not correct:
            return {}
        best = min(correct, key=lambda trial: (trial.score, self.space.index(trial.config)))
        row: dict[str, Any] = {name: best.row[name] for name in _BEST_MEMBERS}
        row["ties"] = [trial.config for trial in correct if trial.score == best.score]
        default = next((t for t in correct if t.config == self._subject.default), None)
        row["default_ms"] = None if default is None else default.time
        row["default_score"] = None if default is None else default.score
        return {**row, "noise": 0.0, "reason": "cancelled"}

    def _ordered(self, text: str) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(text)
        for config in (*row["ties"], *([row["config"]] if row["config"] else [])):
            values = dict(config)
            config.clear()
            config.update((name, values[name]) for name in self.space.parameters)
        return row

    @property
    def best(self) -> Best | None:
        """So far; after run() that of the final comparison."""
        row = self._result_row()
        return Best(row, self._subject.source.kernel) if row.get("config") is not None else None

    @property
    def reason(self) -> str | None:
        """Why it ended: "complete", "budget", "target" or "cancelled"; None before."""
        return None if self._result is None else str(self._result["reason"])

    @property
    def front(self) -> list[Trial]:
        """The trials that none beats in all objectives."""
        return self._hooks.front(self._trials)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What a store has of the session, from memory."""
        name = {"v": 1, "session": (self._core.id if self._core is not None else "") or "memory"}
        parameters = {key: list(values) for key, values in self.space.parameters.items()}
        session = {**self._about, **self.key, **name, "kind": "session"}
        session["space"] = {
            "parameters": parameters,
            "restrictions": list(self.space.restrictions),
            "hash": self.key["space"],
        }
        rows = [session, *({**trial.row, **name} for trial in self._trials)]
        result = self._result_row()
        if result.get("config") is not None:
            rows.append({**self.key, **result, **name})
        return rows

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the session as one page of HTML."""
        from kernwright.tune._report import write_report

        best = self.best
        config = best.config if best is not None else self._subject.reference
        write_report(self.rows, path, source=self._subject.source.text(config))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the trials as a T4 file (JSON), which Kernel Tuner and kw.tune.Table read."""
        from kernwright.tune._t4 import write_t4

        write_t4(path, self._trials, self.key["device"]["name"])

    def replay(
        self, strategy: str = "portfolio", evaluations: int | None = None, *, seed: int = 0
    ) -> list[float]:
        """The best score after each evaluation of a search by `strategy` through the trials of
        this session, without a device."""
        from kernwright.tune._table import Table

        table = Table({trial.config: trial.score for trial in self._trials})
        count = len(table) if evaluations is None else evaluations
        return table.replay(strategy, count, seed=seed)

    def __repr__(self) -> str:
        return f"<Session of {self.name}: {len(self._trials)} trials, best {self.best!r}>"

    def _repr_html_(self) -> str:
        from kernwright.tune._sessions.display import session_html

        return session_html(self.rows, self.name)
