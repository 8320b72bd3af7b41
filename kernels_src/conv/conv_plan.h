// A convolution as a product of matrices: where windows, weights and rows lie in memory.
#pragma once

#include "kernels_src/conv/conv.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kernwright::kernels {

/// What a convolution computes, whichever way.
struct ConvSizes {
  std::int64_t batch = 0;
  std::int32_t channels = 0, outputs = 0;  ///< of a group
  bool transposed = false;
};

/// One axis of the convolution of stride `stride` that stands for the given one. Row r takes the
/// inputs first + r * stride + t * dilation. Of a transposed convolution output o is in row (o +
/// offset) / shuffle, among the channels with the residue.
struct ConvAxis {
  std::int32_t taps = 1, stride = 1, dilation = 1, first = 0, count = 1;
  std::int32_t shuffle = 1, offset = 0;
};

/// Windows of the product. With step = gcd(stride, dilation) along x, the outputs phase + period *
/// j have a slab of positions of their own, whose position r is the input first + step * (phase *
/// row_step + period * r): window j has the neighbours from j * row_step on. A window is `inner`
/// elements long, and the next row's begins row_elements behind its first.
struct ConvPlan {
  /// `spare`: channels beyond those of a group at the least. `may_part`: an image may have a
  /// product of its own, where that makes the result as it shall lie.
  ConvPlan(const ConvGeometry& geometry, const ConvSizes& sizes, std::size_t element,
           std::int32_t spare = 0, bool may_part = false);

  ConvAxis y, x;
  std::int32_t period = 1, phases = 1;  ///< phases: those with outputs
  std::int32_t row_step = 1;            ///< positions from row to row
  std::int32_t step = 1;                ///< inputs from position to position
  std::int32_t columns = 1;             ///< rows of a slab, with those that have no output
  std::int32_t padded_channels = 1;
  /// Each image has a product, whose `all_rows` are its outputs, else the batch has one, whose rows
  /// are whole units of 16 bytes.
  bool parted = false;
  std::int64_t rows = 0, all_rows = 0;
  std::int64_t positions = 0, all_positions = 0;  ///< of a group's memory, with those at its end
  std::int64_t row_elements = 0, inner = 0;
  std::int64_t products = 0;  ///< rows of the weights for a group: outputs times residues
};

/// Whether a kernel of direct.cu computes it, as products would have few rows or short sums.
bool is_direct(const ConvGeometry& geometry, const ConvSizes& sizes);

}  // namespace kernwright::kernels
