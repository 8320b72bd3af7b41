"""Online: a kernel is tuned while it serves, within a bounded share of the time."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError, Error, InvalidArgument
from kernwright.schedule._blocks import require_scheduler
from kernwright.tune._config import Config, mapping
from kernwright.tune._expression import Expression
from kernwright.tune._launch_rule import LaunchRule, ProblemReader
from kernwright.tune._meter import Meter, meter_for
from kernwright.tune._online_search import OnlinePlan, OnlineSearch, OnlineTrial
from kernwright.tune._sessions.text_check import KernelText, check_clashes, warn_of_unused
from kernwright.tune._space import Space, seed_argument
from kernwright.tune._store import as_store, kernel_key
from kernwright.tune._strategy import strategies
from kernwright.tune._tuned import BoundRule, on_stream

POLICY = "online"


def _share(name: str, value: Any, least: float) -> float:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise ArgumentError(f"{name}= is a number, got {type(value).__name__}")
    number = float(value)
    if not (number > least and math.isfinite(number)):
        raise InvalidArgument(f"{name}={number}: it must be above {least}")
    return number


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{name}= is an int, got {type(value).__name__}")
    if value.__index__() < 1:
        raise InvalidArgument(f"{name}={value}: it must be at least 1")
    return int(value.__index__())


class Online(_core.TunedCall):
    """A kernel in service: it tries other configurations now and then.

    >>> twice = kw.kernel('''__global__ void twice(const float* x, float* y, int n) {
    ...     int i = blockIdx.x * BLOCK + threadIdx.x;
    ...     if (i < n) y[i] = 2 * x[i];
    ... }''')
    >>> space = kw.tune.Space(BLOCK=[64, 128])
    >>> serve = twice.online(space, grid="-(-n // BLOCK)", block="BLOCK")
    >>> serve(x, y, x.size)    # launched exactly once, by the best so far
    >>> serve.config in space, serve.frozen
    (True, False)

    Every call launches the incumbent (the best configuration so far) once, on the caller's
    arguments and the current stream. Trials take at most the share `overhead` of the time of these
    launches. A trial runs a candidate on copies of the arrays (shadows), also of const ones while
    `shadow_bytes` has room for them. The candidate becomes the incumbent if it writes the same
    values (within `rtol` and `atol`) in several launches, leaves const arrays alone, and takes less
    time in several pairs of launches. The former incumbent comes back if the new one takes more
    than `guard` times as long. Nothing is tried during a capture. When no candidate is left, or
    `patience` candidates in a row were no gain, the search is frozen: a launch then costs as much
    as one of kernel.tuned().

    Each bucket of problem values (a power of two in each dimension) and each device has its own
    search. With a `store` a search begins with earlier results for this kernel, device and
    toolchain, and adds its own.

    NOTE: candidates run in this process, so a fault of a candidate on a GPU ends the context. Offer
    only configurations that stay within their arrays. Shadows take at most `shadow_bytes`. Host
    arrays, kw.Pointer and partly overlapping arrays have no shadows; if all calls have such
    arguments, the search is frozen. Thread-safe; one thread at a time explores.

    With a `scheduler` (kw.schedule.Scheduler) trials are best-effort tasks of it: shadows and
    candidates run only while no guaranteed or burstable task waits or runs.
    """

    def __init__(
        self,
        kernel: _core.Kernel,
        space: Space,
        overhead: float = 0.02,
        guard: float = 1.10,
        *,
        grid: Any,
        block: Any,
        shared_bytes: Any = 0,
        cluster: Any = None,
        problem: Mapping[str, Any] | None = None,
        default: Mapping[str, Any] | None = None,
        store: Any = None,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        patience: int = 50,
        shadow_bytes: int = 1 << 28,
        strategy: str = "portfolio",
        seed: int = 0,
        meter: Callable[[_core.Device], Meter] = meter_for,
        scheduler: Any = None,
    ) -> None:
        """`grid`, `block`, `shared_bytes`, `cluster`, `problem` and `store` as for Kernel.tuned();
        `default` is the first incumbent (without one: the first configuration of the space)."""
        if not isinstance(kernel, _core.Kernel):
            raise ArgumentError(f"Online() takes a kernel, got {type(kernel).__name__}")
        if not isinstance(space, Space):
            raise ArgumentError(f"online(space) wants a kw.tune.Space, got {type(space).__name__}")
        if kernel._program is None or kernel._program.code is not None:
            raise InvalidArgument(f"{kernel!r} is object code: there is no source to configure")
        if strategy not in strategies():
            raise InvalidArgument(
                f"strategy= is one of {', '.join(strategies())}, got {strategy!r}"
            )
        self.kernel = kernel
        self.space = space
        self.store = None if store is None else as_store(store)
        if self.store is not None:
            self.store.own_path()  # says what is wrong with it
        self._default = None if default is None else Config(default)
        self._specs = {"grid": grid, "block": block, "shared_bytes": shared_bytes,
                       "cluster": cluster}  # fmt: skip
        rule = BoundRule(grid, block, shared_bytes, cluster)
        check_clashes(space.parameters, [KernelText.of(kernel)])
        warn_of_unused(kernel, space.parameters, [rule])
        self._reader = ProblemReader(kernel, problem)
        self._names = self._problem_names(rule, problem)
        self._meter = meter
        self._session = uuid.uuid4().hex[:12]
        self._begin = time.time()
        self._lock = threading.Lock()  # of the one that explores
        self._searches: dict[Any, OnlineSearch] = {}
        self._plan = OnlinePlan(
            kernel,
            space,
            rule,
            _share("overhead", overhead, 0.0),
            _share("guard", guard, 1.0),
            (_share("rtol", rtol, -1.0), _share("atol", atol, -1.0)),
            _count("shadow_bytes", shadow_bytes),
            _count("patience", patience),
            strategy,
            seed_argument(seed),
            self._settled,
            self._forget,
            require_scheduler(scheduler),
        )
        self._key_by(self._reader.places(self._names))

    def _problem_names(self, rule: LaunchRule, problem: Mapping[str, Any] | None) -> list[str]:
        names = rule.names | set(problem or ())
        for kind, what in self.space._requirements:
            if kind == "restriction" and isinstance(what, str):
                names |= set(Expression(what).names)
        names -= set(self.space.parameters) | set(self.space.problem)
        return sorted(names)

    def _forget(self) -> None:
        """Drops the targets in use: another configuration is the incumbent now."""
        for search in self._all():
            search.forget_calls()
        self._key_by(self._reader.places(self._names))

    # -- serving ---------------------------------------------------------------------------------

    def _resolve(self, arguments: tuple[Any, ...]) -> tuple[Any, int, bool]:
        problem = self._reader.read(self._names, arguments)
        if _core._any_capture() or _is_capturing():
            return self._search(problem).serve_only(problem), 0, False
        if not self._lock.acquire(blocking=False):
            search = self._find(problem)
            if search is not None:
                return search.serve_only(problem), 0, False
            self._lock.acquire()
        try:
            return self._search(problem).serve(problem, arguments)
        finally:
            self._lock.release()

    def _place(self, problem: Mapping[str, Any]) -> Any:
        buckets = tuple(_core._tune_bucket(value) for value in problem.values())
        return _core.current_device(), buckets

    def _find(self, problem: Mapping[str, Any]) -> OnlineSearch | None:
        return self._searches.get(self._place(problem))

    def _search(self, problem: Mapping[str, Any]) -> OnlineSearch:
        place = self._place(problem)
        search = self._searches.get(place)
        if search is None:
            search = self._searches[place] = self._begin_search(problem)
        return search

    def _begin_search(self, problem: Mapping[str, Any]) -> OnlineSearch:
        meter = self._meter(_core.current_device())
        space = self.space.with_problem(problem)
        default = self._default if self._default is not None else space[0]
        search = OnlineSearch(self._plan, problem, meter, default)
        if self.store is None:
            return search
        nvrtc = search.launch(default, problem) and search.nvrtc()
        for match in self.store.find(self._key(problem, nvrtc, policy="")):
            if match.exact and match.config in space:
                search.incumbent = match.config
                row = match.row
                if row.get("policy") == POLICY and row.get("reason") == "complete":
                    search.frozen = f"session {row['session']} of {match.path} is complete"
                break
        return search

    # -- keeping ---------------------------------------------------------------------------------

    def _key(self, problem: Mapping[str, Any], nvrtc: str, policy: str) -> dict[str, Any]:
        return kernel_key(
            self.kernel,
            list(self.space.parameters),
            problem=problem,
            space=self.space,
            policy=policy,
            nvrtc=nvrtc,
        )

    def _settled(self, search: OnlineSearch, reason: str) -> None:
        """Keeps the incumbent in the store: a new one, or the last one of a search."""
        if self.store is None or search.cost is None:
            return
        in_ms = search.meter.unit == "ms"
        restrictions = [what for _, what in self.space._requirements if isinstance(what, str)]
        specs = {name: None if _has_callable(spec) else spec for name, spec in self._specs.items()}
        try:
            row = {
                "kind": "result",
                "session": self._session,
                **self._key(search.problem, search.nvrtc(), POLICY),
                **specs,
                "config": dict(search.incumbent),
                "default": dict(search.default),
                "restrictions": restrictions,
                "median_ms": search.cost if in_ms else None,
                "score": search.cost,
                "default_ms": search.default_cost if in_ms else None,
                "relative": search.relative,
                "evaluations": len(search.trials),
                "seconds": time.time() - self._begin,
                "reason": reason or "running",
            }
            self.store.append(row)
        except Error as error:
            _core._log_warning(f"{self.kernel.name}: what online tuning found is not kept: {error}")

    # -- looking ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Explores no more: every search is frozen with its incumbent."""
        with self._lock:
            for search in self._all():
                search.stop()
            self._forget()

    def _all(self) -> list[OnlineSearch]:
        return list(self._searches.values())

    @property
    def config(self) -> Config | None:
        """The incumbent of the latest search; None before the first call."""
        searches = self._all()
        return searches[-1].incumbent if searches else None

    def config_for(self, problem: Mapping[str, Any] | None = None, /, **more: Any) -> Config:
        """The incumbent for a problem on the current device."""
        values = {**mapping(problem, "config_for()"), **more}
        if values.keys() != set(self._names):
            raise InvalidArgument(f"config_for() wants the values {', '.join(self._names)}")
        found = self._find({name: values[name] for name in self._names})
        if found is None:
            raise InvalidArgument("no such problem was served yet")
        return found.incumbent

    @property
    def frozen(self) -> bool:
        """Whether all searches have ended."""
        searches = self._all()
        return bool(searches) and all(search.frozen for search in searches)

    @property
    def trials(self) -> list[OnlineTrial]:
        """The tried configurations of all searches, in order."""
        return [trial for search in self._all() for trial in search.trials]

    @property
    def spent(self) -> float:
        """The cost of trials: milliseconds of the device and of the host; counts when simulated."""
        return sum(search.spent for search in self._all())

    @property
    def served(self) -> float:
        """The cost of the callers' launches, in the same unit, as far as it is counted."""
        return sum(search.served for search in self._all())

    @property
    def overhead(self) -> float:
        """The share of the trials: spent / served."""
        return self.spent / self.served if self.served else 0.0

    @property
    def why(self) -> str:
        """A line for each search: its incumbent, its trials, and why it has ended."""
        lines = []
        for (device, _), search in list(self._searches.items()):
            values = ", ".join(f"{name}={value!r}" for name, value in search.problem.items())
            state = search.frozen or "goes on"
            lines.append(
                f"{values or 'every problem'} on {device.name}: {search.incumbent!r} at "
                f"{search.relative:.3g} of the default's time after {len(search.trials)} trials; "
                f"{state}"
            )
        return "\n".join(lines)

    def __getitem__(self, stream: Any) -> Callable[..., None]:
        """The same on a stream: a kw.Stream, a handle, or a stream of another library."""
        return on_stream(self, stream)

    __iter__ = None

    def __repr__(self) -> str:
        state = "frozen" if self.frozen else "exploring"
        return f"<Online {self.kernel.name}: {state}, {len(self.trials)} trials>"


def _is_capturing() -> bool:
    try:
        return _core.current_stream().is_capturing
    except Error:
        return True  # the driver refuses to tell while another stream is captured


def _has_callable(spec: Any) -> bool:
    return any(map(callable, spec)) if isinstance(spec, (list, tuple)) else callable(spec)
