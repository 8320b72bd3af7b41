// The device of the kernel library's tests, and arrays with a copy of their bytes.
#pragma once

#include "array/array.h"
#include "core/device.h"
#include "core/runtime.h"
#include "driver/nvrtc_loader.h"
#include "sim/device.h"
#include "unit/site_packages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace kernwright::test {

/// The device of KERNWRIGHT_DEVICE: the first GPU, or the simulated device. After a reset its new
/// object.
inline Device& device() {
  static Device& chosen = [&]() -> Device& {
    Runtime::register_sim(&sim::driver_api);
    set_site_packages({testing::site_packages()});
    return Runtime::get().current_device();
  }();
  return chosen.newest();
}

/// A new array with bytes counting up from 1 in steps of 7: no two neighbours are alike.
inline Array patterned(Shape shape, ScalarType type) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(element_count(shape)) *
                                   scalar_size(type));
  unsigned char next = 1;
  for (unsigned char& byte : bytes) byte = next = static_cast<unsigned char>(next * 5 + 7);
  return Array::from_host(device(), bytes.data(), std::move(shape), type);
}

/// All bytes of the memory from `address`, read in one piece.
inline std::vector<unsigned char> raw_bytes(CUdeviceptr address, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  const Array all = Array::adopt(device(), address, {static_cast<std::int64_t>(size)}, {1},
                                 ScalarType::uint8, nullptr);
  all.to_host(bytes.data());
  return bytes;
}

/// Calls visit(byte offset) for each element of a view in row-major order.
inline void for_each_offset(const Shape& shape, const Shape& strides,
                            const std::function<void(std::int64_t)>& visit) {
  Shape index(shape.size(), 0);
  for (const std::int64_t extent : shape) {
    if (extent == 0) return;
  }
  while (true) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) offset += index[d] * strides[d];
    visit(offset);
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// The elements of `view`, row-major, picked out of the bytes `base` beginning at `origin`.
inline std::vector<unsigned char> gathered(const Array& view, CUdeviceptr origin,
                                           const std::vector<unsigned char>& base) {
  std::vector<unsigned char> result;
  const std::size_t size = scalar_size(view.type());
  for_each_offset(view.shape(), view.strides(), [&](std::int64_t offset) {
    const std::size_t at =
        static_cast<std::size_t>(view.address() - origin) + static_cast<std::size_t>(offset);
    result.insert(result.end(), base.begin() + static_cast<std::ptrdiff_t>(at),
                  base.begin() + static_cast<std::ptrdiff_t>(at + size));
  });
  return result;
}

/// The bytes of a row-major array.
inline std::vector<unsigned char> bytes_of(const Array& array) {
  std::vector<unsigned char> bytes(array.nbytes());
  array.to_host(bytes.data());
  return bytes;
}

/// A random view: some axes cut, stepped, reversed, dropped, and all of them permuted.
inline Array random_view(Array array, std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int axis = 0; axis < array.ndim(); ++axis) {
    const std::int64_t extent = array.shape()[static_cast<std::size_t>(axis)];
    if (extent == 0 || pick(0, 2) == 0) continue;
    const std::int64_t step = pick(1, 3);
    const std::int64_t start = pick(0, extent - 1);
    const bool back = pick(0, 1) == 1;
    const std::int64_t room = back ? start : extent - 1 - start;
    array = array.slice(axis, start, room / step + 1, back ? -step : step);
  }
  if (array.ndim() > 1 && pick(0, 3) == 0) array = array.drop_axis(0, 0);
  std::vector<int> axes(static_cast<std::size_t>(array.ndim()));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  std::shuffle(axes.begin(), axes.end(), random);
  return array.transpose(axes);
}

}  // namespace kernwright::test
