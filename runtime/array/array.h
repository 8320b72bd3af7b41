// A strided n-dimensional view over device memory. No arithmetic here.
#pragma once

#include "array/shape.h"
#include "base/scalar_type.h"
#include "core/launch/launch_site.h"
#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kernwright {

class Buffer;
class Capture;
class Device;

/// Shared reference to memory plus shape and strides (bytes, as NumPy's). Views made by slice(),
/// transpose() and reshape() keep the memory alive. Element 0 is at address(), whatever the
/// strides. Distinct objects may be used from any threads, also when they share memory.
class Array {
 public:
  Array() = default;
  /// Uninitialised memory from the device's default resource, in the order of `stream`; charged to
  /// `site` in reports of memory.
  static Array empty(Device& device, Shape shape, ScalarType type, const Stream& stream = {},
                     const LaunchSite& site = LaunchSite::here());
  /// All of `buffer`, row-major from its beginning; `owner` holds it as long as any view lives.
  /// Throws InvalidArgument when the buffer is too small.
  static Array over(std::shared_ptr<void> owner, Buffer& buffer, Shape shape, ScalarType type);
  /// A copy of host data laid out row-major. Returns when the data is on the device: usable on
  /// every stream.
  static Array from_host(Device& device, const void* data, Shape shape, ScalarType type);
  /// Memory of another owner; `owner` is held as long as any view lives. Strides in bytes. Throws
  /// InvalidArgument for strides of another rank, a null address with elements behind it, an
  /// address or strides that are not multiples of the element size.
  static Array adopt(Device& device, CUdeviceptr address, Shape shape, Shape strides,
                     ScalarType type, std::shared_ptr<void> owner, bool read_only = false);

  const Shape& shape() const noexcept { return shape_; }
  const Shape& strides() const noexcept { return strides_; }  ///< bytes
  ScalarType type() const noexcept { return type_; }
  /// Throws InvalidArgument for a default-constructed Array.
  Device& device() const {
    if (device_ == nullptr) [[unlikely]]
      refuse_empty();
    return *device_;
  }
  CUdeviceptr address() const noexcept { return address_; }
  int ndim() const noexcept { return static_cast<int>(shape_.size()); }
  std::int64_t size() const noexcept { return size_; }         ///< elements
  std::size_t nbytes() const noexcept;                         ///< size() * element size
  bool is_contiguous() const noexcept { return contiguous_; }  ///< row-major without gaps
  bool read_only() const noexcept { return read_only_; }
  /// Whether it stands for a number of the host, whose value may change between launches of a
  /// graph: in elementwise operations it takes the type of the arrays beside it. Views of it do
  /// not.
  bool is_number() const noexcept { return is_number_; }
  /// The same array, of one element, as such a number.
  Array as_number() const;
  /// An array of the same shape, strides, type and device at the address 0, without memory: to be
  /// asked for these alone.
  Array outline() const;
  /// An array of the same shape and type without a device: whoever uses it gets InvalidArgument.
  Array parked() const;
  const std::shared_ptr<void>& owner() const noexcept { return owner_; }

  /// Views. Throw InvalidArgument with both shapes when they cannot be made without a copy.
  Array reshape(Shape shape) const;  ///< one extent may be -1
  Array transpose(std::span<const int> axes) const;
  Array transpose() const;  ///< all axes reversed
  /// NumPy's basic slicing of one axis: `count` elements from `start` in steps of `step`.
  /// Everything must lie inside: the caller has clipped the bounds already.
  Array slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const;
  Array drop_axis(int axis, std::int64_t index) const;  ///< `index` may count from the end
  /// Element i of the last axis is [i, i + offset] of two axes, which go. They must differ.
  Array diagonal(std::int64_t offset, int first, int second) const;
  Array insert_axis(int axis) const;  ///< of extent 1, before axis `axis`
  /// NumPy's broadcasting: more axes in front, and those of extent 1 stretched with stride 0.
  Array broadcast(const Shape& shape) const;
  /// The same bytes as elements of `type`, as NumPy has it: with elements of another size the last
  /// axis, which must have no gaps then, grows or shrinks. Throws InvalidArgument if the bytes do
  /// not divide, or if memory or strides are not aligned for `type`.
  Array view(ScalarType type) const;

  /// Row-major copy to the host; any strides. Waits for the work of `stream` (empty: of the legacy
  /// stream), and blocks.
  void to_host(void* data, const Stream& stream = {}) const;
  /// Row-major copy from the host into this view; contiguous only. Waits for the work of `stream`,
  /// and blocks.
  void assign_from_host(const void* data, const Stream& stream = {});

  /// Tells that the work queued on `stream` so far uses the memory. The memory is not reused before
  /// the end of this work. No effect on memory of other owners. See Buffer::use_on.
  void use_on(const Stream& stream) const;
  /// The same for a stream that `capture` records: the graph keeps the memory, unless it owns it
  /// already. Calls no driver.
  void hold_in(Capture& capture, const Stream& stream) const;
  /// Frees memory that nothing else uses, where that needs no word to the driver and no wait for
  /// another thread: the array may only be destroyed then. Else returns false and changes nothing.
  bool try_release() noexcept;

  /// "float32 array of shape (3, 4) on cuda:0"
  std::string identify() const;

 private:
  [[noreturn]] static void refuse_empty();
  Array view(CUdeviceptr address, Shape shape, Shape strides) const;
  void lay_out(Shape shape, Shape strides, ScalarType type);

  std::shared_ptr<void> owner_;
  Buffer* buffer_ = nullptr;  ///< inside owner_, when the memory is ours
  Device* device_ = nullptr;
  CUdeviceptr address_ = 0;
  Shape shape_, strides_;
  ScalarType type_ = ScalarType::float32;
  std::int64_t size_ = 0;
  bool contiguous_ = true;
  bool read_only_ = false;
  bool is_number_ = false;
};

}  // namespace kernwright
