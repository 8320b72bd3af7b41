// A strided n-dimensional view over device memory. No arithmetic here.
#pragma once

#include "base/scalar_type.h"
#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

class Device;

using Shape = std::vector<std::int64_t>;

/// Number of elements; throws InvalidArgument on a negative extent or on overflow of 64 bits.
std::int64_t element_count(std::span<const std::int64_t> shape);
/// Row-major strides in bytes.
Shape contiguous_strides(std::span<const std::int64_t> shape, std::size_t element_size);

/// Shared reference to memory plus shape and strides (bytes, as NumPy's). Views made by slice(),
/// transpose() and reshape() keep the memory alive. Element 0 is at address(), whatever the strides.
class Array {
 public:
  Array() = default;
  /// Uninitialised memory from the device's default resource.
  static Array empty(Device& device, Shape shape, ScalarType type, const Stream& stream = {});
  /// A copy of host data laid out row-major.
  static Array from_host(Device& device, const void* data, Shape shape, ScalarType type);
  /// Memory that somebody else owns; `owner` is held as long as any view lives.
  static Array adopt(Device& device, CUdeviceptr address, Shape shape, Shape strides, ScalarType type,
                     std::shared_ptr<void> owner, bool read_only = false);

  const Shape& shape() const noexcept { return shape_; }
  const Shape& strides() const noexcept { return strides_; }  ///< bytes
  ScalarType type() const noexcept { return type_; }
  Device& device() const;
  CUdeviceptr address() const noexcept { return address_; }
  int ndim() const noexcept { return static_cast<int>(shape_.size()); }
  std::int64_t size() const noexcept { return size_; }        ///< elements
  std::size_t nbytes() const noexcept;                        ///< size() * element size
  bool is_contiguous() const noexcept;                        ///< row-major without gaps
  bool read_only() const noexcept { return read_only_; }
  const std::shared_ptr<void>& owner() const noexcept { return owner_; }

  /// Views. Throw InvalidArgument with both shapes when they cannot be made without a copy.
  Array reshape(Shape shape) const;                           ///< one extent may be -1
  Array transpose(std::span<const int> axes) const;
  /// NumPy's basic slicing of one axis: `count` elements from `start` in steps of `step`.
  Array slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const;
  Array drop_axis(int axis, std::int64_t index) const;
  Array insert_axis(int axis) const;

  /// Row-major copy to the host; any strides. Blocks.
  void to_host(void* data) const;
  /// Row-major copy from the host into this view; contiguous only. Blocks.
  void assign_from_host(const void* data);

  /// "float32 array of shape (3, 4) on cuda:0"
  std::string identify() const;

 private:
  std::shared_ptr<void> owner_;
  Device* device_ = nullptr;
  CUdeviceptr address_ = 0;
  Shape shape_, strides_;
  ScalarType type_ = ScalarType::float32;
  std::int64_t size_ = 0;
  bool read_only_ = false;
};

}  // namespace kernwright
