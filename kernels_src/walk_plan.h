// How several strided views of one shape are walked together, in as few dimensions as possible.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace kernwright::kernels {

inline constexpr std::size_t kWalkDims = 8;
/// The two views of a copy, a reduction or a scan.
inline constexpr std::size_t kTo = 0, kFrom = 1;

/// A divisor from 1 to 2^31 as a factor and a shift: dividing by it takes no division.
struct FastDivisor {
  std::uint32_t magic = 0;
  std::uint32_t shift = 0;

  /// floor(i / divisor) = floor(i * magic / 2^p) for i below 2^31, where p = 31 +
  /// ceil(log2(divisor)) and magic = ceil(2^p / divisor), which fits 32 bits. The upper half of 2 *
  /// i * magic is i * magic / 2^31, so that a divisor of 1 needs no case of its own.
  static constexpr FastDivisor make(std::uint64_t divisor) {
    const int shift = std::bit_width(divisor - 1);
    const std::uint64_t magic = ((std::uint64_t{1} << (31 + shift)) + divisor - 1) / divisor;
    return {static_cast<std::uint32_t>(magic), static_cast<std::uint32_t>(shift)};
  }
  /// The quotient of i, which is below 2^31, as walk_offsets() of include/walk.cuh computes it.
  constexpr std::uint32_t divide(std::uint32_t i) const {
    return static_cast<std::uint32_t>((std::uint64_t{i} + i) * magic >> 32) >> shift;
  }
};

/// The kernels' parameter; the layout is that of Walk in include/walk.cuh.
template <std::size_t Views, std::size_t Dims = kWalkDims, typename Offset = std::int64_t>
struct Walk {
  std::int32_t ndim;
  Offset stride[Dims][Views];
  std::int64_t extent[Dims];
  std::uint32_t magic[Dims];
  std::uint32_t shift[Dims];
};
static_assert(sizeof(Walk<2>) == 264 && sizeof(Walk<2, 4>) == 136);
static_assert(sizeof(Walk<4, 8, std::int32_t>) == 264);

template <std::size_t Views>
struct WalkDim {
  std::int64_t extent = 0;
  std::array<std::int64_t, Views> stride = {};
  bool operator==(const WalkDim&) const = default;
};

/// A walk of no more than one dimension as a smaller parameter, which kernels read sooner.
template <std::size_t Views>
Walk<Views, 1> short_walk(const Walk<Views>& walk) {
  Walk<Views, 1> made{};
  made.ndim = walk.ndim;
  for (std::size_t v = 0; v < Views; ++v) made.stride[0][v] = walk.stride[0][v];
  made.extent[0] = walk.extent[0];
  made.magic[0] = walk.magic[0];
  made.shift[0] = walk.shift[0];
  return made;
}
/// Calls launch(walk) with the walk, as short_walk() where it can be one.
template <std::size_t Views, typename Launch>
void dispatch_walk(const Walk<Views>& walk, const Launch& launch) {
  if (walk.ndim <= 1) return launch(short_walk(walk));
  launch(walk);
}

/// The innermost dimension first.
template <std::size_t Views>
using WalkDims = std::vector<WalkDim<Views>>;

/// Adds a dimension around all earlier ones: merges it into the outermost where it follows it in
/// all views. A dimension of extent 1 changes nothing.
template <std::size_t Views>
void add_dim(WalkDims<Views>& dims, const WalkDim<Views>& dim) {
  if (dim.extent == 1) return;
  bool follows = !dims.empty();
  for (std::size_t v = 0; v < Views && follows; ++v) {
    follows = dim.stride[v] == dims.back().stride[v] * dims.back().extent;
  }
  if (follows) {
    dims.back().extent *= dim.extent;
  } else {
    dims.push_back(dim);
  }
}

template <std::size_t Views>
void merge_dims(WalkDims<Views>& dims) {
  WalkDims<Views> merged;
  merged.reserve(dims.size());
  for (const auto& dim : dims) add_dim(merged, dim);
  dims = std::move(merged);
}

/// Sorts dimensions by rising distance in one view, unmoved dimensions last; then merges.
template <std::size_t Views>
void order_dims(WalkDims<Views>& dims, std::size_t view) {
  const auto distance = [view](const WalkDim<Views>& dim) {
    return dim.stride[view] == 0 ? std::numeric_limits<std::int64_t>::max()
                                 : std::abs(dim.stride[view]);
  };
  std::stable_sort(dims.begin(), dims.end(),
                   [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  merge_dims(dims);
}

/// Makes `pack` neighbours along the innermost dimension one element. Elements behind the last
/// whole pack are left out.
template <std::size_t Views>
void pack_dims(WalkDims<Views>& dims, std::int64_t pack) {
  if (dims.empty()) return;
  dims[0].extent /= pack;
  for (std::int64_t& stride : dims[0].stride) stride *= pack;
  if (dims[0].extent == 1) dims.erase(dims.begin());
}

template <std::size_t Views>
std::int64_t count_elements(const WalkDims<Views>& dims) noexcept {
  std::int64_t count = 1;
  for (const auto& dim : dims) count *= dim.extent;
  return count;
}

/// A walk with no more dimensions than necessary.
template <std::size_t Dims = kWalkDims, typename Offset = std::int64_t, std::size_t Views>
Walk<Views, Dims, Offset> walk_parameter(const WalkDims<Views>& dims) {
  Walk<Views, Dims, Offset> walk{};
  walk.ndim = static_cast<std::int32_t>(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    walk.extent[d] = dims[d].extent;
    for (std::size_t v = 0; v < Views; ++v) {
      walk.stride[d][v] = static_cast<Offset>(dims[d].stride[v]);
    }
    // An index of 32 bits is below an extent that does not fit them.
    if (dims[d].extent < 1 || dims[d].extent > std::numeric_limits<std::int32_t>::max()) continue;
    const auto divisor = FastDivisor::make(static_cast<std::uint64_t>(dims[d].extent));
    walk.magic[d] = divisor.magic;
    walk.shift[d] = divisor.shift;
  }
  return walk;
}

/// Views in the order of their elements' numbers; a stride of 0 repeats elements. `base` is the
/// address, or any number to add strides to.
template <std::size_t Views>
struct WalkPlan {
  std::array<std::uint64_t, Views> base = {};
  WalkDims<Views> dims;

  void add(std::int64_t extent, const std::array<std::int64_t, Views>& stride) {
    add_dim(dims, {extent, stride});
  }

  std::int64_t count() const noexcept { return count_elements(dims); }

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
    pack_dims(dims, std::int64_t{1} << log2_unit);
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

  Walk<Views> parameter() const { return walk_parameter(dims); }

 private:
  /// Whether the dimension runs through the bytes of the views `moved` and is unmoved in all
  /// further views.
  static bool is_row(const WalkDim<Views>& dim, std::span<const std::size_t> moved) {
    std::size_t steps = 0;
    for (const std::int64_t stride : dim.stride) steps += stride != 0 ? 1 : 0;
    for (const std::size_t view : moved) {
      if (dim.stride[view] != 1) return false;
    }
    return steps == moved.size();
  }
};

/// Plans a walk over a target and a source of one shape, without 0 in it, by rising distance in the
/// target, where every stride is made positive. `inner` bytes of both, when given, lie inside of
/// each element. Throws InvalidArgument when the target has stride 0 over more than one element, as
/// threads would then write to the same place.
WalkPlan<2> plan_strided(std::uint64_t to, std::span<const std::int64_t> to_strides,
                         std::uint64_t from, std::span<const std::int64_t> from_strides,
                         std::span<const std::int64_t> shape, std::int64_t inner = 1);

/// One grid more than the count must still fit 32-bit numbers that are divided as above.
inline bool is_wide(std::int64_t count) {
  return count > std::numeric_limits<std::int32_t>::max() - (std::int64_t{1} << 30);
}

/// Blocks for `count` units, `per_block` each; the kernels' loops take what is left by `most`.
inline std::uint32_t walk_blocks(std::int64_t count, std::int64_t per_block,
                                 std::int64_t most = std::int64_t{1} << 19) {
  return static_cast<std::uint32_t>(std::min((count + per_block - 1) / per_block, most));
}

}  // namespace kernwright::kernels
