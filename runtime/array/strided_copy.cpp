// Gathering strided device memory: whole ranges where they are dense, halves of them where not.
#include "array/strided_copy.h"

#include "array/shape.h"
#include "core/device.h"
#include "memory/transfer.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kernwright {
namespace {

/// One loop of the copy. Strides in bytes; `from` is not negative, `to` may be.
struct Axis {
  std::int64_t extent;
  std::int64_t from;
  std::int64_t to;
};

/// Ranges up to this size travel whole: a copy of that size costs about as much as its start.
constexpr std::uint64_t kAlwaysWhole = std::uint64_t{128} << 10;
/// Larger ranges travel whole when at least one byte in so many belongs to the view ...
constexpr std::uint64_t kSparsest = 16;
/// ... up to this size, which bounds the staging memory.
constexpr std::uint64_t kLargestRange = std::uint64_t{32} << 20;

struct Gather {
  Device& device;
  std::size_t element;
  std::vector<unsigned char> staging;

  void transfer(std::vector<Axis> axes, CUdeviceptr from, unsigned char* to);
  bool is_plain(const std::vector<Axis>& axes) const noexcept;
  void scatter(std::span<const Axis> axes, const unsigned char* from, unsigned char* to) const;
};

std::uint64_t covered_bytes(const std::vector<Axis>& axes, std::size_t element) noexcept {
  std::uint64_t bytes = element;
  for (const Axis& axis : axes) bytes += static_cast<std::uint64_t>((axis.extent - 1) * axis.from);
  return bytes;
}

std::uint64_t useful_bytes(const std::vector<Axis>& axes, std::size_t element) noexcept {
  std::uint64_t bytes = element;
  for (const Axis& axis : axes) bytes *= static_cast<std::uint64_t>(axis.extent);
  return bytes;
}

/// Loops with the largest source stride first, and neighbours that are one loop on both sides
/// joined.
std::vector<Axis> order_axes(std::vector<Axis> axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.from > b.from; });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    if (!joined.empty()) {
      Axis& outer = joined.back();
      if (outer.from == axis.from * axis.extent && outer.to == axis.to * axis.extent) {
        outer = {outer.extent * axis.extent, axis.from, axis.to};
        continue;
      }
    }
    joined.push_back(axis);
  }
  return joined;
}

/// One contiguous block on both sides.
bool Gather::is_plain(const std::vector<Axis>& axes) const noexcept {
  const auto step = static_cast<std::int64_t>(element);
  return axes.empty() || (axes.size() == 1 && axes[0].from == step && axes[0].to == step);
}

void Gather::scatter(std::span<const Axis> axes, const unsigned char* from,
                     unsigned char* to) const {
  if (axes.empty()) {
    std::memcpy(to, from, element);
    return;
  }
  const Axis& axis = axes.front();
  for (std::int64_t i = 0; i < axis.extent; ++i) {
    if (axes.size() == 1) {
      std::memcpy(to + i * axis.to, from + i * axis.from, element);
    } else {
      scatter(axes.subspan(1), from + i * axis.from, to + i * axis.to);
    }
  }
}

void Gather::transfer(std::vector<Axis> axes, CUdeviceptr from, unsigned char* to) {
  if (is_plain(axes)) {
    copy_to_host(device, to, from, useful_bytes(axes, element));
    return;
  }
  const std::uint64_t range = covered_bytes(axes, element);
  const bool dense = useful_bytes(axes, element) >= range / kSparsest;
  if (range <= kAlwaysWhole || (dense && range <= kLargestRange)) {
    staging.resize(std::max<std::size_t>(staging.size(), range));
    copy_to_host(device, staging.data(), from, range);
    scatter(axes, staging.data(), to);
    return;
  }
  Axis& outer = axes.front();
  const std::int64_t half = outer.extent / 2;
  const std::int64_t from_step = outer.from;
  const std::int64_t to_step = outer.to;
  std::vector<Axis> rest = axes;
  outer.extent = half;
  rest.front().extent -= half;
  for (auto* part : {&axes, &rest}) {
    if (part->front().extent == 1) part->erase(part->begin());
  }
  transfer(std::move(axes), from, to);
  transfer(std::move(rest), from + static_cast<CUdeviceptr>(half * from_step), to + half * to_step);
}

}  // namespace

void copy_strided_to_host(Device& device, void* to, CUdeviceptr from,
                          std::span<const std::int64_t> shape,
                          std::span<const std::int64_t> strides, std::size_t element_size) {
  if (element_count(shape) == 0) return;
  const Shape rows = contiguous_strides(shape, element_size);
  auto* target = static_cast<unsigned char*>(to);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    Axis axis{shape[i], strides[i], rows[i]};
    if (axis.from < 0) {
      // Walk the axis from its other end, so that all source addresses grow.
      from += static_cast<CUdeviceptr>((axis.extent - 1) * axis.from);
      target += (axis.extent - 1) * axis.to;
      axis.from = -axis.from;
      axis.to = -axis.to;
    }
    axes.push_back(axis);
  }
  Gather{device, element_size, {}}.transfer(order_axes(std::move(axes)), from, target);
}

}  // namespace kernwright
