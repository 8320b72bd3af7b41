"""Tuned: a kernel with configuration, grid and block from a store, by the problem's size."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kernwright import _core
from kernwright._support.warn import warn_caller
from kernwright.errors import (
    ArgumentError,
    Error,
    InvalidArgument,
    LaunchConfigError,
    PerformanceWarning,
    StoreError,
)
from kernwright.tune._config import Config, Value, mapping
from kernwright.tune._expression import Expression
from kernwright.tune._launch_rule import ClusterRule, LaunchRule, ProblemReader
from kernwright.tune._store import PARTS, Match, Row, Store, as_store, kernel_key, source_hash

_NEAR = tuple(part for part in PARTS if part != "source")
_SPECS = ("grid", "block", "shared_bytes", "cluster", "default", "restrictions")
_MOST_CHOICES = 4096
_MOST_REASONS = 20


@dataclass(frozen=True)
class Choice:
    """The launch for one problem on one device, and its reason.

    `config` is None for the kernel as it is. `launch` takes the kernel's arguments.

    After the example of kw.tune.Tuned:

    >>> choice = fast.choice(n=512)
    >>> choice.from_store, choice.config == best.config
    (True, True)
    """

    problem: Mapping[str, Value]
    device: str
    config: Config | None
    launch: Any
    from_store: bool
    reason: str

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.problem.items())
        config = "the kernel as it is" if self.config is None else repr(self.config)
        return f"{values or 'every problem'} on {self.device}: {config}: {self.reason}"


def configured(kernel: _core.Kernel, config: Mapping[str, Value] | None) -> _core.Kernel:
    """The kernel with the configuration's values as defines."""
    from kernwright._jit.kernels import _state
    from kernwright._jit.options import ProgramOptions

    if not config or kernel._program is None:
        return kernel
    located, given = _state(kernel._program)
    options = given or ProgramOptions()
    defines = {**options._as_dict()["defines"], **config}
    return _core._Program(*located, options.replace(defines=defines)).kernel(kernel.name)


class BoundRule(LaunchRule):
    """A LaunchRule with a cluster; it makes launches of kernels."""

    def __init__(self, grid: Any, block: Any, shared_bytes: Any = 0, cluster: Any = None) -> None:
        super().__init__(grid, block, shared_bytes)
        self._cluster = None if cluster is None else ClusterRule(cluster)

    @property
    def names(self) -> set[str]:
        return super().names | (self._cluster.names if self._cluster is not None else set())

    def bind(self, chosen: _core.Kernel, values: Mapping[str, Value]) -> Callable[..., None]:
        """The launch of a configured kernel, compiled for the current device."""
        grid, block, shared_bytes = self(values)
        chosen.compile()
        threads = 1
        for extent in block:
            threads *= extent
        most = chosen.attributes.max_threads_per_block
        if threads > most:
            raise LaunchConfigError(f"a block of {threads} threads, {most} at most for this kernel")
        if self._cluster is None:
            return chosen[grid, block, None, shared_bytes]
        cluster = self._cluster.extents(values)
        config = _core.LaunchConfig(grid, block, shared_bytes=shared_bytes, cluster=cluster)
        return functools.partial(chosen.launch, config)


def _near_parts(near: bool | str | Iterable[str]) -> frozenset[str]:
    if isinstance(near, bool):
        return frozenset(_NEAR if near else ())
    parts = frozenset([near] if isinstance(near, str) else near)
    unknown = [part for part in parts if part not in _NEAR]
    if unknown:
        raise InvalidArgument(
            f"near={unknown[0]!r}: what may differ is {', '.join(_NEAR)}; a result for another "
            "source is never used"
        )
    return parts


class Tuned(_core.TunedCall):
    """A kernel launched as a store says for the problem at hand.

    After the example of kw.tune.Session:

    >>> fast = kw.kernel(text).tuned("tuned.jsonl")
    >>> fast(x, y, x.size)                # n chooses configuration and grid
    >>> fast[kw.Stream()](x, y, x.size)
    >>> fast.for_problem(n=512)(x, y, 512)    # chosen once
    >>> fast.why.startswith("n=512 on ")
    True

    Launches on the current stream, in stream order, as kernel[grid, block](...) does. The values of
    the problem that results name are the kernel's parameters of these names; `problem` names other
    places. A result is used if it is for this source with its headers, this device class, NVRTC and
    driver, and for a problem in the same bucket (a power of two) in each dimension. Its
    restrictions must hold as well. Where there is none, the default is launched, and a warning says
    why, once. Thread-safe.
    """

    def __init__(
        self,
        kernel: _core.Kernel,
        store: Any = None,
        *,
        space: Any = None,
        problem: Mapping[str, Any] | None = None,
        grid: Any = None,
        block: Any = None,
        shared_bytes: Any = None,
        cluster: Any = None,
        default: Mapping[str, Any] | None = None,
        near: bool | str | Iterable[str] = False,
        policy: str = "",
        objective: str = "time",
    ) -> None:
        """`store`: a Store, a path, a list of them, or None for what the packs in use bring along.

        `near`: parts of the key in which a result may differ ("driver", "nvrtc", "device", "space",
        "problem", "policy", "objective"), or True for all; a `PerformanceWarning` tells of such
        uses. `space` and `policy` allow only results of this space and this way of measuring.
        `grid`, `block`, `shared_bytes`, `cluster` and `default` (a configuration) come before those
        of the store.
        """
        if not isinstance(kernel, _core.Kernel):
            raise ArgumentError(f"Tuned() takes a kernel, got {type(kernel).__name__}")
        if kernel._program is None or kernel._program.code is not None:
            raise InvalidArgument(f"{kernel!r} is object code: there is no source to configure")
        if (grid is None) != (block is None):
            raise ArgumentError("grid= and block= go together")
        self.kernel = kernel
        self.store: Store = packed_rows() if store is None else as_store(store)
        self._near = _near_parts(near) | (frozenset(["driver"]) if store is None else frozenset())
        self._rule = None if grid is None else BoundRule(grid, block, shared_bytes, cluster)
        self._default = None if default is None else Config(default)
        self._query = {"space": space, "policy": policy, "objective": objective}
        self._reader = ProblemReader(kernel, problem)
        self._lock = threading.RLock()
        self._told: set[str] = set()
        self.reload()

    def reload(self) -> None:
        """Looks into the store anew for every problem, such as after a session."""
        with self._lock:
            self._sessions: dict[str, Row] = {}
        rows = [row for row in self.store.results if row.get("kernel") == self.kernel.name]
        self._tunable = set(self._default or ()).union(*(row["config"] for row in rows))
        self._tunable.update(getattr(self._query["space"], "parameters", ()))
        names: dict[str, None] = {}
        for row in rows:
            names.update(dict.fromkeys(mapping(row.get("problem"), "problem")))
            names.update(dict.fromkeys(self._outer_names(row)))
        if not rows and self._rule is not None:
            names.update(dict.fromkeys(sorted(self._rule.names - set(self._default or ()))))
        with self._lock:
            self._parameters = {frozenset(row["config"]) for row in rows}
            self._names = list(names)
            self._choices: dict[Any, Choice] = {}
            self._key_by(self._reader.places(self._names))

    def _outer_names(self, row: Row) -> list[str]:
        """The names in a result's expressions, without parameters."""
        rule = self._sound_rule_of(row)
        names = rule.names if rule is not None else set()
        for text in self._member(row, "restrictions") or ():
            try:
                names |= set(Expression(text).names)
            except Error:
                continue  # it decides nothing but for the problem that was tuned
        # A restriction may name what no argument tells: it is then no reason to fail.
        # A parameter of other results that this one lacks leaves it without a launch, see _try().
        wanted = (rule.names if rule is not None else set()) - set(row["config"])
        wanted = {n for n in wanted if n not in self._tunable or self._reader.knows(n)}
        optional = {name for name in names if self._reader.places([name]) is not None}
        return sorted(wanted | (optional - set(row["config"])))

    def _member(self, row: Row, name: str) -> Any:
        """A member of the result, or of its session's row."""
        if row.get(name) is not None:
            return row[name]
        session = self._session(str(row["session"]))
        if session.get(name) is not None:
            return session[name]
        space = session.get("space")
        return space.get(name) if isinstance(space, dict) else None

    def _session(self, name: str) -> Row:
        """A session's row; a journal is read once for all of them."""
        with self._lock:
            if name not in self._sessions:
                rows = self.store.rows("session")
                self._sessions = {name: {}, **{row["session"]: row for row in rows}}
            return self._sessions[name]

    def _rule_of(self, row: Row) -> BoundRule | None:
        if self._rule is not None:
            return self._rule
        grid, block = self._member(row, "grid"), self._member(row, "block")
        if grid is None or block is None:
            return None
        shared_bytes, cluster = self._member(row, "shared_bytes"), self._member(row, "cluster")
        return BoundRule(grid, block, shared_bytes, cluster)

    def _sound_rule_of(self, row: Row) -> BoundRule | None:
        """None where the row's expressions are damaged: _try() tells how."""
        with contextlib.suppress(ArgumentError, InvalidArgument):
            return self._rule_of(row)
        return None

    # -- choosing --------------------------------------------------------------------------------

    def _resolve(self, arguments: tuple[Any, ...]) -> tuple[Any, int, bool]:
        """The target of TunedCall for these arguments, from now on for all such."""
        return self.choice(self._reader.read(self._names, arguments)).launch, -1, False

    def choice(self, problem: Mapping[str, Any] | None = None, /, **more: Any) -> Choice:
        """The target for a problem on the current device; compiled when it was not yet."""
        values = {**mapping(problem, "choice()"), **more}
        device = _core.current_device()
        key = (device, tuple(sorted((name, type(v), v) for name, v in values.items())))
        with self._lock:
            known = self._choices.get(key)
        if known is not None:
            return known
        found = self._choose(values, device)
        with self._lock:
            if len(self._choices) >= _MOST_CHOICES:
                self._choices.clear()
            self._choices[key] = found
        return found

    def for_problem(self, problem: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """The launch for a problem: a callable of the kernel's arguments."""
        return self.choice(problem, **more).launch

    def matches(self, problem: Mapping[str, Value]) -> list[Match]:
        """The results of the store for a problem, nearest first, for the current device."""
        found: list[Match] = []
        for parameters in self._parameters:
            query = kernel_key(self.kernel, sorted(parameters), problem=problem, **self._query)
            if not query["source"]:
                self._tell(
                    f"{self.kernel.name} includes a header whose name only the preprocessor knows: "
                    "no result of a store is used for it"
                )
                return []
            matches = self.store.find(query)
            found += [match for match in matches if frozenset(match.row["config"]) == parameters]
        return sorted(found, key=lambda match: match.distance)

    def _choose(self, problem: Mapping[str, Value], device: _core.Device) -> Choice:
        reasons: list[str] = []
        try:
            matches = self.matches(problem)
        except StoreError as error:  # it could be read before: launches go on
            matches, reasons = [], [str(error)]
        for match in matches:
            differences = dict(match.differences)
            unwanted = [text for part, text in differences.items() if part not in self._near]
            if unwanted:
                reasons.append("; ".join(unwanted))
                continue
            reason = self._refusal(match, problem)
            launch = None if reason else self._try(match, problem, reasons)
            if launch is None:
                reasons += [reason] if reason else []
                continue
            says = "; ".join(differences.values())
            text = f"the result of session {match.row['session']} in {match.path}"
            text += f" ({says})" if says else ""
            choice = Choice(problem, device.name, match.config, launch, True, text)
            if says:
                self._tell(f"{self.kernel.name}: a near result is used: {choice}")
            return choice
        return self._fall_back(problem, device, matches, reasons)

    def _refusal(self, match: Match, problem: Mapping[str, Value]) -> str:
        """Why a result cannot be used for this problem; empty where it can."""
        if problem == match.row.get("problem"):
            return ""  # it was measured so
        values = {**problem, **match.row["config"]}
        for text in self._member(match.row, "restrictions") or ():
            try:
                holds = Expression(text)(values)
            except Error as error:
                return f"its restriction {text!r} cannot be checked: {error}"
            if not holds:
                return f"its restriction {text!r} does not hold"
        return ""

    def _try(self, match: Match, problem: Mapping[str, Value], reasons: list[str]) -> Any:
        """The launch of a result, or None with a reason."""
        try:
            rule = self._rule_of(match.row)
            if rule is None:
                reasons.append("it has no grid and block: pass grid= and block=")
                return None
            nvrtc = match.row.get("nvrtc")
            chosen = configured(self.kernel, match.config)
            own = chosen._facts(None)["nvrtc_version"]
            if own != nvrtc and "nvrtc" not in self._near:
                reasons.append(f"nvrtc: {nvrtc or 'unknown'}, not {own}")
                return None
            return rule.bind(chosen, {**problem, **match.config})
        except Error as error:
            reasons.append(f"{match.config!r} cannot be used: {error}")
            return None

    def _fall_back(
        self,
        problem: Mapping[str, Value],
        device: _core.Device,
        matches: list[Match],
        reasons: list[str],
    ) -> Choice:
        with contextlib.suppress(StoreError):
            reasons += self.store.problems
        unique = list(dict.fromkeys(reasons))
        why = "; ".join(unique[:_MOST_REASONS]) or "the store has no result for this kernel"
        failed: list[str] = []
        for text, config, rule in self._defaults(matches, problem):
            values = {**problem, **(config or {})}
            if rule is None or not rule.names <= values.keys():
                continue
            try:
                launch = rule.bind(configured(self.kernel, config), values)
            except Error as error:
                failed.append(f"{text} cannot be used: {error}")
                continue
            choice = Choice(problem, device.name, config, launch, False, f"{text}, because: {why}")
            self._tell(f"{self.kernel.name}: no tuned configuration: {choice}")
            return choice
        raise InvalidArgument(
            f"{self.kernel.name}: there is no tuned configuration for {dict(problem)!r} ({why}), "
            "and no default that can be launched: pass grid=, block= and default="
            + "".join(f"; {text}" for text in failed)
        )

    def _defaults(
        self, matches: list[Match], problem: Mapping[str, Value]
    ) -> Iterable[tuple[str, Config | None, BoundRule | None]]:
        """What may be launched instead, the best first. A result for another source still tells
        the grid, block and default that its session was given."""
        sound = map(self._sound_rule_of, (match.row for match in matches))
        rules = [rule for rule in sound if rule is not None]
        rule = self._rule or (rules[0] if rules else None)
        if self._default is not None:
            yield "the default", self._default, rule
            return
        for match in matches:
            default = self._member(match.row, "default")
            if isinstance(default, dict) and default:
                yield "the default of its session", Config(default), self._sound_rule_of(match.row)
                break
        yield "the kernel as it is", None, rule
        for match in matches:
            is_stale = any(part == "source" for part, _ in match.differences)
            if not is_stale and not self._refusal(match, problem):
                text = "the nearest result, for want of a default"
                yield text, match.config, self._sound_rule_of(match.row)

    def packed(self) -> tuple[list[_core.Kernel], bytes]:
        """The parts for kw.pack(): all kernels for launches, and rows of results."""
        rows: list[Row] = []
        configs: dict[Config, None] = {}
        kernel_rows = [r for r in self.store.results if r.get("kernel") == self.kernel.name]
        for row in kernel_rows:
            if row.get("source") != source_hash(self.kernel, row["config"]):
                continue  # stale, here as there
            specs = {name: self._member(row, name) for name in _SPECS}
            given = {name: spec for name, spec in specs.items() if spec is not None}
            # As code in a pack, its results hold where the header files are missing.
            text = _core._tune_text_hash(self.kernel._program, list(row["config"]))
            rows.append({**row, **given, "source_text": text})
            configs[Config(row["config"])] = None
            if isinstance(specs["default"], dict):
                configs[Config(specs["default"])] = None
        if self._default is not None:
            configs[self._default] = None
        if not rows:
            raise InvalidArgument(
                f"the store has no result for {self.kernel.name} and its source as it is now: "
                "there is nothing tuned to pack"
            )
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        return [configured(self.kernel, config) for config in configs], lines.encode()

    # -- telling ---------------------------------------------------------------------------------

    def _tell(self, text: str) -> None:
        with self._lock:
            if text in self._told or len(self._told) >= _MOST_CHOICES:
                return
        warn_caller(text, PerformanceWarning)
        with self._lock:
            self._told.add(text)  # not before: a warning that is an error is raised at each call

    @property
    def choices(self) -> list[Choice]:
        """The choices so far."""
        with self._lock:
            return list(self._choices.values())

    @property
    def why(self) -> str:
        """A line for each problem so far: its launch, and the reason."""
        return "\n".join(map(str, self.choices))

    def __getitem__(self, stream: Any) -> Callable[..., None]:
        """The same on a stream: a kw.Stream, a handle, or a stream of another library."""
        return on_stream(self, stream)

    # Without this, a missing __iter__ would make Python try self[0], self[1], ...
    __iter__ = None

    def __repr__(self) -> str:
        return f"<Tuned {self.kernel.name} by {self.store!r}>"


def on_stream(call: Callable[..., None], stream: Any) -> Callable[..., None]:
    """`call` with the given stream as the current one."""
    borrowed = _core.Stream.borrow(stream)

    def launch(*arguments: Any) -> None:
        with borrowed:
            call(*arguments)

    return launch


def packed_rows() -> Store:
    """The rows from the packs in use."""
    from kernwright._jit.pack import rows_in_use

    rows = rows_in_use()
    if not rows:
        raise InvalidArgument(
            "no pack in use has results of tuning: name a store, or call kw.use_pack() before"
        )
    return Store(rows)
