// Checks and layouts that families over rows and packs of elements share.
#pragma once

#include "array/array.h"
#include "core/launch/launch_config.h"
#include "core/stream.h"
#include "kernels_src/launch_choices.h"

#include <cstdint>
#include <initializer_list>

namespace kernwright::kernels {

/// Throws ArgumentError, which names function and argument, unless the elements are real floats.
void require_floating(const Array& array, const char* function, const char* name);
/// Throws InvalidArgument, with both arrays, unless shape, element type and device are equal.
void require_alike(const Array& a, const char* a_name, const Array& b, const char* b_name);
/// Throws InvalidArgument unless both arrays are on one device.
void require_one_device(const Array& a, const char* a_name, const Array& b, const char* b_name);

/// `array` itself, or a row-major copy of it where it has gaps or another order.
Array contiguous(const Array& array, const Stream& stream);
/// `array` as `shape`: a view where the strides allow, else of a copy.
Array reshaped(const Array& array, Shape shape, const Stream& stream);

/// An array seen as rows of contiguous elements, one stride apart.
struct RowView {
  Array array;              ///< holds the memory
  std::int64_t rows = 0;    ///< product of all extents but the last; 1 without dimensions
  std::int64_t cols = 0;    ///< the last extent; 1 without dimensions
  std::int64_t stride = 0;  ///< from row to row, in elements
};
/// A view of `array` where the strides allow, else of a copy. A contiguous array has stride ==
/// cols.
RowView row_view(const Array& array, const Stream& stream);

/// Elements moved by one access: 16 bytes of them, or fewer where an address or a distance in bytes
/// among `bits` is no multiple of 16.
int pack_width(ScalarType type, std::initializer_list<std::uint64_t> bits);

/// A launch over packs: blocks of 256 threads with `packs_each` (1, 2 or 4) packs a thread.
struct PackGrid {
  int packs_each = 1;
  bool wide = false;  ///< 64-bit indices
  LaunchConfig config{};
};
/// `many`: packs a thread of large arrays, where no table says. Kernels of many instructions a pack
/// take 1: their loads would not be in flight together.
PackGrid pack_grid(std::int64_t packs, int width, const Stream& stream,
                   LaunchChoice choice = LaunchChoice::activation_packs, int many = 4);

/// "unsigned int" or "unsigned long long".
const char* index_type(bool wide) noexcept;
/// Calls `work` with a zero of the type of an index.
template <typename Work>
void dispatch_index(bool wide, const Work& work) {
  if (wide) {
    work(std::uint64_t{0});
  } else {
    work(std::uint32_t{0});
  }
}
/// Calls `work` with a zero of the type that elements of `type` are computed in.
template <typename Work>
void dispatch_compute(ScalarType type, const Work& work) {
  if (type == ScalarType::float64) {
    work(double{0});
  } else {
    work(float{0});
  }
}

}  // namespace kernwright::kernels
