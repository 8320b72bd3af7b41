"""Where the weights of a model are: all on the device, or layers of them in the host's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from kernwright._support.sizes import size_in_bytes
from kernwright._support.warn import warn_caller
from kernwright._support.words import counted
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._errors import ModelError
from kernwright.llm._weights.available import available_bytes
from kernwright.llm._weights.experts import VECTOR_BYTES, ExpertCache, StreamedExperts
from kernwright.llm._weights.parameters import LayerPlace, Slot, array_sizes
from kernwright.llm._weights.streaming import SLOTS, LayerStream, aligned
from kernwright.nn import Module

__all__ = ["LEFT_TOKENS", "Memory", "budget_bytes", "place", "planned"]

MODES = ("auto", "device", "stream", "experts")
# What "auto" leaves of the free memory: keys and values of so many tokens, or of the context, and a
# part for results of layers and graphs.
LEFT_TOKENS, _LEFT_PART = 4096, 16


class Memory(NamedTuple):
    """Where llm.load() put the weights of a model: model.memory.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... }, memory="stream")
    >>> model.memory.mode, model.memory.streamed_layers, model.memory.resident_layers
    ('stream', 4, 0)
    """

    mode: str
    """"device": all are there; "stream": each step copies some layers from the host; "experts": a
    step copies the experts that have no slot."""
    device_bytes: int
    """Bytes of weights on the device, of the ring for streamed layers, and of experts' slots."""
    host_bytes: int
    """Bytes of page-locked memory. A step copies all of them, or the experts that it needs."""
    resident_layers: int
    streamed_layers: int
    expert_slots: int = 0
    """Experts of each layer that have a place on the device, of mode "experts"."""

    def __str__(self) -> str:
        made = f"weights of {gigabytes(self.device_bytes)} on the device"
        if self.mode == "device":
            return made
        if self.mode == "experts":
            return (
                f"experts of {counted(self.streamed_layers, 'layer')}, "
                f"{gigabytes(self.host_bytes)}, in page-locked memory of the host, "
                f"{self.expert_slots} of each on the device; {made}"
            )
        layers = self.resident_layers + self.streamed_layers
        return (
            f"{self.streamed_layers} of {counted(layers, 'layer')}, {gigabytes(self.host_bytes)}, "
            f"in page-locked memory of the host, which each step copies; {made}"
        )


class _Source(Protocol):
    """Parameters to be filled, layer by layer."""

    module: Module
    layers: list[LayerPlace]

    def take_experts_as_layers(self) -> None: ...

    @property
    def source(self) -> str: ...
    def nbytes(self, path: str) -> int: ...
    def paths(self, layer: int | None) -> list[str]: ...
    def fill(self, layer: int | None) -> None: ...
    def places(self, path: str) -> list[Slot]: ...


def gigabytes(count: float) -> str:
    """13.5 GB, 4.2 MB, 960 bytes"""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if abs(count) >= size:
            return f"{count / size:.4g} {unit}"
    return f"{int(count)} bytes"


def budget_bytes(memory: Any, budget: Any) -> int | None:
    """The bytes of a budget: a number, or a text as "4GB", "512 MiB". Raises ArgumentError,
    InvalidArgument.

    >>> from kernwright.llm._weights.memory import budget_bytes
    >>> budget_bytes("stream", "1.5GiB")
    1610612736
    """
    if memory not in MODES:
        raise ArgumentError(f"memory is one of {', '.join(MODES)}, got {memory!r:.60}")
    if budget is None:
        return None
    if memory == "device":
        raise ArgumentError(
            'a budget is for memory="stream" and memory="auto": memory="device" takes what the '
            "weights need"
        )
    if isinstance(budget, str):
        size = size_in_bytes(budget)
        if size is not None:
            return size
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise ArgumentError(f'a budget is as 4000000000, "4GB" or "512MiB", got {budget!r:.60}')
    if budget <= 0:
        raise InvalidArgument(f"a budget is a number of bytes above 0, got {budget}")
    return budget


def place(source: _Source, memory: str, budget: int | None, device: Any, left_bytes: int) -> Memory:
    """Fills the parameters, and puts them where `memory` says; "auto" leaves `left_bytes` for keys
    and values. Raises ModelError for a budget that is too small, and for modules without
    layers to stream."""
    if memory == "experts":
        return _with_cached_experts(source, budget, device)
    limit, resident = _resident_layers(source, memory, budget, device, left_bytes)
    stream = LayerStream(device)
    _fill(source, stream, resident, limit)
    kept = [value for layer in (None, *resident) for value in _values(source, layer)]
    on_device = sum(sum(array_sizes(value)) for value in kept)
    if len(resident) == len(source.layers):
        return Memory("device", on_device, 0, len(resident), 0)
    stream.seal(source.module)
    made = Memory(
        "stream", on_device + stream.device_bytes, stream.host_bytes, len(resident),
        len(source.layers) - len(resident),
    )  # fmt: skip
    if memory == "auto":
        weights = gigabytes(on_device + made.host_bytes)
        warn_caller(
            f"{source.source}: the weights, {weights}, do not fit into "
            f'{gigabytes(limit or 0)} of device memory, so memory="auto" chose "stream": {made}. '
            "Weights of few bits (quantize=) need less memory, and their steps are faster"
        )
    return made


def planned(
    source: _Source, memory: str, budget: int | None, device: Any, left_bytes: int
) -> Memory:
    """What place() would give, by the sizes that files tell of their tensors: nothing is read. The
    sizes of weights that are quantized while they are loaded are estimates. Raises as place()."""
    resident: set[int] = set()
    each_slot = slots = 0
    if memory == "experts":
        each_slot, slots = _expert_slots(source, budget)
    else:
        _, resident = _resident_layers(source, memory, budget, device, left_bytes)
    layers = range(len(source.layers))
    kept = sum(source.nbytes(path) for layer in (None, *resident) for path in source.paths(layer))
    streamed = [_planned(source, layer) for layer in layers if layer not in resident]
    on_device = kept + needed_bytes(0, streamed, set()) + slots * each_slot
    mode = "experts" if slots else "stream" if streamed else "device"
    return Memory(mode, on_device, sum(streamed), len(resident), len(streamed), slots)


def _resident_layers(
    source: _Source, memory: str, budget: int | None, device: Any, left_bytes: int
) -> tuple[int | None, set[int]]:
    """The bytes that weights may take, None for any, and the layers that stay on the device."""
    numbers = range(len(source.layers))
    if memory == "stream" and not numbers:
        raise ModelError(f"{source.source}: the model has no list of layers to stream")
    if memory == "device":
        return budget, set(numbers)
    if memory == "stream" and budget is None:
        return None, set()
    what = f"a budget of {budget or 0:,} bytes is too small for the weights"
    if budget is None:
        free = available_bytes(device)
        budget = max(free - free // _LEFT_PART - left_bytes, 0)
        what = (
            f'memory="auto" has {gigabytes(budget)} for the weights, {gigabytes(free)} that are '
            f"free less a sixteenth and {gigabytes(left_bytes)} for keys and values"
        )
    sizes = [_planned(source, layer) for layer in numbers]
    fixed = _planned(source, None)
    chosen = chosen_layers(fixed, sizes, budget)
    if chosen is None:
        raise _too_small(source, what, fixed, sizes)
    return budget, chosen


def _expert_slots(source: _Source, budget: int | None) -> tuple[int, int]:
    """The bytes of a slot in all layers, and how many slots the budget lets. From now on the layers
    of `source` are its mixtures."""
    source.take_experts_as_layers()
    mixtures = [each.module for each in source.layers]
    weights = [
        source.nbytes(path) // mixtures[layer].count
        for layer in range(len(mixtures))
        for path in source.paths(layer)
    ]
    if not weights or any(size % VECTOR_BYTES for size in weights):
        raise ModelError(
            f'{source.source}: memory="experts" is for mixtures of llm.models.Experts, whose '
            f"weights have multiples of {VECTOR_BYTES} bytes each; others are streamed layer by "
            'layer: memory="stream"'
        )
    fixed = _planned(source, None)
    least = needed_bytes(fixed, [_planned(source, i) for i in range(len(mixtures))], set())
    most, each_slot = max(each.top_k for each in mixtures), sum(weights)
    slots = 2 * most if budget is None else max(budget - least, 0) // each_slot
    if slots < most:
        raise ModelError(
            f"{source.source}: a budget of {budget or 0:,} bytes is too small for the weights; the "
            f"smallest that works is {least + most * each_slot:,}: {fixed:,} of what is no expert, "
            f"{least - fixed:,} of a ring, and {most} experts of each layer"
        )
    return each_slot, min(slots, *(each.count for each in mixtures))


def _with_cached_experts(source: _Source, budget: int | None, device: Any) -> Memory:
    """All but the experts on the device, and slots for as many of them as the budget lets."""
    _, slots = _expert_slots(source, budget)
    stream, caches = LayerStream(device), []
    _fill(source, stream, set(), None)

    def wrapped(experts: Any, stream: LayerStream, number: int) -> Module:
        second = aligned(experts.gate_up.nbytes)
        cache = ExpertCache(stream.host(number), second, experts.gate_up, experts.down, slots)
        caches.append(cache)
        return StreamedExperts(experts, stream, number, cache)

    stream.seal(source.module, wrapped)
    on_device = _size(source, None) + stream.device_bytes + sum(cache.nbytes for cache in caches)
    return Memory("experts", on_device, stream.host_bytes, 0, len(source.layers), slots)


def _fill(source: _Source, stream: LayerStream, resident: set[int], limit: int | None) -> None:
    """Fills layer by layer; those that are not to stay go to the host at once. Sizes of weights in
    few bits are known only then: further layers go where the limit wants it."""

    def move(layer: int) -> None:
        places = [slot for path in source.paths(layer) for slot in source.places(path)]
        stream.add(layer, source.layers[layer], places)

    source.fill(None)
    fixed, sizes = _size(source, None), []
    for layer in range(len(source.layers)):
        source.fill(layer)
        sizes.append(_size(source, layer))
        if layer not in resident:
            move(layer)
    while limit is not None and needed_bytes(fixed, sizes, resident) > limit:
        if not resident:
            what = f"a budget of {limit:,} bytes is too small for the weights"
            raise _too_small(source, what, fixed, sizes)
        last = max(resident)
        resident.discard(last)
        move(last)


def chosen_layers(fixed: int, layers: Sequence[int], limit: int) -> set[int] | None:
    """The layers that stay on the device: as many as the limit lets, spread evenly, so that copies
    go on beside them. None where not even the ring fits.

    >>> from kernwright.llm._weights.memory import chosen_layers
    >>> chosen_layers(10, [100] * 4, 410)
    {1, 3}
    """
    count = len(layers)
    for kept in range(count, -1, -1):
        resident = {i for i in range(count) if (i + 1) * kept // count > i * kept // count}
        if needed_bytes(fixed, layers, resident) <= limit:
            return resident
    return None


def needed_bytes(fixed: int, layers: Sequence[int], resident: set[int]) -> int:
    """The device memory of what is no layer, of layers that stay, and of the others' ring."""
    streamed = [size for i, size in enumerate(layers) if i not in resident]
    ring = min(SLOTS, len(streamed)) * max(streamed, default=0)
    return fixed + sum(layers) - sum(streamed) + ring


def _planned(source: _Source, layer: int | None) -> int:
    """The bytes of a layer's parameters as they are estimated."""
    return _summed([source.nbytes(path) for path in source.paths(layer)], layer)


def _size(source: _Source, layer: int | None) -> int:
    """The bytes of a layer's parameters as they are."""
    sizes = [size for value in _values(source, layer) for size in array_sizes(value)]
    return _summed(sizes, layer)


def _summed(sizes: list[int], layer: int | None) -> int:
    """Arrays of a layer are counted as they lie in the ring."""
    return sum(sizes) if layer is None else sum(aligned(size) for size in sizes)


def _values(source: _Source, layer: int | None) -> list[Any]:
    return [source.places(path)[0].value for path in source.paths(layer)]


def _too_small(source: _Source, what: str, fixed: int, layers: Sequence[int]) -> ModelError:
    least = needed_bytes(fixed, layers, set())
    return ModelError(
        f"{source.source}: {what}; the smallest that works is {least:,}: {fixed:,} of what is no "
        f"layer, and {least - fixed:,} of the ring that the layers pass through"
    )
