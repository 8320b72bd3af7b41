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
/// j read a separate slab of positions, whose position r is the input first + step * (phase *
/// row_step + period * r): window j has the neighbours from j * row_step on. A window is `inner`
/// elements long, and the window of the next row begins row_elements behind it.
struct ConvPlan {
  /// `spare`: channels beyond a group's channels at the least. `may_part`: each image may have a
  /// separate product, where this gives the result the wanted layout.
  ConvPlan(const ConvGeometry& geometry, const ConvSizes& sizes, std::size_t element,
           std::int32_t spare = 0, bool may_part = false);

  ConvAxis y, x;
  std::int32_t period = 1, phases = 1;  ///< phases with outputs
  std::int32_t row_step = 1;            ///< positions from row to row
  std::int32_t step = 1;                ///< inputs from position to position
  std::int32_t columns = 1;             ///< rows of a slab, also rows without an output
  std::int32_t padded_channels = 1;
  /// Each image has a product, whose `all_rows` are the image's outputs, else the batch has one,
  /// whose rows are whole units of 16 bytes.
  bool parted = false;
  std::int64_t rows = 0, all_rows = 0;
  std::int64_t positions = 0, all_positions = 0;  ///< of a group's memory, without and with the end
  std::int64_t row_elements = 0, inner = 0;
  std::int64_t products = 0;  ///< rows of the weights for a group: outputs times residues
};

/// Whether a kernel of direct.cu computes it, as products would have few rows or short sums.
bool is_direct(const ConvGeometry& geometry, const ConvSizes& sizes);

}  // namespace kernwright::kernels
