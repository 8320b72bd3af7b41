"""What runs on the nodes of a cluster: a compile, and a lane that has a device."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernwright.errors import Error

if TYPE_CHECKING:
    from kernwright._jit.source import Located

_FOREVER = 3600.0


def _failure(error: Error) -> tuple[str, str]:
    return type(error).__name__, str(error)


def compile_plan(
    state: tuple[Located, Any], name: str, arch: str, kind: str, seconds: float | None
) -> tuple[tuple[Any, ...], Any]:
    """A task: (hash, lowered name, seconds) and object code, or (error, message) and None."""
    import hashlib

    from kernwright import _core
    from kernwright._jit.options import make_options

    located, given = state
    options = make_options(given, {})
    own = options if options._as_dict()["arch"] else options.replace(arch=arch)
    begin = time.perf_counter()
    try:
        program = _core._Program(*located, own)
        declared = name in program.declared
        code = program.compile(kind, [] if declared else [name], seconds)
        lowered = code.lowered_names[name] if name else ""
    except KeyError:
        return ("NameNotFound", f"the text has no kernel {name}"), None
    except Error as error:
        return _failure(error), None
    digest = hashlib.sha256(code.code).hexdigest()[:32]
    return (digest, lowered, time.perf_counter() - begin), code


def device_facts() -> dict[str, Any]:
    """The kind of the current device, with the version of its driver."""
    from kernwright import _core

    return dict(_core._tune_device_class(None))


class _LaneHooks:
    """What the engine asks on a node: the plan that the session sent."""

    def __init__(self, arguments: Any, verifier: Any) -> None:
        self._arguments, self._verifier = arguments, verifier
        self.plans: dict[int, tuple[Any, ...]] = {}

    def plan(self, index: int) -> Any:
        return self.plans[index]

    def arguments(self, parameters: Sequence[Any]) -> Any:
        try:
            return self._arguments.pack(parameters)
        except Error as error:
            return str(error)

    def check(self, outputs: Sequence[tuple[int, bytes]]) -> str | None:
        return None if self._verifier is None else self._verifier(outputs)


class NodeLane:
    """An actor: runs trials on one device, each in a process beside it that may be lost."""

    def __init__(self, device: str) -> None:
        if device:
            os.environ["KERNWRIGHT_DEVICE"] = device
        self._session: Any = None

    def _open(self, lane: dict[str, Any]) -> Any:
        from kernwright import _core
        from kernwright.tune._sessions.settings import devices_of, worker_program
        from kernwright.tune._space import Space

        devices, labels = devices_of(None)
        arguments = lane["arguments"]
        self._hooks = _LaneHooks(arguments, lane["verifier"])
        self._space = Space(index=[0])  # the session's process has the real one
        settings = {
            **lane["settings"],
            "device": devices[0],
            "devices": labels,
            "worker": worker_program(),
            "buffers": arguments.contents(()),
            "compile_lanes": 1,
            "compile_timeout": 60.0,
            "samples": 1,
            "window": 0,
            "seed": 0,
        }
        return _core.TuneSession(self._space._core, self._hooks, settings)

    def facts(self) -> dict[str, Any]:
        return device_facts()

    def process(self) -> int:
        return os.getpid()

    def run(
        self, shared: Sequence[Any], stage: str, index: int, name: str,
        launch: tuple[Any, ...], code: Any, more: Sequence[Any], seconds: float | None,
    ) -> tuple[str, Any]:  # fmt: skip
        """("", result) of a stage, or (error, message). `shared`: a reference to what the session
        tells all its lanes."""
        try:
            lane = self._lane(shared)
            self._plan(lane, index, name, launch, code)
            limit = _FOREVER if seconds is None else seconds
            return "", getattr(lane, stage)(index, *more, limit)
        except Error as error:
            return _failure(error)

    def _lane(self, shared: Sequence[Any]) -> Any:
        if self._session is None:
            import ray

            self._session = self._open(ray.get(shared[0]))
        return self._session.lane

    def _plan(self, lane: Any, index: int, name: str, launch: tuple[Any, ...], code: Any) -> None:
        from kernwright import _core

        if index not in self._hooks.plans:
            if len(self._hooks.plans) > 64:
                old = next(iter(self._hooks.plans))
                del self._hooks.plans[old]
                lane.forget(old)
            program = _core._Program.of_code(code, "the kernel")
            self._hooks.plans[index] = (program, name, *launch)
