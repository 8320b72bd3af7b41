"""tune_kernel(): Kernel Tuner's function, so that a script moves by changing its import."""

from __future__ import annotations

import inspect
import math
import os
import pathlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright._jit.kernels import kernel as make_kernel
from kernwright._support.warn import warn_caller
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config
from kernwright.tune._expression import Expression
from kernwright.tune._kernel_tuner_options import (
    compile_fields,
    refuse,
    shared_bytes,
    store_path,
    strategy_of,
)
from kernwright.tune._sessions.session import Session
from kernwright.tune._sessions.text_check import KernelText
from kernwright.tune._sessions.trial import Trial
from kernwright.tune._space import Space

_BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_BLOCK_DEFAULTS = (256, 1, 1)
_HIGHER = {"GFLOP/s", "TFLOP/s", "GB/s", "TB/s", "GFLOPS/W", "GFLOP/J", "TFLOP/J"}


class ErrorConfig(str):
    """Stands in a result where a failed configuration has no time."""

    def __str__(self) -> str:
        return type(self).__name__

    __repr__ = __str__


class InvalidConfig(ErrorConfig):
    """Limits of the device refuse it."""


class CompilationFailedConfig(ErrorConfig):
    """It does not compile."""


class RuntimeFailedConfig(ErrorConfig):
    """It crashed, took too long or computed something else."""


_ERRORS = {"compile": CompilationFailedConfig, "constraints": InvalidConfig}


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise InvalidArgument(f"{what} gives {value!r}, but must give a whole number")
    return int(value.__index__())


def _flat(items: Any) -> list[Any]:
    """Their items, and those of lists among them."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        return [items]
    return [each for item in items for each in _flat(item)]


def _evaluated(item: Any, values: Mapping[str, Any], what: str) -> int:
    if isinstance(item, str):
        return _whole(Expression(item)(values), f"{what} {item!r}")
    return _whole(item(dict(values)) if callable(item) else item, what)


class _Launch:
    """Grid and block as Kernel Tuner has them: the problem divided by divisors, rounded up."""

    def __init__(self, problem_size: Any, divisors: Sequence[Any], names: Sequence[str]) -> None:
        self._problem_size, self._divisors, self._names = problem_size, divisors, names

    def block(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        return tuple(
            _whole(values.get(name, default), name)
            for name, default in zip(self._names, _BLOCK_DEFAULTS, strict=True)
        )

    def _extents(self, values: Mapping[str, Any]) -> list[int]:
        size = self._problem_size
        if callable(size):
            size = size(dict(values))
        if isinstance(size, str) or not isinstance(size, Iterable):
            size = (size,)
        extents = [_evaluated(item, values, "problem_size") for item in size]
        if not 1 <= len(extents) <= 3:
            raise InvalidArgument(f"problem_size has {len(extents)} extents")
        return extents + [1] * (3 - len(extents))

    def _divisor(self, divisor: Any, default: str, values: Mapping[str, Any]) -> int:
        if divisor is None:
            return _whole(values.get(default, 1), default)
        if isinstance(divisor, str) or callable(divisor) or not isinstance(divisor, Iterable):
            return _evaluated(divisor, values, "grid_div")
        return math.prod(self._divisor(item, default, values) for item in divisor)

    def grid(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        divisors = [
            self._divisor(divisor, name, values)
            for divisor, name in zip(self._divisors, self._names, strict=True)
        ]
        if any(divisor < 1 for divisor in divisors):
            raise InvalidArgument(f"the grid is divided by {divisors}")
        return tuple(-(-e // d) for e, d in zip(self._extents(values), divisors, strict=True))


def _with_values(text: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        text = re.sub(rf"\b{re.escape(name)}\b", str(value), text)
    return text


class _Source:
    """Kernel Tuner's kernel_source and defines, as a kernel for each configuration."""

    def __init__(self, name: str, source: Any, launch: _Launch, defines: Any, fields: Any) -> None:
        if isinstance(source, (list, tuple)):
            if len(source) > 1:
                raise InvalidArgument("kernel_source is a list: one translation unit is compiled")
            source = source[0]
        if not callable(source) and not isinstance(source, (str, os.PathLike)):
            raise ArgumentError(
                f"kernel_source is a text, a path or a callable, got {type(source).__name__}"
            )
        self._name, self._source, self._launch = name, source, launch
        self._defines, self._fields = defines, fields

    def _text(self, config: Mapping[str, Any]) -> Any:
        source = self._source(dict(config)) if callable(self._source) else self._source
        if isinstance(source, str) and "\n" not in source:
            if os.path.isfile(source):
                return pathlib.Path(source)
            if not set(source) & set("{}();"):
                raise InvalidArgument(f"kernel_source: there is no file {source!r}")
        return source

    def _given_defines(self, config: Mapping[str, Any]) -> dict[str, Any]:
        if self._defines is None:
            given: dict[str, Any] = {
                f"grid_size_{axis}": extent
                for axis, extent in zip("xyz", self._launch.grid(config), strict=True)
            }
            given.update(zip(self._launch._names, self._launch.block(config), strict=True))
            given["kernel_tuner"] = 1
            return given
        return {
            name: value(dict(config))
            if callable(value)
            else _with_values(value, config)
            if isinstance(value, str)
            else value
            for name, value in self._defines.items()
        }

    def warn_of_unused(self, space: Space, launch: Sequence[Any]) -> None:
        """Of parameters that neither the text nor `launch` names. Functions may read any."""
        texts = [*_flat(launch), *(self._defines or {}).values(), self._name]
        if callable(self._source) or any(map(callable, texts)):
            return
        seen = KernelText.of(self(space[0]))
        named = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", str(text))}
        named.update(self._launch._names)
        unused = [name for name in seen.unused(space.parameters) if name not in named]
        if unused and not seen.is_open:
            warn_caller(
                f"the kernel does not use {', '.join(unused)}: its text and its launch do not name "
                "it, so that its values make no difference"
            )

    def __call__(self, config: Config) -> _core.Kernel:
        fields = dict(self._fields)
        fields["defines"] = {**fields.get("defines", {}), **self._given_defines(config)}
        return make_kernel(self._text(config), _with_values(self._name, config), **fields)


def _comparison(verify: Any) -> Callable[..., bool]:
    """With atol, which Kernel Tuner's callers may leave out."""
    if not callable(verify):
        raise ArgumentError(
            f"verify= is a function of answer, result and atol, got {type(verify).__name__}"
        )
    try:
        parameters = inspect.signature(verify).parameters
    except (TypeError, ValueError):
        return lambda answer, result, atol: bool(verify(answer, result))
    named = "atol" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if named:
        return lambda answer, result, atol: bool(verify(answer, result, atol=atol))
    return lambda answer, result, atol: bool(verify(answer, result))


def _cost(trial: Trial) -> float:
    """What stands for the time on the simulated device, whatever the objective is."""
    if "instructions" not in trial.metrics or trial.score is None:
        return float("nan") if trial.score is None else trial.score
    return trial.metrics["instructions"] + trial.metrics["transactions"]


class _Metrics:
    """The dict of a result, and what is derived from it."""

    def __init__(self, metrics: Any, objectives: Mapping[str, bool]) -> None:
        self._metrics = dict(metrics or {})
        self.objectives = objectives

    def result(self, trial: Trial) -> dict[str, Any]:
        found: dict[str, Any] = dict(trial.config)
        if trial.status == "correct":
            found["time"] = _cost(trial) if trial.time is None else trial.time
            found["times"] = list(trial.times)
            if "energy_j" in trial.metrics:
                found["nvml_energy"] = trial.metrics["energy_j"]
            for name, metric in self._metrics.items():
                values = {k: v for k, v in found.items() if not isinstance(v, list)}
                found[name] = metric(found) if callable(metric) else Expression(metric)(values)
        else:
            failure = _ERRORS.get(trial.status, RuntimeFailedConfig)(trial.error)
            found.update(dict.fromkeys(("time", *self.objectives), failure))
            found["__error__"] = failure
        found["compile_time"] = 1000 * trial.compile_seconds
        found["verification_time"] = 1000 * trial.verify_seconds
        found["benchmark_time"] = 1000 * trial.measure_seconds
        found["strategy_time"] = found["framework_time"] = 0.0
        return found

    def score(self, name: str, trial: Trial) -> float:
        found = self.result(trial)
        if name not in found:
            raise InvalidArgument(
                f"objective {name!r} is neither measured nor in metrics=; there is: "
                f"{', '.join(key for key in found if key != 'times')}"
            )
        return float(found[name]) * (-1 if self.objectives[name] else 1)

    def functions(self) -> list[Any]:
        if list(self.objectives) == ["time"] and not self.objectives["time"]:
            return ["time"]

        def function(name: str) -> Callable[[Trial], float]:
            def of(trial: Trial) -> float:
                return self.score(name, trial)

            of.__name__ = name
            return of

        return [function(name) for name in self.objectives]


def _objectives(objective: Any, higher: Any, objectives: Any) -> dict[str, bool]:
    if objectives is not None:
        if objective is not None or not isinstance(objectives, Mapping):
            raise ArgumentError(
                "objectives= is a dict of name: higher is better, without objective="
            )
        return {str(name): bool(value) for name, value in objectives.items()}
    names = list(objective) if isinstance(objective, (list, tuple)) else [objective or "time"]
    given = list(higher) if isinstance(higher, (list, tuple)) else [higher] * len(names)
    if len(given) != len(names):
        raise InvalidArgument("objective_higher_is_better= has another length than objective=")
    found = {}
    for name, is_higher in zip(names, given, strict=True):
        if is_higher is None and name not in _HIGHER and not name.startswith(("time", "energy")):
            raise InvalidArgument(
                f"objective={name!r} wants objective_higher_is_better=True or False"
            )
        found[name] = name in _HIGHER if is_higher is None else bool(is_higher)
    return found


def _space(tune_params: Any, restrictions: Any, block_names: Sequence[str], device: Any) -> Space:
    space = Space({name: list(values) for name, values in dict(tune_params).items()})
    if restrictions is not None:
        is_list = isinstance(restrictions, (list, tuple))
        for restriction in restrictions if is_list else [restrictions]:
            space.require(restriction)
    own = [name for name in block_names if name in space.parameters]
    if own:
        space.require_device(threads=" * ".join(own), device=device)
    return space


def _block_names(given: Any) -> tuple[str, ...]:
    names = tuple(given or ())
    if isinstance(given, str) or not all(isinstance(name, str) for name in names):
        raise ArgumentError("block_size_names= is a list of up to three names")
    if len(names) > len(_BLOCK_NAMES):
        raise InvalidArgument(
            f"block_size_names= has {len(names)} names: a block has three extents"
        )
    return (*names, *_BLOCK_NAMES[len(names) :])


def _show(result: Mapping[str, Any], keys: Iterable[str], file: Any = None) -> None:
    shown = [f"{key}={result[key]}" for key in keys if key in result]
    print(", ".join(shown), file=file or sys.stdout)


def tune_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    restrictions: Any = None,
    answer: Sequence[Any] | None = None,
    atol: float = 1e-6,
    verify: Any = None,
    verbose: bool = False,
    lang: str | None = None,
    device: int = 0,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Any = None,
    compiler: Any = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    log: Any = None,
    iterations: int = 7,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    metrics: Mapping[str, Any] | None = None,
    simulation_mode: bool | None = None,
    parallel: Any = None,
    observers: Any = None,
    objective: Any = None,
    objective_higher_is_better: Any = None,
    objectives: Mapping[str, bool] | None = None,
    seed: int | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tunes a kernel as Kernel Tuner's function of this name does, with its arguments; returns its
    list of results, a dict each, and its environment.

    Other than there, times are medians with a cold L2 cache, a configuration that fails in any way
    is a result ("__error__"), and each is kept in `cache` (a store of ours) at once. Where a result
    failed, its objective is an ErrorConfig. What has no meaning here raises: texture references
    (gone from CUDA 12 on), other languages and compilers, observers, simulation_mode. Strategies
    that are not here run as the nearest one, with a warning.

    >>> text = "__global__ void twice(float* x) { x[blockIdx.x * BLOCK + threadIdx.x] *= 2; }"
    >>> x, choices = np.ones(256, np.float32), {"BLOCK": [32, 64]}
    >>> rows, _ = kw.tune.tune_kernel(
    ...     "twice", text, 256, [x], choices, block_size_names=["BLOCK"], quiet=True)
    >>> sorted(row["BLOCK"] for row in rows)
    [32, 64]
    """
    refuse(lang, platform, texmem_args, compiler, simulation_mode, observers)
    own_device = _own_device(device)
    if iterations < 1:
        raise InvalidArgument("iterations should be at least one")
    names = _block_names(block_size_names)
    space = _space(tune_params, restrictions, names, own_device)
    launch = _Launch(problem_size, (grid_div_x, grid_div_y, grid_div_z), names)
    source = _Source(kernel_name, kernel_source, launch, defines, compile_fields(compiler_options))
    wanted = _objectives(objective, objective_higher_is_better, objectives)
    derived = _Metrics(metrics, wanted)
    chosen, budget = strategy_of(strategy, strategy_options, space)
    shared = shared_bytes(smem_args)
    source.warn_of_unused(space, [problem_size, grid_div_x, grid_div_y, grid_div_z, shared])
    with own_device:
        session = Session(
            source, space, list(arguments),
            grid=launch.grid, block=launch.block, shared_bytes=shared,
            problem={}, constants=cmem_args,
            budget=budget, objective=derived.functions(),
            verify=None if answer is None else tuple(answer), rtol=1e-5, atol=atol,
            strategy=chosen, store=store_path(cache), seed=seed, samples=iterations,
            _compare=None if verify is None else _comparison(verify),
        )  # fmt: skip
        results: list[dict[str, Any]] = []

        def keep(trial: Trial) -> None:
            results.append(derived.result(trial))
            if not quiet:
                _show(results[-1], [*space.parameters, "time", *(metrics or {})])

        session.run(progress=keep)
    env = _environment(session, derived, results, own_device, iterations, compiler_options)
    if not quiet and "best_config" in env and isinstance(env["best_config"], dict):
        print(f"\nBEST PERFORMING CONFIGURATION FOR OBJECTIVE {next(iter(wanted))}:")
        _show(env["best_config"], [*space.parameters, *wanted, *(metrics or {})])
    return results, env


def _own_device(device: Any) -> _core.Device:
    if isinstance(device, _core.Device):
        return device
    current = _core.current_device()
    return current if device in (0, None) else _core.Device(device)


def _environment(
    session: Session,
    derived: _Metrics,
    results: list[dict[str, Any]],
    device: _core.Device,
    iterations: int,
    compiler_options: Any,
) -> dict[str, Any]:
    env: dict[str, Any] = {
        "device_name": device.name,
        "compute_capability": "{}{}".format(*device.compute_capability),
        "cuda_version": device.driver_version,
        "nvrtc_version": session.key["nvrtc"],
        "iterations": iterations,
        "compiler_options": list(compiler_options or ()),
        "total_compile_time": sum(result["compile_time"] for result in results),
        "total_verification_time": sum(result["verification_time"] for result in results),
        "total_benchmark_time": sum(result["benchmark_time"] for result in results),
        "session": session,
    }
    if len(derived.objectives) > 1:
        env["best_config"] = [derived.result(trial) for trial in session.front]
        return env
    best = session.best
    if best is None:
        return env
    winner = next(trial for trial in session.trials if trial.config == best.config)
    env["best_config"] = derived.result(winner)
    return env
