// Shapes and strides: the arithmetic of n-dimensional views, without any memory behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

using Shape = std::vector<std::int64_t>;

/// Number of elements; throws InvalidArgument on a negative extent or on overflow of 64 bits.
std::int64_t element_count(std::span<const std::int64_t> shape);

/// Row-major strides in bytes. Throws InvalidArgument when the bytes overflow 64 bits.
Shape contiguous_strides(std::span<const std::int64_t> shape, std::size_t element_size);

/// True when elements follow each other row-major without gaps. Extents of 1 have no say, and an
/// array without elements is contiguous, as NumPy has it.
bool strides_are_contiguous(std::span<const std::int64_t> shape,
                            std::span<const std::int64_t> strides,
                            std::size_t element_size) noexcept;

/// `shape` with its one extent of -1, if any, replaced: the result holds `count` elements. Throws
/// InvalidArgument, naming both shapes, when this is impossible.
Shape resolve_reshape(std::span<const std::int64_t> from, Shape shape);

/// Strides of a row-major view of (`shape`, `strides`) with the shape `to`, of as many elements.
/// Nothing if that takes a copy.
std::optional<Shape> reshape_strides(std::span<const std::int64_t> shape,
                                     std::span<const std::int64_t> strides,
                                     std::span<const std::int64_t> to, std::size_t element_size);

/// `axis` counted from the end when negative. Throws InvalidArgument outside [-ndim, ndim).
int normalize_axis(int axis, int ndim);

/// Bytes covered by a view, relative to its element 0: [low, high). Empty for no elements.
struct ByteRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(high - low); }
};
/// Throws InvalidArgument when an address difference overflows 64 bits.
ByteRange byte_range(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                     std::size_t element_size);

/// As Python spells it: "()", "(3,)", "(3, 4)".
std::string shape_to_string(std::span<const std::int64_t> shape);

}  // namespace kernwright
