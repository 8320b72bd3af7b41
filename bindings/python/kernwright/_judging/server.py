"""The tools as a server of the Model Context Protocol."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kernwright._judging.tools import Tools
from kernwright.errors import Error

NAMES = ("tasks", "compile", "check", "judge", "profile", "tune")
INSTRUCTIONS = (
    "Write CUDA C++ kernels for the tasks that `tasks` lists, and have them judged. `compile` is "
    "the quickest answer, `check` finds memory errors and races with their lines, `judge` gives "
    "the verdict and the time, `profile` says which lines cost most, `tune` searches values of "
    "#define parameters."
)


def make_server(tools: Tools) -> Any:
    """An MCPServer with a tool for each method. ImportError where the package is not there."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("kernwright", instructions=INSTRUCTIONS)
    for name in NAMES:
        method = getattr(tools, name)
        description = " ".join((method.__doc__ or "").split())
        server.tool(name=name, description=description)(_with_words(method))
    return server


def _with_words(method: Callable[..., Any]) -> Callable[..., Any]:
    """What we raise is the tool's answer; anything else is a crash of the server's."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except Error as error:
            raise ToolError(str(error)) from error

    return called
