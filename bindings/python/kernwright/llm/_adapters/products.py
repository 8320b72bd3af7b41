"""The products of adapters: for each token, two small ones with the weights of its slot."""

from __future__ import annotations

from typing import Any

import kernwright as kw
from kernwright._core import Array

__all__ = ["TYPES", "expand", "shrink"]

# Each token is summed in an order of its own, whatever tokens are beside it.
_TEXT = r"""
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kTokens = 8;  // of a block
constexpr int kWarps = 4;

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T values[kCount];
};

// Tokens of a block whose slots are the same, as bits. They share what is loaded of the weights.
struct Group {
  int slot;
  unsigned tokens;
};

struct Groups {
  const int* slots;  // of the block's tokens
  unsigned left = 0;

  __device__ Groups(const int* all, int first, int count) : slots(all + first) {
    for (int i = 0; i < kTokens && first + i < count; ++i)
      if (slots[i] >= 0) left |= 1u << i;
  }
  __device__ Group next() {
    Group made = {slots[__ffs(left) - 1], 0};
    for (int i = 0; i < kTokens; ++i)
      if ((left >> i & 1) && slots[i] == made.slot) made.tokens |= 1u << i;
    left &= ~made.tokens;
    return made;
  }
};

// low (tokens, rows) = x (tokens, inputs) times down (slots, rows, inputs) of each token's slot.
// `rows` are `rank` for each part; a slot uses used[slot] of these. A warp has a row of `down`.
template <typename T, int kVector>
__global__ void __launch_bounds__(32 * kWarps)
    shrink(const void* x, const void* down, const int* slots, const int* used, float* low,
           int tokens, int inputs, int rank, int rows) {
  const int row = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = blockIdx.y * kTokens;
  if (row >= rows) return;
  const T* const values = static_cast<const T*>(x) + (long long)first * inputs;
  Groups groups(slots, first, tokens);
  while (groups.left != 0) {
    const Group group = groups.next();
    if (row % rank >= used[group.slot]) continue;
    const T* const weights =
        static_cast<const T*>(down) + ((long long)group.slot * rows + row) * inputs;
    float sums[kTokens] = {};
    for (int k = lane * kVector; k < inputs; k += 32 * kVector) {
      const auto a = *reinterpret_cast<const Vector<T, kVector>*>(weights + k);
#pragma unroll
      for (int i = 0; i < kTokens; ++i) {
        if (!(group.tokens >> i & 1)) continue;
        const auto b =
            *reinterpret_cast<const Vector<T, kVector>*>(values + (long long)i * inputs + k);
        for (int v = 0; v < kVector; ++v) sums[i] += widen(a.values[v]) * widen(b.values[v]);
      }
    }
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      if (!(group.tokens >> i & 1)) continue;
      const float sum = warp_reduce(sums[i], Sum());
      if (lane == 0) low[(long long)(first + i) * rows + row] = sum;
    }
  }
}

// y (tokens, outputs) += low (tokens, rows) times up (slots, rank, outputs) of each token's slot.
// Outputs up to ends[0] read the first `rank` of the rows, those up to ends[1] the next ones.
template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    expand(const float* low, const void* up, const int* slots, const int* used, const int* ends,
           void* y, int tokens, int outputs, int rank, int rows) {
  const int output = blockIdx.x * 32 * kWarps + threadIdx.x, first = blockIdx.y * kTokens;
  if (output >= outputs) return;
  int part = 0;
  while (output >= ends[part]) ++part;
  const float* const factors = low + (long long)first * rows + part * rank;
  T* const results = static_cast<T*>(y) + (long long)first * outputs + output;
  Groups groups(slots, first, tokens);
  while (groups.left != 0) {
    const Group group = groups.next();
    const int count = used[group.slot];
    if (count == 0) continue;
    const T* const weights =
        static_cast<const T*>(up) + (long long)group.slot * rank * outputs + output;
    float sums[kTokens] = {};
    for (int r = 0; r < count; ++r) {
      const float weight = widen(weights[(long long)r * outputs]);
#pragma unroll
      for (int i = 0; i < kTokens; ++i)
        if (group.tokens >> i & 1) sums[i] += factors[(long long)i * rows + r] * weight;
    }
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      if (!(group.tokens >> i & 1)) continue;
      T& result = results[(long long)i * outputs];
      result = Convert<T>::apply(widen(result) + sums[i]);
    }
  }
}
"""
TYPES = {
    "float32": "float", "float16": "kernwright::Float16", "bfloat16": "kernwright::BFloat16",
}  # fmt: skip
_TOKENS, _WARPS = 8, 4
_made: list[Any] = []


def _kernel(name: str) -> Any:
    if not _made:
        _made.append(kw.module(_TEXT))
    return _made[0][name]


def shrink(x: Array, down: Array, slots: Array, used: Array) -> Array:
    """(tokens, parts * rank) float32: x (tokens, inputs) times down (slots, parts, rank, inputs) of
    the token's slot; ranks from used[slot] on, and tokens of slot -1, are not set."""
    (tokens, inputs), (_, parts, rank, _) = x.shape, down.shape
    rows, size = parts * rank, x.dtype.itemsize
    low = kw.empty((tokens, rows), device=x.device)
    vector = 16 // size if inputs * size % 16 == 0 and x.ptr % 16 == 0 else 1
    kernel = _kernel(f"shrink<{TYPES[x.dtype.name]}, {vector}>")
    kernel[(-(-rows // _WARPS), -(-tokens // _TOKENS)), 32 * _WARPS](
        x, down, slots, used, low, tokens, inputs, rank, rows
    )
    return low


def expand(low: Array, up: Array, slots: Array, used: Array, ends: Array, y: Array) -> None:
    """Adds to y (tokens, outputs), in place, what shrink() gave times up (slots, rank, outputs).
    `ends` (parts,): the last outputs of parts."""
    (tokens, outputs), (_, rank, _) = y.shape, up.shape
    kernel = _kernel(f"expand<{TYPES[y.dtype.name]}>")
    kernel[(-(-outputs // (32 * _WARPS)), -(-tokens // _TOKENS)), 32 * _WARPS](
        low, up, slots, used, ends, y, tokens, outputs, rank, low.shape[1]
    )
