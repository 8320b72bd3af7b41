"""Kernel Tuner's options in this library's terms, and those that have no meaning here."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright._support.warn import warn_caller
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._kernel_tuner.cache import KernelTunerCache
from kernwright.tune._space import Space

_SAME = {
    None: "brute_force",
    "brute_force": "brute_force",
    "random_sample": "random",
    "genetic_algorithm": "genetic",
    "diff_evo": "differential_evolution",
    "simulated_annealing": "annealing",
    "dual_annealing": "annealing",
    "greedy_ils": "greedy_ils",
    "greedy_mls": "greedy_ils",
    "ordered_greedy_mls": "greedy_ils",
    "mls": "greedy_ils",
    "bayes_opt": "surrogate",
    "skopt": "surrogate",
}
_EXACT = {None, "brute_force", "random_sample", "genetic_algorithm", "diff_evo",
          "simulated_annealing", "greedy_ils"}  # fmt: skip
_NEAREST = ("minimize", "basinhopping", "pso", "firefly_algorithm", "pyatf_strategies",
            "hybrid_vndx", "adaptive_tabu_greywolf", "nsga2", "nsga3")  # fmt: skip
NAMES = (*(name for name in _SAME if name), *_NEAREST)
BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
BUDGETS = {"max_fevals": "evaluations", "time_limit": "seconds"}


def refuse(lang: Any, platform: Any, texmem_args: Any, compiler: Any) -> None:
    """Raises InvalidArgument for what cannot be done, saying what to do instead."""
    if lang is not None and str(lang).upper() not in ("CUDA", "CUPY", "NVCUDA"):
        raise InvalidArgument(f"lang={lang!r}: kernels are CUDA C++ here")
    if platform:
        raise InvalidArgument(f"platform={platform!r} is a word of OpenCL")
    if texmem_args:
        raise InvalidArgument(
            "texmem_args= fills texture references, which CUDA 12 does not have: pass the array as "
            "an argument"
        )
    if compiler is not None:
        raise InvalidArgument(f"compiler={compiler!r}: texts are compiled by NVRTC")


def shared_bytes(smem_args: Any) -> Any:
    """The size of dynamic shared memory."""
    if not smem_args:
        return 0
    if not isinstance(smem_args, Mapping) or list(smem_args) != ["size"]:
        raise InvalidArgument(f'smem_args= is {{"size": bytes}}, got {smem_args!r}')
    return smem_args["size"]


def _part_of(space: Space, fraction: Any) -> int:
    """How many configurations that is."""
    is_number = isinstance(fraction, (int, float)) and not isinstance(fraction, bool)
    if not is_number or not 0 < fraction <= 1:
        raise InvalidArgument(f"fraction is above 0 and at most 1, got {fraction!r}")
    return max(1, math.ceil(float(fraction) * len(space)))


def our_strategy(strategy: str | None) -> str:
    """The strategy that searches for one of Kernel Tuner's names, with a warning where it is only
    the nearest one."""
    if strategy in _NEAREST:
        chosen = "portfolio"
    elif strategy in _SAME:
        chosen = _SAME[strategy]
    else:
        from kernwright.tune._strategy import strategies

        if strategy not in strategies():
            raise InvalidArgument(f"strategy={strategy!r} is none of: {', '.join(NAMES)}")
        chosen = str(strategy)
    if strategy not in _EXACT and chosen != strategy:
        warn_caller(f"the strategy {strategy} is not here: {chosen} searches instead")
    return chosen


def given_options(options: Any) -> dict[str, Any]:
    """A copy of strategy_options=."""
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentError(f"strategy_options= is a dict, got {type(options).__name__}")
    return dict(options or {})


def strategy_of(
    strategy: str | None, options: Any, space: Space
) -> tuple[str, dict[str, Any] | None]:
    """Our strategy and the budget."""
    chosen = our_strategy(strategy)
    given = given_options(options)
    budget = {ours: given.pop(theirs) for theirs, ours in BUDGETS.items() if theirs in given}
    if chosen == "random" and "fraction" in given:
        part = _part_of(space, given.pop("fraction"))
        most = budget.get("evaluations")
        budget["evaluations"] = min(part, most) if isinstance(most, (int, float)) else most or part
    if given:
        warn_caller(
            f"strategy_options {', '.join(map(str, given))} have no meaning here and are left out"
        )
    return chosen, budget or None


def compile_fields(options: Sequence[str] | None) -> dict[str, Any]:
    """Options of nvcc as fields of kw.ProgramOptions."""
    if options is None:
        return {}
    if isinstance(options, str):
        raise ArgumentError("compiler_options= is a list of str, got one str")
    fields: dict[str, Any] = {"include_dirs": [], "extra": [], "defines": {}}
    rest = [str(option) for option in options]
    while rest:
        option = rest.pop(0)
        if option in ("-I", "-D", "-std", "-arch", "-maxrregcount", "--maxrregcount") and rest:
            option = f"{option}{'' if option in ('-I', '-D') else '='}{rest.pop(0)}"
        name, _, value = option.lstrip("-").partition("=")
        if option.startswith("-I"):
            fields["include_dirs"].append(option[2:])
        elif option.startswith("-D"):
            define, _, text = option[2:].partition("=")
            fields["defines"][define] = text or "1"
        elif name in ("std", "arch") and value:
            fields[name] = value
        elif name == "maxrregcount" and value.isdecimal():
            fields["max_registers"] = int(value)
        elif name in ("use_fast_math", "lineinfo"):
            fields["fast_math" if name == "use_fast_math" else name] = True
        elif option not in ("-O3", "-O2", "-O1", "-O0"):  # of host code
            fields["extra"].append(option)
    return {name: value for name, value in fields.items() if value}


def store_path(cache: Any) -> str | None:
    """The store that is Kernel Tuner's cache; its own files are left alone."""
    if not cache:
        return None
    path = str(os.fspath(cache))
    with contextlib.suppress(OSError):
        if KernelTunerCache.is_cache(pathlib.Path(path).read_bytes()):
            raise InvalidArgument(
                f"{path} is a cache file of Kernel Tuner: give cache= another name, or "
                "simulation_mode=True to search its results"
            )
    return path


def is_tunable(argument: Any) -> bool:
    """An argument of kernwright.tune.accuracy, or of Kernel Tuner's module of this name."""
    return callable(getattr(argument, "select_for_configuration", None))


def selected(arguments: Sequence[Any], config: Mapping[str, Any]) -> list[Any]:
    """The arguments for a configuration."""
    return [a.select_for_configuration(dict(config)) if is_tunable(a) else a for a in arguments]


def block_names(given: Any) -> tuple[str, ...]:
    """The names of the three extents of a block."""
    names = tuple(given or ())
    if isinstance(given, str) or not all(isinstance(name, str) for name in names):
        raise ArgumentError("block_size_names= is a list of up to three names")
    if len(names) > len(BLOCK_NAMES):
        raise InvalidArgument(
            f"block_size_names= has {len(names)} names: a block has three extents"
        )
    return (*names, *BLOCK_NAMES[len(names) :])


def own_device(device: Any) -> _core.Device:
    """Their device=0 is the current one here."""
    if isinstance(device, _core.Device):
        return device
    current = _core.current_device()
    return current if device in (0, None) else _core.Device(device)
