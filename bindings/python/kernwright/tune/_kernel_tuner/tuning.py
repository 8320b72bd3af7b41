"""tune_kernel(): Kernel Tuner's function, so that a script moves by changing its import."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._kernel_tuner.observing import (
    CLOCKS,
    Launches,
    Observation,
    looks_at_outputs,
    made_observers,
)
from kernwright.tune._kernel_tuner.options import (
    block_names,
    compile_fields,
    is_tunable,
    own_device,
    refuse,
    shared_bytes,
    store_path,
)
from kernwright.tune._kernel_tuner.replay import Replay
from kernwright.tune._kernel_tuner.results import Environment, Metrics, objectives_of
from kernwright.tune._kernel_tuner.source import (
    KernelTunerLaunch,
    KernelTunerSource,
)
from kernwright.tune._kernel_tuner.stepwise import Measurer, Search
from kernwright.tune._sessions.session import Session
from kernwright.tune._space import Space


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


def _space(tune_params: Any, restrictions: Any, block_names: Sequence[str], device: Any) -> Space:
    space = Space({name: list(values) for name, values in dict(tune_params).items()})
    if restrictions is not None:
        is_list = isinstance(restrictions, (list, tuple))
        for restriction in restrictions if is_list else [restrictions]:
            space.require(restriction)
    own = [name for name in block_names if name in space.parameters]
    if own and device is not None:
        space.require_device(threads=" * ".join(own), device=device)
    return space


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
    strategy: Any = None,
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
) -> tuple[list[dict[str, Any]], Environment]:
    """Tunes a kernel as Kernel Tuner's function of this name does, with its arguments; returns its
    list of results, a dict each, and its environment.

    Other than there, times are medians with a cold L2 cache, a configuration that fails in any way
    is a result ("__error__"), and each is kept in `cache` (a store of ours) at once. Where a result
    failed, its objective is an ErrorConfig. All of it is plain data for JSON; `env.session` is the
    Session. simulation_mode searches the results in `cache` without a device: a cache file of
    Kernel Tuner, or a store. What has no meaning here raises: texture references (gone from CUDA 12
    on), other languages and compilers. Strategies that are not here run as the nearest one, with a
    warning.

    `observers` are those of kernwright.tune.observers. `arguments` may have Tunable and
    TunablePrecision of kernwright.tune.accuracy. `strategy` may be an object, as a module, with
    tune(searchspace, runner, tuning_options), or such a function. With any of the three,
    configurations are compiled and measured one after the other.

    >>> text = "__global__ void twice(float* x) { x[blockIdx.x * BLOCK + threadIdx.x] *= 2; }"
    >>> x, choices = np.ones(256, np.float32), {"BLOCK": [32, 64]}
    >>> rows, _ = kw.tune.tune_kernel(
    ...     "twice", text, 256, [x], choices, block_size_names=["BLOCK"], quiet=True)
    >>> sorted(row["BLOCK"] for row in rows)
    [32, 64]
    """
    refuse(lang, platform, texmem_args, compiler)
    if iterations < 1:
        raise InvalidArgument("iterations should be at least one")
    names = block_names(block_size_names)
    wanted = objectives_of(objective, objective_higher_is_better, objectives)
    derived = Metrics(metrics, wanted)
    place = None if simulation_mode else own_device(device)
    space = _space(tune_params, restrictions, names, place)
    watching = [] if simulation_mode else made_observers(observers, device, lang)
    results: list[dict[str, Any]] = []

    def keep(result: dict[str, Any]) -> None:
        results.append(result)
        if not quiet:
            _show(result, [*space.parameters, "time", *(metrics or {})])

    more = {"verbose": verbose, "seed": seed, "metrics": metrics, "restrictions": restrictions}
    search = Search(strategy, strategy_options, space, derived, keep, more)
    if place is None:
        env = Replay(cache, kernel_name, problem_size, space).run(search)
    else:
        launch = KernelTunerLaunch(problem_size, (grid_div_x, grid_div_y, grid_div_z), names)
        fields = compile_fields(compiler_options)
        source = KernelTunerSource(kernel_name, kernel_source, launch, defines, fields)
        shared = shared_bytes(smem_args)
        uses = [problem_size, grid_div_x, grid_div_y, grid_div_z, shared]
        source.warn_of_unused(space, [*uses, *(CLOCKS if watching else ())])
        if verify is None and answer is not None:
            answer = tuple(answer)
        is_compared = verify is not None or not any(map(looks_at_outputs, watching))

        def make_session(space: Space, arguments: Sequence[Any], **more: Any) -> Session:
            return Session(
                source, space, arguments,
                grid=launch.grid, block=launch.block, shared_bytes=shared,
                problem={}, constants=cmem_args, objective=derived.functions(),
                verify=answer if is_compared else None, rtol=1e-5, atol=atol,
                seed=seed, samples=iterations,
                _compare=None if verify is None else _comparison(verify), **more,
            )  # fmt: skip

        arguments = list(arguments)
        with place:
            if search.own is None and not watching and not any(map(is_tunable, arguments)):
                session, best = _searched_by_session(search, arguments, make_session, cache)
            else:
                launches = Launches(source, launch, shared, cmem_args)
                observation = Observation(watching, place, iterations, answer, len(arguments))
                measure = Measurer(
                    space, arguments, make_session, observation, launches, derived,
                    store_path(cache),
                )  # fmt: skip
                session, best = measure.searched(search)
        env = _environment(session, best, results, place, iterations, compiler_options)
    if not quiet and "best_config" in env and isinstance(env["best_config"], dict):
        print(f"\nBEST PERFORMING CONFIGURATION FOR OBJECTIVE {next(iter(wanted))}:")
        _show(env["best_config"], [*space.parameters, *wanted, *(metrics or {})])
    return results, env


def _searched_by_session(
    search: Search, arguments: Sequence[Any], make_session: Callable[..., Session], cache: Any
) -> tuple[Session, Any]:
    """The session, and the winner's result, those of the Pareto front for several objectives, or
    None."""
    session = make_session(search.space, arguments, budget=search.budget, strategy=search.chosen,
                           store=store_path(cache))  # fmt: skip
    derived = search.derived
    session.run(progress=lambda trial: search.keep(derived.result(trial)))
    if len(derived.objectives) > 1:
        return session, [derived.result(trial) for trial in session.front]
    best = session.best
    if best is None:
        return session, None
    winner = next(trial for trial in session.trials if trial.config == best.config)
    return session, derived.result(winner)


def _environment(
    session: Session,
    best: Any,
    results: list[dict[str, Any]],
    device: _core.Device,
    iterations: int,
    compiler_options: Any,
) -> Environment:
    env = Environment(
        {
            "device_name": device.name,
            "compute_capability": "{}{}".format(*device.compute_capability),
            "cuda_version": device.driver_version,
            "nvrtc_version": session.key["nvrtc"],
            "iterations": iterations,
            "compiler_options": list(compiler_options or ()),
            "total_compile_time": sum(result["compile_time"] for result in results),
            "total_verification_time": sum(result["verification_time"] for result in results),
            "total_benchmark_time": sum(result["benchmark_time"] for result in results),
        }
    )
    env.session = session
    if best is not None:
        env["best_config"] = best
    return env
