"""Layers whose weights stay in page-locked memory of the host, and pass through a ring of device
memory while a step computes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import kernwright as kw
from kernwright import _core
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.llm._errors import ModelError
from kernwright.llm._waits import wait_for_device
from kernwright.llm._weights.parameters import LayerPlace, Slot, arrays_of
from kernwright.nn import Module

__all__ = ["ELSEWHERE", "SLOTS", "LayerStream", "StreamedLayer", "aligned", "graph_pool"]

SLOTS = 2
"""Layers in the ring: one computes while the next one comes."""
ELSEWHERE = "weights of a streamed layer are in the host's memory (load with memory='device')"
"""Why a module with streamed layers cannot be saved."""
_ALIGNMENT = 256  # bytes, as of arrays of their own


def aligned(count: int) -> int:
    """The bytes that an array of so many takes of a block."""
    return -(-count // _ALIGNMENT) * _ALIGNMENT


class _Block:
    """The weights of a layer on the host, and how the module gets them from a slot of the ring."""

    def __init__(self, path: str, places: Sequence[Slot]) -> None:
        self.path = path
        self._makers: list[tuple[list[Slot], Callable[[Any], Any]]] = []
        self._pieces: list[tuple[int, Array]] = []
        self._end = 0
        by_value: dict[int, list[Slot]] = {}
        for slot in places:
            by_value.setdefault(id(slot.value), []).append(slot)
        for slots in by_value.values():
            self._makers.append((slots, arrays_of(slots[0].value, self._placed)))
        self.host: npt.NDArray[np.uint8] = self._moved()
        for slot in places:
            slot.put(None)

    def _placed(self, array: Array) -> Callable[[Any], Array]:
        """A place for the array in the block, and what makes it of a slot."""
        begin, shape, dtype = self._end, array.shape, array.dtype
        end = begin + array.nbytes
        self._end += aligned(array.nbytes)
        self._pieces.append((begin, array))
        return lambda slot: slot[begin:end].view(dtype).reshape(shape)

    def _moved(self) -> npt.NDArray[np.uint8]:
        pieces, self._pieces = self._pieces, []
        device = pieces[0][1].device
        host: npt.NDArray[np.uint8] = _core._pinned_block(self._end, device)
        engine = kw.TransferEngine(device=device)
        transfers = []
        for begin, array in pieces:
            whole = array if array.is_contiguous else array.copy()
            flat = whole.reshape((-1,)).view("uint8")
            transfers.append(engine.download(flat, host[begin : begin + flat.nbytes]))
        for each in transfers:
            each.wait()
        return host

    def give(self, slot: Array) -> None:
        """Makes the layer's parameters views of a slot, for good."""
        for slots, make in self._makers:
            value = make(slot)
            for each in slots:
                each.put(value)
        self._makers = []


class LayerStream:
    """The layers of a module that come from the host in each step: `SLOTS` of them have device
    memory at a time. They run in their order, each once a step.

    The copy of a layer begins on a stream of its own once the layer `SLOTS` before it is done, and
    a layer's work waits for its copy. In a capture these copies and waits become a part of the
    graph. Graphs of one module share a pool, so that one runs after the other, whatever their
    streams; steps outside of graphs wait for the device before and after, on the host.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._blocks: list[_Block] = []
        self._added: dict[int, tuple[LayerPlace, _Block]] = {}
        self._slots: list[Array] = []
        # The next layer of the step that is queued, and an event behind the copy of each layer.
        self._next, self._copied = 0, list[kw.Event]()

    def add(self, number: int, layer: LayerPlace, places: Sequence[Slot]) -> None:
        """Moves the parameters of a layer, all of one device, to the host."""
        self._added[number] = layer, _Block(layer.path, places)

    def seal(
        self, module: Module, wrap: Callable[[Any, LayerStream, int], Module] | None = None
    ) -> None:
        """Gives all layers that were added their places in the ring, in the order of their
        numbers. `wrap` makes what stands in the place of a layer, a StreamedLayer without it."""
        added, self._added = sorted(self._added.items()), {}
        self._blocks = [block for _, (_, block) in added]
        size = max(block.host.nbytes for block in self._blocks)
        count = min(SLOTS, len(self._blocks))
        self._slots = [kw.empty((size,), "uint8", device=self._device) for _ in range(count)]
        self._device = self._slots[0].device
        self._stream = kw.Stream(device=self._device)
        self._pool = kw.GraphPool(device=self._device)
        wait_for_device(self._device)
        for number, (_, (layer, block)) in enumerate(added):
            block.give(self._slots[number % count])
            layer.put((wrap or StreamedLayer)(layer.module.eval(), self, number))
        vars(module)["_graph_pool"] = self._pool

    @property
    def device_bytes(self) -> int:
        """The bytes of the ring."""
        return sum(slot.nbytes for slot in self._slots)

    @property
    def host_bytes(self) -> int:
        """The bytes of page-locked memory."""
        return sum(block.host.nbytes for block in self._blocks)

    def host(self, number: int) -> npt.NDArray[np.uint8]:
        """The bytes of a layer's arrays, one behind the other, each aligned()."""
        return self._blocks[number].host

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Around work that changes what steps share: outside of graphs nothing runs beside it."""
        current = kw.current_stream(self._device)
        if current.is_capturing:
            yield
            return
        wait_for_device(self._device)
        yield
        current.synchronize()

    @contextlib.contextmanager
    def layer(self, number: int) -> Iterator[None]:
        """Around the work of a layer on the current stream. Raises ModelError for layers in another
        order."""
        current = kw.current_stream(self._device)
        if number == 0:
            self._begin(current)
        if number != self._next:
            raise ModelError(
                f"{self._blocks[number].path} runs where {self._expected()} is next: streamed "
                "layers run in their order, each once in a step"
            )
        current.wait(self._copied[number])
        yield
        self._next += 1
        if number + len(self._slots) < len(self._blocks):
            self._stream.wait(current)
            self._copy(number + len(self._slots))
        elif self._next == len(self._blocks) and not current.is_capturing:
            current.synchronize()

    def _begin(self, current: kw.Stream) -> None:
        """The first copies of a step. Graphs of other streams may use the ring still."""
        if not current.is_capturing:
            wait_for_device(self._device)
        self._next, self._copied = 0, []
        self._stream.wait(current)
        for number in range(len(self._slots)):
            self._copy(number)

    def _copy(self, number: int) -> None:
        block = self._blocks[number]
        slot = self._slots[number % len(self._slots)]
        with self._stream:
            _core._copy_pinned(slot[: block.host.nbytes], block.host)
        self._copied.append(self._stream.record())

    def _expected(self) -> str:
        if self._next < len(self._blocks):
            return self._blocks[self._next].path
        return f"{self._blocks[0].path} of another step"


class StreamedLayer(Module):
    """A layer whose weights are on the device only while it runs: they are no parameters of it, and
    it can be neither saved nor copied."""

    _elsewhere = ELSEWHERE

    def __init__(self, layer: Module, stream: LayerStream, number: int) -> None:
        self._layer, self._stream, self._number = layer, stream, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._stream.layer(self._number):
            return self._layer(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(self._layer, name)

    def __reduce__(self) -> Any:
        raise InvalidArgument(f"a copy takes all parameters, and {self._elsewhere}")

    def extra_repr(self) -> str:
        """What repr() shows."""
        return f"{type(self._layer).__name__}, streamed"


def is_streamed(model: Any) -> bool:
    """Whether layers of the model come from the host's memory."""
    return getattr(model, "_graph_pool", None) is not None


def graph_pool(model: Any, device: Any) -> kw.GraphPool:
    """The pool for graphs of a model: that of its streamed layers, or a new one."""
    found: kw.GraphPool | None = getattr(model, "_graph_pool", None)
    return kw.GraphPool(device=device) if found is None else found
