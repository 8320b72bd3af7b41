"""What agents may ask for: compile, check, judge, profile and tune texts for given tasks."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from kernwright._judging.judge import Judge, drawn_seed
from kernwright._judging.task import Task
from kernwright._judging.verdict import Verdict
from kernwright.errors import CompileError, InvalidArgument, NameNotFound, Timeout

_COMPILE_SECONDS = 10.0
_MOST_EVALUATIONS = 1000


class Tools:
    """Each method takes and returns plain data. Texts come from untrusted authors: they are judged
    in worker processes, by tasks chosen at the start of the server."""

    def __init__(self, tasks: Mapping[str, Task], judge: Judge) -> None:
        if not tasks:
            raise InvalidArgument("a tool server needs a task")
        self._tasks = dict(tasks)
        self._judge = judge
        self._checker = Judge(judge.workers, device="sim")  # its processes start when first used

    def close(self) -> None:
        """Ends the processes of check(). Those of the judge are its owner's."""
        self._checker.close()

    def _task(self, name: str | None) -> Task:
        if name is None and len(self._tasks) == 1:
            return next(iter(self._tasks.values()))
        if name not in self._tasks:
            raise InvalidArgument(f"there is no task {name!r}; there is: {', '.join(self._tasks)}")
        return self._tasks[name]

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks: name, entry (the kernel to write), its signature, and what each is about."""
        return [
            {
                "name": name,
                "entry": task.entry,
                "signature": task.signature,
                "cases": task.cases,
                "allow": sorted(task.allow),
                "headers": sorted(task.options._as_dict()["headers"]),
            }
            for name, task in self._tasks.items()
        ]

    def compile(self, source: str, arch: str = "sm_80") -> dict[str, Any]:
        """Compiles CUDA C++ for an architecture: diagnostics with lines and hints, and the
        names of its kernels."""
        import kernwright as kw

        try:
            program = kw.Program(source, kw.ProgramOptions(arch=arch, timeout=_COMPILE_SECONDS))
            code = program.compile("ptx" if arch.startswith("compute") else "cubin")
        except CompileError as error:
            return {
                "compiled": False,
                "diagnostics": [each._asdict() for each in error.diagnostics],
                "kernels": [],
            }
        except (InvalidArgument, NameNotFound, Timeout) as error:
            return {"compiled": False, "diagnostics": [{"message": str(error)}], "kernels": []}
        return {
            "compiled": True,
            "diagnostics": [each._asdict() for each in code.diagnostics],
            "kernels": list(code.kernels),
        }

    def check(self, source: str, task: str | None = None) -> dict[str, Any]:
        """A verdict by the simulated device alone: compile, memory, init, race and sync findings
        with lines, results compared with the reference. Takes no GPU time. The inputs are drawn
        anew each time; `seed` in the answer tells which."""
        return _plain(self._checker.judge(source, self._task(task)))

    def judge(
        self, source: str, task: str | None = None, baseline: str | None = None
    ) -> dict[str, Any]:
        """The whole verdict: compile, checks, results, time (counts where there is no GPU), and the
        speedup over a baseline text. The inputs are drawn anew each time."""
        return _plain(self._judge.judge(source, self._task(task), baseline=baseline))

    def profile(
        self, source: str, task: str | None = None, case: int = 0, lines: int = 20
    ) -> list[dict[str, Any]]:
        """The lines of the text that cost most on the simulated device: instructions, transactions
        of memory, bank conflicts, divergent branches."""
        found = self._judge.profile(source, self._task(task), case=case)
        return [
            {key: value for key, value in line.items() if value} for line in found[: max(0, lines)]
        ]

    def tune(
        self,
        source: str,
        parameters: dict[str, list[int | float | str]],
        task: str | None = None,
        restrictions: list[str] | None = None,
        evaluations: int = 20,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Searches values of #define parameters for the fastest right kernel: each configuration is
        judged with the same drawn inputs; `seed` is that of the search. Restrictions are
        expressions, as "block * tile <= 1024". `warnings` tells of parameters that the text does
        not use."""
        import kernwright as kw
        from kernwright.tune._sessions.text_check import KernelText, check_clashes

        if not 0 < evaluations <= _MOST_EVALUATIONS:
            raise InvalidArgument(f"evaluations are 1 to {_MOST_EVALUATIONS}, not {evaluations}")
        space = kw.tune.Space(**parameters)
        space.require(*(restrictions or []))
        search = kw.tune.Strategy(space, seed=seed)
        of = self._task(task)
        text = KernelText(of.entry, source, of.options)
        check_clashes(space.parameters, [text])
        unused = text.unused(space.parameters)
        trials: list[dict[str, Any]] = []
        judged_with = drawn_seed()
        for _ in range(min(evaluations, len(space))):
            asked = search.ask(1)
            if not asked:
                break
            config = dict(asked[0])
            verdict = self._judge.judge(source, _with_defines(of, config), seed=judged_with)
            time = verdict.timing.median if verdict.accepted and verdict.timing else None
            search.tell(asked[0], time)
            trials.append(
                {"config": config, "status": verdict.status, "time": time, "reason": verdict.reason}
            )
        right = [trial for trial in trials if trial["time"] is not None]
        best = min(right, key=lambda trial: trial["time"]) if right else None
        found: dict[str, Any] = {"best": best, "configurations": len(space), "trials": trials}
        if unused:
            names = ", ".join(unused)
            found["warnings"] = [f"the text does not use {names}: its values make no difference"]
        return found


def _with_defines(task: Task, config: dict[str, Any]) -> Task:
    made = copy.copy(task)
    defines = {
        **task.options._as_dict()["defines"],
        **{name: str(value) for name, value in config.items()},
    }
    made.options = task.options.replace(defines=defines)
    return made


def _plain(verdict: Verdict) -> dict[str, Any]:
    """Without what says nothing: right cases are a number."""
    data: dict[str, Any] = json.loads(verdict.to_json())
    wrong = [case for case in data["cases"] if case["status"] != "correct"]
    data["correct_cases"] = len(data["cases"]) - len(wrong)
    data["cases"] = wrong
    if data["timing"]:
        del data["timing"]["samples"]
    if data["baseline"]:
        del data["baseline"]["samples"]
    return data
