"""Mixtures whose experts are on the host: those that were used last have slots on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import kernwright as kw
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.llm._weights.streaming import ELSEWHERE, LayerStream
from kernwright.llm.models._layers import Experts
from kernwright.nn import Module

__all__ = ["VECTOR_BYTES", "ExpertCache", "StreamedExperts"]

_THREADS, _BLOCKS = 256, 16  # blocks for an expert that is loaded
_TEXT = r"""
// The slot of each chosen expert. An expert without one gets the slot that was used longest ago,
// and is noted in `loads`: how many, then pairs of expert and slot. `used` has the step of the last
// use of each slot, and the number of steps behind them. One block; a step chooses at most `slots`
// experts.
__global__ void assign_slots(const int* experts, int count, int* slot_of, int* expert_of, int* used,
                             int slots, int* chosen, int* loads) {
  __shared__ int step;
  if (threadIdx.x == 0) step = ++used[slots];
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int slot = slot_of[experts[i]];
    if (slot >= 0) atomicExch(&used[slot], step);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int number = 0;
    for (int i = 0; i < count; ++i) {
      const int expert = experts[i];
      if (slot_of[expert] >= 0) continue;
      int oldest = 0;
      for (int slot = 1; slot < slots; ++slot)
        if (used[slot] < used[oldest]) oldest = slot;
      if (expert_of[oldest] >= 0) slot_of[expert_of[oldest]] = -1;
      expert_of[oldest] = expert;
      slot_of[expert] = oldest;
      used[oldest] = step;
      loads[1 + 2 * number] = expert;
      loads[2 + 2 * number] = oldest;
      ++number;
    }
    loads[0] = number;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) chosen[i] = slot_of[experts[i]];
}

// Copies the experts of `loads`, one for each blockIdx.y, from page-locked memory of the host: two
// weights of `first` and `second` vectors for each.
__global__ void load_experts(const int* loads, unsigned long long from_first,
                             unsigned long long from_second, uint4* to_first, uint4* to_second,
                             long long first, long long second) {
  if (blockIdx.y >= loads[0]) return;
  const long long expert = loads[1 + 2 * blockIdx.y], slot = loads[2 + 2 * blockIdx.y];
  const uint4* const a = reinterpret_cast<const uint4*>(from_first) + expert * first;
  const uint4* const b = reinterpret_cast<const uint4*>(from_second) + expert * second;
  const long long begin = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  const long long stride = gridDim.x * (long long)blockDim.x;
  for (long long i = begin; i < first; i += stride) to_first[slot * first + i] = a[i];
  for (long long i = begin; i < second; i += stride) to_second[slot * second + i] = b[i];
}
"""
VECTOR_BYTES = 16
"""What a thread loads at a time."""


class ExpertCache:
    """Slots for `slots` experts of a layer whose weights are in `host`, page-locked bytes: those of
    all gate_up first, at `second` those of all down. gate_up and down have the slots' weights.

    A kernel finds slots for what a step's router chose and loads what has none, so that graphs can
    have it; steps must run one after another.
    """

    def __init__(
        self, host: npt.NDArray[np.uint8], second: int, gate_up: Array, down: Array, slots: int
    ) -> None:
        count, device, self.slots = gate_up.shape[0], gate_up.device, slots
        self.gate_up, self.down = (
            kw.zeros((self.slots, *each.shape[1:]), each.dtype, device=device)
            for each in (gate_up, down)
        )
        self._host, self._second = host, second
        self._slot_of = kw.full((count,), -1, "int32", device=device)
        self._expert_of = kw.full((self.slots,), -1, "int32", device=device)
        self._used = kw.zeros((self.slots + 1,), "int32", device=device)
        self._loads = kw.zeros((1 + 2 * self.slots,), "int32", device=device)

    @property
    def nbytes(self) -> int:
        """The bytes of the slots."""
        return self.gate_up.nbytes + self.down.nbytes

    def load(self, experts: Array) -> Array:
        """The slots of experts (tokens, k), int32, that are at most as many as there are slots."""
        if experts.size > self.slots:
            raise InvalidArgument(f"{experts.size} experts have no place in {self.slots} slots")
        assign, copy = _kernels()
        chosen = kw.empty(experts.shape, "int32", device=experts.device)
        assign[1, _THREADS](
            experts, experts.size, self._slot_of, self._expert_of, self._used, self.slots, chosen,
            self._loads,
        )  # fmt: skip
        first, second = (
            each.nbytes // self.slots // VECTOR_BYTES for each in (self.gate_up, self.down)
        )
        address = int(self._host.ctypes.data)
        copy[(_BLOCKS, experts.size), _THREADS](
            self._loads, address, address + self._second, _vectors(self.gate_up),
            _vectors(self.down), first, second,
        )  # fmt: skip
        return chosen


def _vectors(array: Array) -> kw.Pointer:
    return kw.Pointer(array.ptr)


_made: list[Any] = []


def _kernels() -> list[Any]:
    if not _made:
        _made.extend(kw.kernel(_TEXT, name=name) for name in ("assign_slots", "load_experts"))
    return _made


class StreamedExperts(Module):
    """Experts in the host's memory. A step that chooses no more of them than there are slots loads
    what has none; in others all pass through the ring of a LayerStream, as whole layers do."""

    _elsewhere = ELSEWHERE

    def __init__(
        self, experts: Experts, stream: LayerStream, number: int, cache: ExpertCache
    ) -> None:
        self.router = experts.router
        self._experts, self._stream, self._number, self._cache = experts, stream, number, cache

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        weights, chosen = self._experts.choose(x)
        if chosen.size > self._cache.slots:
            with self._stream.layer(self._number):
                return self._experts.mix(
                    x, weights, chosen, self._experts.gate_up, self._experts.down, residual
                )
        with self._stream.turn():
            slots = self._cache.load(chosen.astype("int32", copy=False))
            return self._experts.mix(
                x, weights, slots, self._cache.gate_up, self._cache.down, residual
            )

    def __reduce__(self) -> Any:
        raise InvalidArgument(f"a copy takes all parameters, and {self._elsewhere}")
