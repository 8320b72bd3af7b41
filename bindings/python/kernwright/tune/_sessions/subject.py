"""What a session tunes: a kernel's source over a space, with its arguments and its launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernwright import _core
from kernwright.tune._config import Config, Value
from kernwright.tune._launch_rule import LaunchRule
from kernwright.tune._sessions.arguments import Arguments, Verifier
from kernwright.tune._sessions.kernel import Planner, TunedSource
from kernwright.tune._sessions.settings import about_row, problem_values, symbol_bytes
from kernwright.tune._space import Space
from kernwright.tune._store import kernel_key

_REFERENCES = 8


class Subject:
    """Raises for what no configuration can run. `space` is the one given, with the problem's
    values; `default` the configuration given, `reference` the one that stands for all: the default,
    else the first."""

    def __init__(
        self,
        kernel: Any,
        space: Space,
        args: Sequence[Any],
        rule: LaunchRule,
        *,
        cluster: Any,
        problem: Mapping[str, Any] | None,
        constants: Mapping[str, Any] | None,
        default: Mapping[str, Any] | None,
    ) -> None:
        self.rule, self.cluster = rule, cluster
        self.arguments = Arguments(args)
        self.source = TunedSource(kernel, space, rule)
        self.default = Config(default) if default is not None else None
        self.problem: dict[str, Value] = problem_values(
            self.source, space, rule, problem, tuple(self.arguments.values), self.default
        )
        self.space = space.with_problem(self.problem)
        len(self.space)  # says what is wrong with it
        self.symbols = symbol_bytes(constants)
        self.source.check(self.space, len(self.arguments.values), self.symbols)
        self.default_index = None if self.default is None else self.space.index(self.default)
        self.reference = self.default if self.default is not None else self.space[0]

    @property
    def name(self) -> str:
        return self.source.base(self.reference).name

    @property
    def reference_index(self) -> int:
        return self.space.index(self.reference)

    def planner(self) -> Planner:
        """What is wrong with the launch of the reference is told at once."""
        planner = Planner(self.source, self.space, self.problem, self.cluster)
        planner(self.reference_index)
        return planner

    def key(self, device: Any, policy: str, objective: str) -> dict[str, Any]:
        """What results in a store belong to."""
        key = kernel_key(
            self.source.base(self.reference),
            self.space.parameters,
            problem=self.problem,
            space=self.space,
            device=device,
            policy=policy,
            objective=objective,
            nvrtc=str(_core.nvrtc_status()["version"]),
        )
        key["source"] = self.source.hash(self.reference)
        return key

    def verifier(self, verify: Any, rtol: Any, atol: Any, compare: Any) -> Verifier | None:
        if verify is None and compare is None:
            return None
        return Verifier(self.arguments, verify, rtol, atol, compare)

    def settings(self, verifier: Verifier | None) -> dict[str, Any]:
        """As the engine takes it."""
        return {
            "buffers": self.arguments.contents(set() if verifier is None else verifier.compared),
            "symbols": self.symbols,
            "default": self.default_index,
            "checks": verifier is not None,
            "references": [] if verifier is None else self._references(verifier),
        }

    def _references(self, verifier: Verifier) -> list[int]:
        """Configurations that tell which outputs hold contents without meaning before a launch."""
        first = self.reference_index
        if verifier.wants_default:
            return [first]
        step = max(1, len(self.space) // _REFERENCES)
        others = (index for index in range(step - 1, len(self.space), step) if index != first)
        return [first, *others][:_REFERENCES]

    def about(self, verifier: Verifier | None, limits: Sequence[float | None]) -> dict[str, Any]:
        """What a session's row says besides its key."""
        given = (self.rule, self.cluster, self.arguments, self.symbols, self.default)
        return about_row(*given, verifier, limits)
