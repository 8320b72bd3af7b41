"""The products of adapters on tensor cores, for many tokens with weights of 16 bits."""

from __future__ import annotations

from typing import Any

import kernwright as kw
from kernwright._core import Array

__all__ = ["LEAST_TOKENS", "expand_tiles", "shrink_tiles", "takes_tiles"]

# A tile has 32 tokens. For each slot among them it is multiplied whole, and the tokens of the slot
# take their rows: neighbours mostly have one slot. Each token is summed in an order of its own,
# whatever tokens are beside it.
_TEXT = r"""
#include <kernwright/elements.cuh>
#include <kernwright/tensor_core.cuh>

using namespace kernwright;

constexpr int kTokens = 32;  // of a tile
constexpr int kWarps = 4;
constexpr int kStep = 32;  // inputs of two matrix instructions

// Slots of a tile's tokens: next() gives one after the other, with the tokens that have it as bits.
struct Slots {
  int own;  // of the token that is the lane
  unsigned left;

  __device__ Slots(const int* slots, int first, int tokens) {
    const int token = first + threadIdx.x % 32;
    own = token < tokens ? slots[token] : -1;
    left = __ballot_sync(~0u, own >= 0);
  }
  __device__ unsigned next(int& slot) {
    slot = __shfl_sync(~0u, own, __ffs(left) - 1);
    const unsigned found = __ballot_sync(~0u, own == slot);
    left &= ~found;
    return found;
  }
};

__device__ __forceinline__ uint4 load(const void* from, bool valid) {
  return valid ? *static_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
}

// low (tokens, rows) = x (tokens, inputs) times down (slots, rows, inputs) of each token's slot.
// `rows` are `rank` for each part, of which a slot uses used[slot]. A block has a tile and 32 rows;
// its warps share the inputs.
template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    shrink_tiles(const void* values, const void* matrices, const int* slots, const int* used,
                 float* low, int tokens, int inputs, int rank, int rows) {
  const T *const x = static_cast<const T*>(values), *const down = static_cast<const T*>(matrices);
  __shared__ float shared[kWarps][32][33];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
  const int first = blockIdx.y * kTokens, first_row = blockIdx.x * 32;
  Slots all(slots, first, tokens);
  while (all.left != 0) {
    int slot;
    const unsigned group = all.next(slot);
    const int count = used[slot];
    bool wanted[4];
    float sums[2][4][4] = {};
    bool any = false;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int begin = first_row + 8 * n;
      wanted[n] = begin < rows && begin % rank < count;
      any |= wanted[n];
    }
    if (!any) continue;
    const T* const weights = down + (long long)slot * rows * inputs;
    for (int k = warp * kStep + 8 * quad; k < inputs; k += kWarps * kStep) {
      uint4 left[2][2];
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const int token = first + 8 * m + row;
        left[m / 2][m % 2] = load(x + (long long)token * inputs + k, token < tokens);
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (!wanted[n]) continue;
        const uint4 right = load(weights + (long long)(first_row + 8 * n + row) * inputs + k, true);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          const uint4 &upper = left[m][0], &lower = left[m][1];
          MatrixUnit<T>::multiply(sums[m][n], {upper.x, lower.x, upper.y, lower.y}, right.x,
                                  right.y);
          MatrixUnit<T>::multiply(sums[m][n], {upper.z, lower.z, upper.w, lower.w}, right.z,
                                  right.w);
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          shared[warp][16 * m + row + 8 * (i / 2)][8 * n + 2 * quad + i % 2] = sums[m][n][i];
    __syncthreads();
    for (int token = warp; token < kTokens; token += kWarps) {
      const int at = first_row + lane;
      if (!(group >> token & 1) || at >= rows || at / 8 * 8 % rank >= count) continue;
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += shared[w][token][lane];
      low[(long long)(first + token) * rows + at] = sum;
    }
  }
}

// y (tokens, outputs) += low (tokens, rows) times up (slots, rank, outputs) of each token's slot.
// Outputs up to ends[0] read the first `rank` of the rows, those up to ends[1] the next ones. A
// warp has a tile and 64 outputs: of the eight columns in an instruction, column c is output
// 8 * c + n of the n-th one.
template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    expand_tiles(const float* low, const void* matrices, const int* slots, const int* used,
                 const int* ends, void* results_of_tokens, int tokens, int outputs, int rank,
                 int rows) {
  const T* const up = static_cast<const T*>(matrices);
  T* const y = static_cast<T*>(results_of_tokens);
  const int lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
  const int first = blockIdx.y * kTokens;
  const int column = (blockIdx.x * kWarps + threadIdx.x / 32) * 64;
  if (column >= outputs) return;
  Slots all(slots, first, tokens);
  while (all.left != 0) {
    int slot;
    const unsigned group = all.next(slot);
    const int count = used[slot];
    const T* const weights = up + (long long)slot * rank * outputs + column + 8 * row;
    float sums[2][8][4] = {};
    for (int part = 0, begin = 0; begin < outputs && begin < column + 64; begin = ends[part++]) {
      const int mine = column + 8 * row;  // the first output of the lane's weights
      const bool reads = mine >= begin && mine < ends[part];
      if (ends[part] <= column) continue;
      for (int k = 0; k < count; k += 8) {
        const int at = k + 2 * quad;
        unsigned left[2][4];
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          const int token = first + 8 * m + row;
          const bool is_own = group >> (8 * m + row) & 1;
          const float* const from = low + (long long)token * rows + part * rank + at;
          const float2 both = is_own ? *reinterpret_cast<const float2*>(from) : float2{0, 0};
          asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(left[m / 2][m % 2]) : "f"(both.x));
          asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(left[m / 2][m % 2 + 2]) : "f"(both.y));
        }
        alignas(16) T right[2][8];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          *reinterpret_cast<uint4*>(right[i]) =
              load(weights + (long long)(at + i) * outputs, reads);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          const unsigned right0 = __float_as_uint(widen(right[0][n]));
          const unsigned right1 = __float_as_uint(widen(right[1][n]));
#pragma unroll
          for (int m = 0; m < 2; ++m)
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(sums[m][n][0]), "+f"(sums[m][n][1]), "+f"(sums[m][n][2]),
                  "+f"(sums[m][n][3])
                : "r"(left[m][0]), "r"(left[m][1]), "r"(left[m][2]), "r"(left[m][3]),
                  "r"(right0), "r"(right1));
        }
      }
    }
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const int token = 8 * m + row;
      if (!(group >> token & 1)) continue;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int output = column + 16 * quad + 8 * i;
        if (output >= outputs) continue;
        alignas(16) T results[8];
        T* const result = y + (long long)(first + token) * outputs + output;
        uint4* const at = reinterpret_cast<uint4*>(result);
        *reinterpret_cast<uint4*>(results) = *at;
#pragma unroll
        for (int n = 0; n < 8; ++n)
          results[n] = Convert<T>::apply(widen(results[n]) + sums[m / 2][n][2 * (m % 2) + i]);
        *at = *reinterpret_cast<const uint4*>(results);
      }
    }
  }
}
"""
_TYPES = {"float16": "kernwright::Float16", "bfloat16": "kernwright::BFloat16"}
_TOKENS, _WARPS, _ROWS, _OUTPUTS = 32, 4, 32, 64
LEAST_TOKENS = 2 * _TOKENS
_made: list[Any] = []


def _kernel(name: str) -> Any:
    if not _made:
        _made.append(kw.module(_TEXT))
    return _made[0][name]


def takes_tiles(x: Array, down: Array, y: Array, parts_are_whole: bool) -> bool:
    """Whether both products of x (tokens, inputs) can go by tiles, and gain by it: whether parts of
    the result have multiples of 8 outputs is known."""
    return (
        x.shape[0] >= LEAST_TOKENS
        and x.dtype.name in _TYPES
        and y.dtype == x.dtype
        and x.shape[1] % 32 == 0
        and down.shape[2] % 8 == 0
        and parts_are_whole
        and all(each.ptr % 16 == 0 for each in (x, y))
        and x.device.compute_capability >= (8, 0)
    )


def shrink_tiles(x: Array, down: Array, slots: Array, used: Array) -> Array:
    """As shrink() of products.py; of ranks from used[slot] on some are set, too."""
    (tokens, inputs), (_, parts, rank, _) = x.shape, down.shape
    rows = parts * rank
    low = kw.empty((tokens, rows), device=x.device)
    kernel = _kernel(f"shrink_tiles<{_TYPES[x.dtype.name]}>")
    kernel[(-(-rows // _ROWS), -(-tokens // _TOKENS)), 32 * _WARPS](
        x, down, slots, used, low, tokens, inputs, rank, rows
    )
    return low


def expand_tiles(low: Array, up: Array, slots: Array, used: Array, ends: Array, y: Array) -> None:
    """As expand() of products.py, after shrink_tiles(). Factors are rounded to the 11 bits of
    tf32."""
    (tokens, outputs), (_, rank, _) = y.shape, up.shape
    kernel = _kernel(f"expand_tiles<{_TYPES[y.dtype.name]}>")
    kernel[(-(-outputs // (_OUTPUTS * _WARPS)), -(-tokens // _TOKENS)), 32 * _WARPS](
        low, up, slots, used, ends, y, tokens, outputs, rank, low.shape[1]
    )
