"""Peers: torch, eager and compiled, CuPy, Triton. One that is absent or fails is named in the rows.

Each adapter gives its arrays over our memory, the stream on which it queues, and its own CUDA
graphs. An adapter's function is made from a Work and queues one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import kernwright as kw
from kernwright.bench._table.clock import in_a_line
from kernwright.bench._table.work import Work

NAMES = ("torch", "compile", "cupy", "triton")
Call = Callable[..., Any]


class Absent(Exception):
    """The peer does not run here; the message says why."""


class Torch:
    """Functions as torch runs them by themselves."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise Absent("torch sees no GPU")
        self.torch = torch
        self.version = str(torch.__version__)

    def within(self, stream: kw.Stream) -> AbstractContextManager[Any]:
        return self.torch.cuda.stream(self.torch.cuda.ExternalStream(stream.handle))

    def array(self, array: kw.Array) -> Any:
        return self.torch.from_dlpack(array)

    def function(self, work: Work) -> Call | None:
        made = work.peers.get("torch")
        return None if made is None else lambda *arrays: made(self.torch, *arrays)

    def captured(self, run: Callable[[], object]) -> Callable[[], object]:
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, capture_error_mode="thread_local"):
            run()
        return graph.replay

    def release(self) -> None:
        """Gives memory back that torch keeps for later."""
        self.torch.cuda.empty_cache()


class Compiled(Torch):
    """torch.compile of the same functions, of those that say so."""

    name = "compile"

    def function(self, work: Work) -> Call | None:
        made = work.peers.get("compile")
        if made is None:
            return None
        self.torch._dynamo.reset()  # it compiles one function only for so many shapes
        torch = self.torch

        def plain(*arrays: Any) -> Any:
            return made(torch, *arrays)

        return self.torch.compile(plain, dynamic=False)


class Triton(Torch):
    """Kernels written for Triton, over torch's arrays."""

    name = "triton"

    def __init__(self) -> None:
        super().__init__()
        import triton

        self.version = str(triton.__version__)

    def function(self, work: Work) -> Call | None:
        made = work.peers.get("triton")
        if made is None:
            return None
        from kernwright.bench._table import triton_kernels

        return lambda *arrays: made(triton_kernels, *arrays)


class Cupy:
    name = "cupy"

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.version = str(cupy.__version__)
        self._own = cupy.cuda.Stream(non_blocking=True)

    def within(self, stream: kw.Stream) -> AbstractContextManager[Any]:
        return self.cupy.cuda.ExternalStream(stream.handle)

    def array(self, array: kw.Array) -> Any:
        return self.cupy.from_dlpack(array)

    def function(self, work: Work) -> Call | None:
        made = work.peers.get("cupy")
        if made is None or any(a.dtype.name == "bfloat16" for a in work.arrays):
            return None
        return lambda *arrays: made(self.cupy, *arrays)

    def captured(self, run: Callable[[], object]) -> Callable[[], object]:
        with self._own:
            run()  # memory of the pool that the capture takes again
            self._own.synchronize()
            self._own.begin_capture()
            try:
                run()
            finally:
                graph = self._own.end_capture()
        return lambda: graph.launch(self.cupy.cuda.get_current_stream())

    def release(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()


def found(names: Sequence[str]) -> tuple[list[Any], dict[str, str]]:
    """Adapters of the peers that run here, and why the others do not."""
    here: list[Any] = []
    missing: dict[str, str] = {}
    for kind in (Torch, Compiled, Cupy, Triton):
        if kind.name not in names:
            continue
        try:
            if kw.current_device().is_simulated:
                raise Absent("peers do not run on the simulated device")
            here.append(kind())
        except Absent as why:
            missing[kind.name] = str(why)
        except ImportError as error:
            missing[kind.name] = f"not installed: {error}"[:200]
        except Exception as error:  # a broken peer is one that is not there
            missing[kind.name] = in_a_line(error)
    return here, missing
