"""The arguments of a session, read and completed."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._support.files import read_text
from kernwright.errors import ArgumentError, Error, InvalidArgument, NameNotFound
from kernwright.tune._config import Config, Value, mapping
from kernwright.tune._expression import Expression
from kernwright.tune._launch_rule import LaunchRule, ProblemReader
from kernwright.tune._sessions.arguments import Arguments, Verifier, _host_array
from kernwright.tune._sessions.kernel import TunedSource
from kernwright.tune._space import Space
from kernwright.tune._store import Store, _fingerprint
from kernwright.tune._strategy import strategies

POLICIES = ("cold", "warm", "rotate", "graph")
_WARM_STARTS = 3
_MOST_LANES = 1024  # threads, each with a process


def index_of(value: Any, name: str, none: int | None = None, most: int = 2**31 - 1) -> int:
    if value is None and none is not None:
        return none
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{name}= is an int, got {type(value).__name__}")
    if value.__index__() < 1:
        raise InvalidArgument(f"{name}= is at least 1, got {value}")
    if value.__index__() > most:
        raise InvalidArgument(f"{name}= is at most {most}, got {value}")
    return int(value.__index__())


def seconds_of(value: Any, name: str) -> float:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise ArgumentError(f"{name}= is a number of seconds, got {type(value).__name__}")
    seconds = float(value)
    if not 0 < seconds < 1e6:
        raise InvalidArgument(f"{name}= is above 0 and below a million seconds, got {value}")
    return seconds


def check_choices(
    space: Any, grid: Any, block: Any, strategy: Any, isolation: Any, policy: Any
) -> None:
    """Raises for what a session wants and was not given, and for words that it does not know."""
    if not isinstance(space, Space):
        raise ArgumentError(f"Session(kernel, space) wants a Space, got {type(space).__name__}")
    if grid is None or block is None:
        raise ArgumentError('a session wants grid= and block=: grid="-(-n // B)", block="B"')
    for name, value, known in (
        ("strategy", strategy, strategies()),
        ("isolation", isolation, ("process", "inproc")),
        ("policy", policy, POLICIES),
    ):
        if value not in known:
            raise InvalidArgument(f"{name}= is one of {', '.join(known)}, got {value!r}")


def measure_settings(
    isolation: str, policy: str, samples: Any, window: Any, compile_timeout: Any, run_timeout: Any
) -> dict[str, Any]:
    """How trials are compiled, run and measured, as the engine takes it."""
    return {
        "in_process": isolation == "inproc",
        "policy": "cold" if policy == "counts" else policy,
        "window": index_of(window, "window", none=0),
        "samples": index_of(samples, "samples"),
        "compile_timeout": seconds_of(compile_timeout, "compile_timeout"),
        "run_timeout": seconds_of(run_timeout, "run_timeout"),
    }


def lanes_of(workers: Any) -> int:
    """How many compiles go on at once: all processors but one for measuring."""
    if workers is not None:
        return index_of(workers, "workers", most=_MOST_LANES)
    return max(len(os.sched_getaffinity(0)) - 1, 1)


def worker_program() -> list[str]:
    """The program of worker processes, beside the extension."""
    program = pathlib.Path(_core.__file__).with_name("kernwright-worker")
    return [str(program)] if os.access(program, os.X_OK) else []


def devices_of(devices: Any) -> tuple[list[_core.Device], list[str]]:
    """The devices of a session, and their names for workers. None: the current one.
    On the simulated device a number of them may be given."""
    current = _core.current_device()
    if devices is None:
        chosen = [current]
    elif isinstance(devices, int) and not isinstance(devices, bool):
        if not current.is_simulated:
            raise ArgumentError("devices= is a list of devices, such as [0, 1]")
        chosen = [current] * index_of(devices, "devices", most=_MOST_LANES)
    elif isinstance(devices, str) and devices != "all":
        chosen = [_core.Device(devices)]
    elif devices == "all":
        chosen = list(_core.devices())
    else:
        chosen = [_core.Device(device) for device in devices]
    if not chosen:
        raise InvalidArgument("devices= is an empty list")
    kinds = {(device.name, device.compute_capability) for device in chosen}
    if len(kinds) > 1:
        names = ", ".join(sorted(name for name, _ in kinds))
        raise InvalidArgument(f"devices of one session are of one kind, got {names}")
    labels = ["sim" if device.is_simulated else f"cuda:{device.ordinal}" for device in chosen]
    return chosen, labels


def problem_values(
    source: TunedSource,
    space: Space,
    rule: LaunchRule,
    given: Any,
    arguments: tuple[Any, ...],
    default: Config | None,
) -> dict[str, Value]:
    """The problem's values by name: those given, and arguments that expressions name."""
    sources = dict(mapping(given, "problem="))
    names = set(rule.names)
    for restriction in space._requirements:
        if restriction[0] == "restriction" and isinstance(restriction[1], str):
            names.update(Expression(restriction[1]).names)
    missing = names - set(space.parameters) - set(sources) - set(space.problem)
    first = Config({name: values[0] for name, values in space.parameters.items()})
    kernel = source.base(first if default is None else default)
    if rule.calls:  # they may want any
        declared = _core._tune_parameter_names(kernel._program, kernel.name)
        whole = [isinstance(a, (int, np.integer)) and not isinstance(a, bool) for a in arguments]
        missing |= {n for n, is_whole in zip(declared, whole, strict=False) if n and is_whole}
        missing -= {*space.parameters, *sources, *space.problem}
    reader = ProblemReader(kernel, sources)
    wanted = [*sources, *sorted(missing)]
    try:
        return {**dict(space.problem), **reader.read(wanted, arguments)}
    except NameNotFound as error:
        raise NameNotFound(
            f"{error}. Parameters of the space are: {', '.join(space.parameters)}"
        ) from None


def read_proposals(proposals: Any, space: Space) -> list[int]:
    """Indices of configurations: a list of mappings, or a JSON file of one."""
    if proposals is None:
        return []
    if isinstance(proposals, (str, os.PathLike)):
        path = os.fspath(proposals)
        try:
            proposals = json.loads(read_text(path))
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidArgument(f"the proposals in {path} are no JSON: {error}") from None
        if isinstance(proposals, Mapping):
            proposals = [proposals]
    if not isinstance(proposals, Sequence) or not all(isinstance(p, Mapping) for p in proposals):
        raise ArgumentError(
            "proposals= is a list of configurations, a JSON file of one, or a callable that "
            "returns one"
        )
    return [space.index(proposal) for proposal in proposals]


def warm_start(store: Store, key: Mapping[str, Any], space: Space) -> list[int]:
    """Winners of the nearest results in the store, as far as this space has them."""
    found: list[int] = []
    query = {name: value for name, value in key.items() if name != "space"}
    for match in store.find(query):
        if len(found) == _WARM_STARTS:
            break
        try:
            index = space.index(match.config)
        except (Error, KeyError):
            continue
        if index not in found:
            found.append(index)
    return found


def symbol_bytes(constants: Any) -> dict[str, bytes]:
    """Contents of variables by name, as bytes."""
    found = {}
    for name, value in mapping(constants, "constants=").items():
        if not isinstance(name, str):
            raise ArgumentError(f"constants= has a {type(name).__name__} where a name is wanted")
        array = _host_array(value, 0)
        if array is None and not isinstance(value, (bytes, np.generic)):
            raise ArgumentError(
                f"constants[{name!r}] is an array or bytes, got {type(value).__name__}"
            )
        held = value if array is None else array
        found[name] = held if isinstance(held, bytes) else held.tobytes()
    return found


def _told(spec: Any) -> Any:
    """As JSON has it; None for values with functions."""
    if isinstance(spec, (list, tuple)):
        parts = [_told(part) for part in spec]
        return None if any(part is None for part in parts) else parts
    if isinstance(spec, str):
        return spec
    return None if callable(spec) else int(spec)


def _identity(spec: Any) -> str:
    if isinstance(spec, (list, tuple)):
        return "(" + ", ".join(_identity(part) for part in spec) + ")"
    return _fingerprint(spec) if callable(spec) else str(spec)


def about_row(
    rule: LaunchRule,
    cluster: Any,
    arguments: Arguments,
    symbols: Mapping[str, bytes],
    default: Config | None,
    verifier: Verifier | None,
    limits: Sequence[float | None],
) -> dict[str, Any]:
    """A session's row without its key; `limits` are seconds of a compile and a run."""
    specs = {**rule.specs, **({} if cluster is None else {"cluster": cluster})}
    about: dict[str, Any] = {
        name: told for name, spec in specs.items() if (told := _told(spec)) is not None
    }
    about["launch"] = "; ".join(f"{name}={_identity(spec)}" for name, spec in specs.items())
    named = [f"{name}:{hashlib.sha256(data).hexdigest()[:16]}" for name, data in symbols.items()]
    about["arguments"] = ", ".join([*arguments.describe(), *named])
    about["checked"] = None if verifier is None else verifier.identity(default)
    about["limits"] = list(limits)
    if default is not None:
        about["default"] = dict(default)
    return about
