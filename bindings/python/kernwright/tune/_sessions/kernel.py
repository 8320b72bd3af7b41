"""The meaning of a configuration: a program with its defines, and a launch."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from kernwright import _core
from kernwright._jit.kernels import Module, Program, kernel
from kernwright._jit.options import make_options
from kernwright.errors import ArgumentError, Error, InvalidArgument
from kernwright.tune._config import Config, Value
from kernwright.tune._launch_rule import ClusterRule, LaunchRule
from kernwright.tune._sessions.signature import is_fixed
from kernwright.tune._sessions.text_check import (
    KernelText,
    check_clashes,
    check_constants,
    check_count,
    check_names,
    warn_of_unused,
)
from kernwright.tune._space import Space
from kernwright.tune._store import _fingerprint, source_hash

_SAMPLE = 16  # configurations that tell what a callable gives
_SAMPLE_SECONDS = 1.0  # some callables take long


class TunedSource:
    """The kernel of a session, for each configuration. Each parameter becomes a define of its name.

    `source` is a kernel, a text, a path of a text, or a callable of the configuration that gives
    one of these: so a configuration chooses among texts and headers.
    """

    def __init__(self, source: Any, space: Space, rule: LaunchRule) -> None:
        self._space = space
        self.rule = rule
        self._make: Callable[[Config], Any] | None = None
        self._kernel: _core.Kernel | None = None
        self._samples: list[_core.Kernel] = []
        if isinstance(source, (_core.Kernel, str, os.PathLike)):
            self._kernel = self._as_kernel(source)
            check_names([KernelText.of(self._kernel)])
        elif callable(source) and not isinstance(source, (Module, Program)):
            self._make = source
        else:
            raise ArgumentError(
                "a session tunes a kernel, a source text, a path, or a callable of the "
                f"configuration that gives one, got {type(source).__name__}"
            )

    @staticmethod
    def _as_kernel(source: Any) -> _core.Kernel:
        made = source if isinstance(source, _core.Kernel) else kernel(source)
        if made._program is None or made._program.code is not None:
            raise InvalidArgument(f"{made!r} is object code: there is no source to tune")
        return made

    def base(self, config: Config) -> _core.Kernel:
        """The kernel without the configuration's defines."""
        if self._make is None:
            assert self._kernel is not None
            return self._kernel
        return self._as_kernel(self._make(config))

    def program(self, config: Config) -> tuple[_core._Program, str]:
        """The program with the configuration's defines, and the kernel's name in it."""
        base = self.base(config)
        program: Any = base._program
        options: Any = make_options(program.options, {})
        # A define without a value would be 1.
        own = {name: " " if value == "" else value for name, value in config.items()}
        options = options.replace(defines={**options.defines, **own})
        made = _core._Program(
            program.text, program.source_name, program.first_line, program.directory, options
        )
        return made, base.name

    def kernel(self, config: Config) -> _core.Kernel:
        program, name = self.program(config)
        return program.kernel(name)

    def text(self, config: Config) -> str:
        program: Any = self.base(config)._program
        return str(program.text)

    def hash(self, config: Config) -> str:
        """The identity of this source; empty where nothing tells it."""
        own = source_hash(self.base(config), self._space.parameters)
        if self._make is None or not own:
            return own
        parts = f"{own} {_fingerprint(self._make)}".encode("utf-8", "replace")
        return hashlib.sha256(parts).hexdigest()[:32]

    def samples(self, space: Space) -> list[_core.Kernel]:
        """The kernels of some configurations: the only one there is, or the callable's results for
        a few that are far from each other."""
        if self._kernel is not None:
            return [self._kernel]
        if not self._samples:
            end = time.monotonic() + _SAMPLE_SECONDS
            for config in space.sample(min(_SAMPLE, len(space)), seed=0):
                if time.monotonic() > end:
                    break
                with contextlib.suppress(Exception):  # the trial says so
                    self._samples.append(self.base(config))
        return self._samples

    def check(self, space: Space, given: int, constants: Mapping[str, bytes]) -> None:
        """Raises for a call wrong for every configuration: another number of arguments, variables
        that are nowhere or have too little room, parameters of the space with the kernel's own
        names."""
        texts = [KernelText.of(kernel) for kernel in self.samples(space)]
        if len(texts) < len(space) and len({text.text for text in texts}) > 1:
            return  # a callable gives several: who knows what the others are
        check_names(texts)
        check_clashes(space.parameters, texts)
        values = [value for each in space.parameters.values() for value in each]
        if not any(isinstance(value, str) and "," in value for value in values):
            check_count(texts, given)
        check_constants(texts, constants, space.parameters)

    def has_one_signature(self, space: Space) -> bool:
        """Whether all configurations take the same arguments; False where nothing tells it."""
        kernels = self.samples(space)
        programs: list[Any] = [each._program for each in kernels]
        options: list[Any] = [make_options(program.options, {}) for program in programs]
        if not programs or any(each.include_dirs for each in options):
            return False
        first = programs[0].text, options[0].headers
        if any((p.text, o.headers) != first for p, o in zip(programs, options, strict=True)):
            return False
        defines = options[0].defines
        others = {name for each in options for name in each.defines}
        varying = {n for n in others if any(o.defines.get(n) != defines.get(n) for o in options)}
        return is_fixed(
            programs[0].text,
            [each.name for each in kernels],
            {*self._space.parameters, *varying},
            options[0].headers,
            defines,
        )

    def warn_of_unused(self, cluster: Any) -> None:
        """Parameters without a mention in the text and in the launch."""
        if self._kernel is not None:
            rules = [self.rule, *([] if cluster is None else [ClusterRule(cluster)])]
            warn_of_unused(self._kernel, self._space.parameters, rules)


class Planner:
    """Makes the launch of a configuration for the engine. Failures are texts, not exceptions."""

    def __init__(
        self,
        source: TunedSource,
        space: Space,
        problem: Mapping[str, Value],
        cluster: Any,
    ) -> None:
        self._source, self._space, self._problem = source, space, problem
        self._cluster = None if cluster is None else ClusterRule(cluster)

    def has_one_signature(self) -> bool:
        return self._source.has_one_signature(self._space)

    def values(self, config: Config) -> dict[str, Value]:
        return {**self._problem, **config}

    def __call__(self, index: int) -> tuple[Any, ...]:
        config = self._space[index]
        grid, block, shared_bytes = self._source.rule(self.values(config))
        for what, extents in (("grid", grid), ("block", block)):
            if any(not 1 <= extent < 2**32 for extent in extents):
                raise InvalidArgument(f"{what} is {tuple(extents)} for {config!r}")
        if not 0 <= shared_bytes < 2**32:
            raise InvalidArgument(f"shared_bytes is {shared_bytes} for {config!r}")
        cluster = None if self._cluster is None else self._cluster.extents(self.values(config))
        program, name = self._source.program(config)
        return program, name, list(grid), list(block), shared_bytes, cluster


def failure_text(error: Exception) -> str:
    """Of an exception of the caller's callable."""
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
