// A sparse A of 16 rows: the columns of its kept elements, and sums over those alone.
//
// Elements are kept by chunks of a row: two of four; of tf32 one of two; of 4-bit integers two
// pairs of four. A chunk's indices have two bits each (tf32: two for its one element, those of its
// 16-bit halves). The indices of rows g and g + 8 lie in the lanes 4 * g to 4 * g + 3, beginning at
// a lane that the selector gives. Of 16- and 32-bit elements each lane has 16 bits of both rows,
// else even lanes have 32 bits of the lower row and odd ones 32 of the upper. The elements of B
// that no index names take no part, so that an infinity among them does no harm.
//
// Undefined by the manual and taken literally: an index twice in a chunk, and indices in descending
// order with .sp::ordered_metadata.
#pragma once

#include "sim/ops/matrix/matrix_multiply.h"

#include <type_traits>

namespace kernwright::sim::KW_SIM_NS {

template <typename Format>
constexpr bool kWholeLanes = Format::kPerRegister >= 4;  ///< a lane's metadata is of one row

/// The indices of row `row` of A, the first chunk's in the lowest bits. `blocks` is half the number
/// of A's registers.
template <typename Format>
std::uint64_t row_indices(const std::uint32_t* metadata, int row, int blocks, int selector) {
  const int lanes = kWholeLanes<Format> ? 2 * blocks : blocks;
  const std::uint32_t* from = metadata + row % 8 * 4 + selector * lanes;
  std::uint64_t bits = 0;
  for (int i = 0; i < blocks; ++i) {
    if constexpr (kWholeLanes<Format>) {
      bits |= std::uint64_t{from[2 * i + row / 8]} << (32 * i);
    } else {
      bits |= std::uint64_t{from[i] >> (row / 8 * 16) & 0xffff} << (16 * i);
    }
  }
  return bits;
}

/// The column of A (and row of B) of a row's element `e`.
template <typename Format>
int kept_column(std::uint64_t indices, int e) {
  const auto index = [indices](int i) { return static_cast<int>(indices >> (2 * i) & 3); };
  if constexpr (Format::kPerRegister == 1) return 2 * e + index(2 * e) / 2;
  if constexpr (Format::kPerRegister == 8) return e / 4 * 8 + index(e / 2) * 2 + e % 2;
  return e / 2 * 4 + index(e);
}

/// The kept elements of 16 rows. Integers are multiplied as unsigned ones; these may wrap.
template <typename V>
struct SparseRows {
  using Factor = std::conditional_t<std::is_same_v<V, float>, float, std::uint32_t>;
  static constexpr int kMostKept = 64;
  int kept = 0;  ///< of each row
  Factor factors[16 * kMostKept];
  std::uint8_t columns[16 * kMostKept];

  /// `left` in tiles [k block][row block][8][kSteps], `blocks` of k.
  template <typename Format>
  void read(const V* left, const std::uint32_t* metadata, int blocks, int selector) {
    constexpr int kSteps = 4 * Format::kPerRegister;
    kept = blocks * kSteps;
    for (int row = 0; row < 16; ++row) {
      const std::uint64_t indices = row_indices<Format>(metadata, row, blocks, selector);
      for (int e = 0; e < kept; ++e) {
        const int tile = e / kSteps * 2 + row / 8;
        factors[row * kept + e] =
            static_cast<Factor>(left[(tile * 8 + row % 8) * kSteps + e % kSteps]);
        columns[row * kept + e] = static_cast<std::uint8_t>(kept_column<Format>(indices, e));
      }
    }
  }
};

/// sums[16][8] += a * right; the rows of k in `right` have eight columns each.
template <typename V>
[[gnu::noinline]] void add_sparse(const SparseRows<V>& a, const V* right, V* sums) {
  using Factor = typename SparseRows<V>::Factor;
  for (int row = 0; row < 16; ++row) {
    typename TileRow<Factor>::Vector sum;
    std::memcpy(&sum, sums + row * 8, sizeof sum);
    for (int i = row * a.kept; i < (row + 1) * a.kept; ++i) {
      typename TileRow<Factor>::Vector line;
      std::memcpy(&line, right + a.columns[i] * 8, sizeof line);
      accumulate_row(a.factors[i], line, sum);
    }
    std::memcpy(sums + row * 8, &sum, sizeof sum);
  }
}

/// The same with .satfinite: for integers it limits the whole addition, not each step.
template <typename V>
void multiply_sparse_rows(const SparseRows<V>& a, const V* right, V* sums,
                          [[maybe_unused]] bool saturate) {
  if constexpr (std::is_same_v<V, float>) {
    add_sparse(a, right, sums);
  } else {
    alignas(64) V products[2 * 64] = {};
    add_sparse(a, right, products);
    for (int half = 0; half < 2; ++half)
      add_integers(sums + half * 64, reinterpret_cast<std::uint32_t*>(products) + half * 64,
                   saturate);
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
