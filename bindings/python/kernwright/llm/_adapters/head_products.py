"""The products of adapters of a layer in latent attention, head by head."""

from __future__ import annotations

from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._adapters.products import TYPES

__all__ = ["HeadColumns", "add_by_heads"]

_TEXT = r"""
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
constexpr int kRanks = 64;  // of a pass

// y (tokens * heads, outputs) += x (tokens * heads, inputs) down^T up, of stacks (slots, rank,
// columns); of the token's slot each head has the columns from head * step + first on.
template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    add_by_heads(const void* x, const void* down, int down_columns, int down_step, int down_first,
                 int inputs, const void* up, int up_columns, int up_step, int up_first, int outputs,
                 const int* slots, const int* used, void* y, int heads, int rank) {
  __shared__ float low[kRanks];
  const int head = blockIdx.x % heads, slot = slots[blockIdx.x / heads], lane = threadIdx.x % 32;
  if (slot < 0) return;
  const long long first = (long long)slot * rank;
  const T* const values = static_cast<const T*>(x) + (long long)blockIdx.x * inputs;
  T* const results = static_cast<T*>(y) + (long long)blockIdx.x * outputs;
  for (int begin = 0; begin < used[slot]; begin += kRanks) {
    const int count = min(kRanks, used[slot] - begin);
    __syncthreads();
    for (int r = threadIdx.x / 32; r < count; r += kWarps) {
      const T* const weights = static_cast<const T*>(down) +
                               (first + begin + r) * down_columns + head * down_step + down_first;
      float sum = 0;
      for (int k = lane; k < inputs; k += 32) sum += widen(values[k]) * widen(weights[k]);
      sum = warp_reduce(sum, Sum());
      if (lane == 0) low[r] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < outputs; i += 32 * kWarps) {
      const T* weights =
          static_cast<const T*>(up) + (first + begin) * up_columns + head * up_step + up_first + i;
      float sum = widen(results[i]);
      for (int r = 0; r < count; ++r, weights += up_columns) sum += low[r] * widen(*weights);
      results[i] = Convert<T>::apply(sum);
    }
  }
}
"""
_made: list[Any] = []


class HeadColumns(NamedTuple):
    """The columns of each head in a stack (slots, ..., rank, columns): `width` of them from
    head * step + first on."""

    stack: Array
    step: int
    first: int
    width: int


def add_by_heads(
    x: Array, down: HeadColumns, up: HeadColumns, slots: Array, used: Array, y: Array
) -> None:
    """Adds to y (tokens, heads, up.width), in place, x (tokens, heads, down.width) times the
    columns of `down`, transposed, times those of `up`, of the token's slot. Both contiguous."""
    if not _made:
        _made.append(kw.module(_TEXT))
    (tokens, heads, _), rank = x.shape, down.stack.shape[-2]
    sides = [
        argument
        for side in (down, up)
        for argument in (side.stack, side.stack.shape[-1], side.step, side.first, side.width)
    ]
    kernel = _made[0][f"add_by_heads<{TYPES[x.dtype.name]}>"]
    kernel[tokens * heads, 128](x, *sides, slots, used, y, heads, rank)
