// How several strided views of one shape are walked together, in as few dimensions as possible.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace kernwright::kernels {

inline constexpr std::size_t kWalkDims = 8;

/// The kernels' parameter; its layout is that of Walk in include/walk.cuh.
template <std::size_t Views>
struct Walk {
  std::int64_t extent[kWalkDims];
  std::int64_t stride[Views][kWalkDims];
  std::uint32_t magic[kWalkDims];
  std::uint32_t shift[kWalkDims];
  std::int32_t ndim;
};

template <std::size_t Views>
struct WalkDim {
  std::int64_t extent = 0;
  std::array<std::int64_t, Views> stride = {};
};

/// Views in the order in which their elements are numbered, the innermost dimension first; a stride
/// of 0 repeats elements. `base` is the address, or any number that strides are added to.
template <std::size_t Views>
struct WalkPlan {
  std::array<std::uint64_t, Views> base = {};
  std::vector<WalkDim<Views>> dims;

  /// Adds a dimension around the others; one of extent 1 has no say.
  void add(std::int64_t extent, std::array<std::int64_t, Views> stride) {
    if (extent == 1) return;
    if (!dims.empty() && follows(dims.back(), stride)) {
      dims.back().extent *= extent;
    } else {
      dims.push_back({extent, stride});
    }
  }

  std::int64_t count() const noexcept {
    std::int64_t count = 1;
    for (const auto& dim : dims) count *= dim.extent;
    return count;
  }

  /// Makes the innermost bytes, which the views of `moved` have in common, units of up to 16 bytes;
  /// `also` must be a multiple of the unit too. The logarithm of the unit's size.
  int widen_unit(std::span<const std::size_t> moved, std::uint64_t also) {
    std::uint64_t alignment = 16 | also;
    const bool bytes = !dims.empty() && is_row(dims[0], moved);
    if (!bytes) return 0;
    alignment |= static_cast<std::uint64_t>(dims[0].extent);
    for (const std::size_t view : moved) {
      alignment |= base[view];
      for (std::size_t d = 1; d < dims.size(); ++d) {
        alignment |= static_cast<std::uint64_t>(dims[d].stride[view]);
      }
    }
    const int log2_unit = std::countr_zero(alignment);
    const std::int64_t unit = std::int64_t{1} << log2_unit;
    dims[0].extent /= unit;
    for (std::int64_t& stride : dims[0].stride) stride *= unit;
    if (dims[0].extent == 1) dims.erase(dims.begin());
    return log2_unit;
  }

  /// Calls `launch(part)` for parts of no more dimensions than a kernel takes.
  template <typename Launch>
  void for_each_part(const Launch& launch) const {
    if (dims.size() <= kWalkDims) return launch(*this);
    WalkPlan part = *this;
    const WalkDim<Views> outer = part.dims.back();
    part.dims.pop_back();
    for (std::int64_t i = 0; i < outer.extent; ++i) {
      part.for_each_part(launch);
      for (std::size_t v = 0; v < Views; ++v) {
        part.base[v] += static_cast<std::uint64_t>(outer.stride[v]);
      }
    }
  }

  Walk<Views> parameter() const {
    Walk<Views> walk{};
    walk.ndim = static_cast<std::int32_t>(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) {
      walk.extent[d] = dims[d].extent;
      for (std::size_t v = 0; v < Views; ++v) walk.stride[v][d] = dims[d].stride[v];
      if (dims[d].extent > std::numeric_limits<std::int32_t>::max()) continue;
      // floor(i / extent) = i * ceil(2^p / extent) / 2^p for i < 2^31, p = 31 + ceil(log2(extent)).
      const auto extent = static_cast<std::uint64_t>(dims[d].extent);
      const int p = 31 + std::bit_width(extent - 1);
      walk.magic[d] = static_cast<std::uint32_t>(((std::uint64_t{1} << p) + extent - 1) / extent);
      walk.shift[d] = static_cast<std::uint32_t>(p - 32);
    }
    return walk;
  }

 private:
  static bool follows(const WalkDim<Views>& inner, const std::array<std::int64_t, Views>& stride) {
    for (std::size_t v = 0; v < Views; ++v) {
      if (stride[v] != inner.stride[v] * inner.extent) return false;
    }
    return true;
  }
  /// Whether the dimension runs through the bytes of the views `moved` and rests in the others.
  static bool is_row(const WalkDim<Views>& dim, std::span<const std::size_t> moved) {
    std::size_t steps = 0;
    for (const std::int64_t stride : dim.stride) steps += stride != 0 ? 1 : 0;
    for (const std::size_t view : moved) {
      if (dim.stride[view] != 1) return false;
    }
    return steps == moved.size();
  }
};

/// One grid more than the count must still fit 32-bit numbers that are divided as above.
inline bool is_wide(std::int64_t count) {
  return count > std::numeric_limits<std::int32_t>::max() - (std::int64_t{1} << 30);
}

/// Blocks for `count` units, `per_block` each; the kernels' loops take the rest.
inline std::uint32_t walk_blocks(std::int64_t count, std::int64_t per_block) {
  constexpr std::int64_t kMost = std::int64_t{1} << 19;
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  return static_cast<std::uint32_t>(blocks < kMost ? blocks : kMost);
}

}  // namespace kernwright::kernels
