// TMA tiles of a product's result in shared memory, which a warp fills or writes.
// Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/product_stages.cuh>
#include <kernwright/shifted_units.cuh>

namespace kernwright {

/// Bytes of a TMA tile of staging: rows of 128 bytes whose 16-byte units are swizzled.
__device__ __forceinline__ int swizzled(int row, int unit) {
  return row * 128 + ((unit ^ row) & 7) * 16;
}

/// A warp writes a TMA tile to rows at any addresses, whose columns all lie inside: units of 16
/// bytes that are aligned there, then the elements in front of the first one and behind the last.
template <typename Out>
__device__ __forceinline__ void write_shifted(const unsigned char* staged, Out* data, int row,
                                              int column, const Problem& problem, int end,
                                              int lane) {
#pragma unroll
  for (int i = 0; i < kWarpRows / 4; ++i) {
    const int r = i * 4 + lane / 8, unit = lane % 8;
    if (row + r >= end) continue;
    Out* line = data + (row + r) * static_cast<long long>(problem.columns) + column;
    const int behind = static_cast<int>(reinterpret_cast<unsigned long long>(line) % 16 / 2);
    const int ahead = (8 - behind) % 8;
    if (ahead == 0 || unit < 7) {
      const Unit16 low = *reinterpret_cast<const Unit16*>(staged + swizzled(r, unit));
      const Unit16 high =
          *reinterpret_cast<const Unit16*>(staged + swizzled(r, unit + (ahead != 0)));
      *reinterpret_cast<Unit16*>(line + ahead + unit * 8) = shifted_unit(low, high, ahead * 2);
    }
    if (ahead != 0) {
      const int c = unit < ahead ? unit : 56 + unit;
      line[c] = reinterpret_cast<const Out*>(staged + swizzled(r, c / 8))[c % 8];
    }
  }
}

/// Brings what lies outside of a TMA tile, or writes what is inside. TMA tiles get zeros for what
/// the matrix does not have.
template <bool kLoads, typename T>
__device__ __forceinline__ void move(T* inside, T* outside, bool exists) {
  if (kLoads) {
    *inside = exists ? *outside : T{};
  } else if (exists) {
    *outside = *inside;
  }
}

/// A warp moves a TMA tile from or to the matrix at `data`, whose rows are whole units of 16 bytes.
/// The first `written` units of a row of the TMA tile are left out.
template <bool kLoads, typename Out>
__device__ __forceinline__ void move_units(unsigned char* staged, Out* data, int row, int column,
                                           const Problem& problem, int end, int lane, int written) {
#pragma unroll
  for (int i = 0; i < kWarpRows / 4; ++i) {
    const int r = i * 4 + lane / 8, unit = lane % 8;
    const int at = column + unit * (16 / static_cast<int>(sizeof(Out)));
    Out* outside = data + (row + r) * static_cast<long long>(problem.columns) + at;
    move<kLoads>(reinterpret_cast<uint4*>(staged + swizzled(r, unit)),
                 reinterpret_cast<uint4*>(outside),
                 row + r < end && unit >= written && at < problem.columns);
  }
}

/// Stores rows at any addresses.
template <bool kLoads, typename Out>
__device__ __forceinline__ void move_elements(unsigned char* staged, Out* data, int row, int column,
                                              const Problem& problem, int end, int lane) {
#pragma unroll 4
  for (int i = 0; i < kWarpRows * 2; ++i) {
    const int r = i / 2, c = i % 2 * 32 + lane;
    move<kLoads>(reinterpret_cast<Out*>(staged + swizzled(r, c / 8)) + c % 8,
                 data + (row + r) * static_cast<long long>(problem.columns) + column + c,
                 row + r < end && column + c < problem.columns);
  }
}

/// A warp brings a TMA tile of c. The rows of a result that copies write are whole units.
template <typename Out, Store kStore>
__device__ __forceinline__ void load_c(unsigned char* staged, Out* data, int row, int column,
                                       const Problem& problem, int end, int lane) {
  if (kStore == kByCopies && reinterpret_cast<unsigned long long>(data) % 16 == 0) {
    move_units<true>(staged, data, row, column, problem, end, lane, 0);
  } else {
    move_elements<true>(staged, data, row, column, problem, end, lane);
  }
}

/// A warp writes a TMA tile of the result, which copies do not do, without the first `written`
/// units.
template <typename Out, Store kStore>
__device__ __forceinline__ void write_staged(unsigned char* staged, Out* data, int row, int column,
                                             const Problem& problem, int end, int lane,
                                             int written) {
  if constexpr (kStore == kByCopies) {
    move_units<false>(staged, data, row, column, problem, end, lane, written);
  } else if (column + kSwizzled <= problem.columns) {
    write_shifted(staged, data, row, column, problem, end, lane);
  } else {
    move_elements<false>(staged, data, row, column, problem, end, lane);
  }
}

}  // namespace kernwright
