"""kernwright mcp: a tool server for agents that write kernels."""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
from typing import TYPE_CHECKING

from kernwright.cli import UsageError
from kernwright.cli._files import complete_files
from kernwright.cli.judge import load_task

if TYPE_CHECKING:
    from kernwright._judging.task import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    complete_files(
        parser.add_argument(
            "tasks", nargs="+", metavar="TASK.py", help="each defines `task`, a kernwright.Task"
        )
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="judgements at a time")


def load_tasks(paths: list[str]) -> dict[str, Task]:
    """Tasks by the names of their files. Throws UsageError."""
    tasks: dict[str, Task] = {}
    for path in paths:
        name = pathlib.Path(path).stem
        if name in tasks:
            raise UsageError(f"two task files are named {name}: agents ask for them by name")
        tasks[name] = load_task(path)
    return tasks


def run(arguments: argparse.Namespace) -> int:
    import kernwright as kw

    try:
        from kernwright._judging.server import make_server
        from kernwright._judging.tools import Tools

        with contextlib.redirect_stdout(sys.stderr):  # stdout is the protocol's
            tasks = load_tasks(arguments.tasks)
        with kw.Judge(arguments.workers) as judge:
            with contextlib.closing(Tools(tasks, judge)) as tools:
                make_server(tools).run("stdio")
    except ImportError as error:
        raise UsageError(
            f"the tool server needs the package mcp ({error}): pip install 'kernwright[mcp]'"
        ) from error
    return 0
