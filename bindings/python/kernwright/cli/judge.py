"""kernwright judge: a verdict about kernels that nobody has read."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from kernwright._support.files import imports_beside
from kernwright.cli import UsageError
from kernwright.cli._files import complete_files, existing, running
from kernwright.errors import InvalidArgument

if TYPE_CHECKING:
    from kernwright._judging.task import Task
    from kernwright._judging.verdict import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    complete_files(
        parser.add_argument("task", metavar="TASK.py", help="defines `task`, a kernwright.Task")
    )
    complete_files(
        parser.add_argument("kernels", nargs="+", metavar="KERNEL.cu", help="texts to judge")
    )
    complete_files(
        parser.add_argument("--baseline", metavar="FILE", help="the text whose time is the measure")
    )
    parser.add_argument("--name", default="task", help="of the task in TASK.py (default: task)")
    parser.add_argument("--checks", default="all", help="memory,init,race,sync (default: all)")
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, help="replays a judgement (default: drawn)")
    parser.add_argument("--workers", type=int, metavar="N", help="judgements at a time")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")


def load_task(path: str, name: str = "task") -> Task:
    """The task that a Python file defines. Throws UsageError."""
    from kernwright._judging.task import Task

    spec = importlib.util.spec_from_file_location("kernwright_task", existing(path))
    if spec is None or spec.loader is None:
        raise UsageError(f"{path!r} is no Python file: a task file ends in .py")
    module = importlib.util.module_from_spec(spec)
    with running(path, "task"), imports_beside(path):
        spec.loader.exec_module(module)
    task = getattr(module, name, None)
    if isinstance(task, Task):
        return task
    there = [n for n, value in vars(module).items() if isinstance(value, Task)]
    hint = f"; it has {', '.join(there)} (--name)" if there else ""
    if task is None:
        raise UsageError(f"{path!r} defines no {name}, a kernwright.Task{hint}")
    raise UsageError(f"{name} of {path!r} is of type {type(task).__name__}, not a kw.Task{hint}")


def _judge_all(arguments: argparse.Namespace, task: Task) -> list[Verdict]:
    import kernwright as kw

    options: dict[str, Any] = {
        "checks": arguments.checks.split(","),
        "timeout": arguments.timeout,
        "seed": arguments.seed,
    }
    if arguments.baseline:
        options["baseline"] = pathlib.Path(existing(arguments.baseline))
    files = [pathlib.Path(existing(path)) for path in arguments.kernels]
    workers = arguments.workers if arguments.workers is not None else min(len(files), 8)
    with kw.Judge(workers) as judge:
        futures = [judge.submit(path, task, **options) for path in files]
        return [future.result() for future in futures]


def run(arguments: argparse.Namespace) -> int:
    # What a task prints must not stand in the answer.
    with contextlib.redirect_stdout(sys.stderr):
        task = load_task(arguments.task, arguments.name)
        try:
            verdicts = _judge_all(arguments, task)
        except InvalidArgument as error:
            raise UsageError(str(error)) from error
    if arguments.json:
        found = [json.loads(verdict.to_json()) for verdict in verdicts]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=1))
    else:
        for path, verdict in zip(arguments.kernels, verdicts, strict=True):
            print(f"{os.path.basename(path)}: {verdict}")
    return 0 if all(verdict.accepted for verdict in verdicts) else 1
