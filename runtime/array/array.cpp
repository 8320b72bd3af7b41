// Arrays: memory by shape, and views that never copy.
#include "array/array.h"

#include "array/array_source.h"
#include "array/strided_copy.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "memory/buffer.h"

#include <algorithm>
#include <utility>

namespace kernwright {
namespace {

thread_local ArraySource* current_source = nullptr;

std::size_t byte_count(std::span<const std::int64_t> shape, std::size_t element_size) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(element_count(shape), static_cast<std::int64_t>(element_size),
                             &bytes)) {
    throw InvalidArgument(format("shape {}: more than 2^63 bytes", shape_to_string(shape)));
  }
  return static_cast<std::size_t>(bytes);
}

/// Whether address and strides are multiples of an element's size, a power of two, as all kernels
/// read them; those of an array without elements may be any.
bool is_aligned(CUdeviceptr address, const Shape& shape, const Shape& strides,
                std::size_t element) {
  std::uint64_t bits = address;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return true;
    bits |= static_cast<std::uint64_t>(strides[axis]);
  }
  return (bits & (element - 1)) == 0;
}

}  // namespace

ArraySourceScope::ArraySourceScope(ArraySource* source) noexcept
    : previous_(std::exchange(current_source, source)) {}

ArraySourceScope::~ArraySourceScope() { current_source = previous_; }

Array Array::empty(Device& device, Shape shape, ScalarType type, const Stream& stream,
                   const LaunchSite& site) {
  const std::size_t bytes = byte_count(shape, scalar_size(type));
  if (ArraySource* const source = current_source) [[unlikely]] {
    const ArraySourceScope outside(nullptr);
    return source->make(device, std::move(shape), type, stream);
  }
  auto buffer = std::make_shared<Buffer>(default_resource(device), bytes, stream, site);
  Buffer& memory = *buffer;
  return over(std::move(buffer), memory, std::move(shape), type);
}

Array Array::over(std::shared_ptr<void> owner, Buffer& buffer, Shape shape, ScalarType type) {
  const std::size_t element = scalar_size(type);
  const std::size_t bytes = byte_count(shape, element);
  if (bytes > buffer.bytes()) {
    throw InvalidArgument(format("an array of shape {} needs {} bytes, the buffer has {}",
                                 shape_to_string(shape), bytes, buffer.bytes()));
  }
  Array array;
  array.device_ = &buffer.device();
  array.address_ = buffer.address();
  array.size_ = element_count(shape);
  array.strides_ = contiguous_strides(shape, element);
  array.shape_ = std::move(shape);
  array.type_ = type;
  array.buffer_ = &buffer;
  array.owner_ = std::move(owner);
  return array;
}

Array Array::from_host(Device& device, const void* data, Shape shape, ScalarType type) {
  Array array = empty(device, std::move(shape), type);
  array.assign_from_host(data);
  return array;
}

Array Array::adopt(Device& device, CUdeviceptr address, Shape shape, Shape strides, ScalarType type,
                   std::shared_ptr<void> owner, bool read_only) {
  const std::size_t element = scalar_size(type);
  if (strides.size() != shape.size()) {
    throw InvalidArgument(format("shape {} has {} dimensions, but strides {} have {}",
                                 shape_to_string(shape), shape.size(), shape_to_string(strides),
                                 strides.size()));
  }
  byte_count(shape, element);
  byte_range(shape, strides, element);
  if (address == 0 && element_count(shape) != 0) {
    throw InvalidArgument(
        format("an array of shape {} cannot be at address 0", shape_to_string(shape)));
  }
  if (!is_aligned(address, shape, strides, element)) {
    throw InvalidArgument(format(
        "a {} array of shape {} cannot be at address {:#x} with strides {}, which must be "
        "multiples of {} bytes: copy it with the library that made it",
        scalar_name(type), shape_to_string(shape), address, shape_to_string(strides), element));
  }
  Array array;
  array.owner_ = std::move(owner);
  array.device_ = &device;
  array.address_ = address;
  array.lay_out(std::move(shape), std::move(strides), type);
  array.read_only_ = read_only;
  return array;
}

void Array::refuse_empty() {
  throw InvalidArgument(
      "an array without memory: a scheduler keeps its content for a model (keep()), on or off the "
      "device; use the array in a task of that model (submit(..., model=)) or in a block "
      "`with kept:`. An array that was never made has no memory, either");
}

bool Array::try_release() noexcept {
  const bool is_last = buffer_ != nullptr && owner_.get() == buffer_ && owner_.use_count() == 1;
  return is_last && buffer_->try_release();
}

void Array::lay_out(Shape shape, Shape strides, ScalarType type) {
  size_ = element_count(shape);
  contiguous_ = strides_are_contiguous(shape, strides, scalar_size(type));
  shape_ = std::move(shape);
  strides_ = std::move(strides);
  type_ = type;
}

std::size_t Array::nbytes() const noexcept {
  return static_cast<std::size_t>(size_) * scalar_size(type_);
}

Array Array::parked() const {
  Array result = outline();
  result.device_ = nullptr;
  result.read_only_ = false;  // a write is refused as a read is: there is no device
  return result;
}

Array Array::outline() const {
  Array result;
  result.device_ = device_;
  result.shape_ = shape_;
  result.strides_ = strides_;
  result.type_ = type_;
  result.size_ = size_;
  result.contiguous_ = contiguous_;
  result.read_only_ = true;
  return result;
}

Array Array::as_number() const {
  if (ndim() != 0) throw InvalidArgument(identify() + " has axes: a number has none");
  Array result = *this;
  result.is_number_ = true;
  return result;
}

Array Array::view(CUdeviceptr address, Shape shape, Shape strides) const {
  Array result;
  result.owner_ = owner_;
  result.buffer_ = buffer_;
  result.device_ = device_;
  result.address_ = address;
  result.lay_out(std::move(shape), std::move(strides), type_);
  result.read_only_ = read_only_;
  return result;
}

Array Array::reshape(Shape shape) const {
  Shape resolved = resolve_reshape(shape_, std::move(shape));
  auto strides = reshape_strides(shape_, strides_, resolved, scalar_size(type_));
  if (!strides) {
    throw InvalidArgument(
        format("cannot reshape {} with strides {} into {} without a copy: copy the array first",
               shape_to_string(shape_), shape_to_string(strides_), shape_to_string(resolved)));
  }
  return view(address_, std::move(resolved), std::move(*strides));
}

Array Array::transpose(std::span<const int> axes) const {
  const auto refuse = [&](const char* why) {
    return InvalidArgument(format("cannot transpose an array of shape {} by {} axes: {}",
                                  shape_to_string(shape_), axes.size(), why));
  };
  if (axes.size() != shape_.size()) throw refuse("each axis must be named once");
  Shape shape;
  Shape strides;
  std::vector<bool> seen(shape_.size(), false);
  for (const int given : axes) {
    const int axis = normalize_axis(given, ndim());
    if (seen[axis]) throw refuse("an axis is named twice");
    seen[axis] = true;
    shape.push_back(shape_[axis]);
    strides.push_back(strides_[axis]);
  }
  return view(address_, std::move(shape), std::move(strides));
}

Array Array::transpose() const {
  return view(address_, Shape(shape_.rbegin(), shape_.rend()),
              Shape(strides_.rbegin(), strides_.rend()));
}

Array Array::slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const {
  axis = normalize_axis(axis, ndim());
  const std::int64_t extent = shape_[axis];
  std::int64_t last = start;
  const bool overflow = count > 1 && (__builtin_mul_overflow(count - 1, step, &last) ||
                                      __builtin_add_overflow(last, start, &last));
  const bool inside = start >= 0 && start < extent && last >= 0 && last < extent;
  if (step == 0 || count < 0 || (count > 0 && (overflow || !inside))) {
    throw InvalidArgument(format(
        "cannot slice axis {} of shape {}: {} elements from {} in steps of {} do not lie inside",
        axis, shape_to_string(shape_), count, start, step));
  }
  Shape shape = shape_;
  Shape strides = strides_;
  shape[axis] = count;
  // With one element at most the step has no say; it may be too large to be multiplied.
  if (count > 1) strides[axis] *= step;
  const std::int64_t offset = count > 0 ? start * strides_[axis] : 0;
  return view(address_ + static_cast<CUdeviceptr>(offset), std::move(shape), std::move(strides));
}

Array Array::drop_axis(int axis, std::int64_t index) const {
  axis = normalize_axis(axis, ndim());
  const std::int64_t extent = shape_[axis];
  if (index < -extent || index >= extent) {
    throw InvalidArgument(
        format("index {} is out of bounds for axis {} with size {}", index, axis, extent));
  }
  if (index < 0) index += extent;
  Shape shape = shape_;
  Shape strides = strides_;
  shape.erase(shape.begin() + axis);
  strides.erase(strides.begin() + axis);
  const bool has_elements = size_ != 0;
  const std::int64_t offset = has_elements ? index * strides_[axis] : 0;
  return view(address_ + static_cast<CUdeviceptr>(offset), std::move(shape), std::move(strides));
}

Array Array::diagonal(std::int64_t offset, int first, int second) const {
  first = normalize_axis(first, ndim());
  second = normalize_axis(second, ndim());
  if (first == second) {
    throw InvalidArgument(format("a diagonal needs two different axes, got {} twice", first));
  }
  offset = std::clamp(offset, -shape_[first], shape_[second]);
  const std::int64_t skipped_first = std::max<std::int64_t>(0, -offset);
  const std::int64_t skipped_second = std::max<std::int64_t>(0, offset);
  const std::int64_t length = std::max<std::int64_t>(
      0, std::min(shape_[first] - skipped_first, shape_[second] - skipped_second));
  const std::int64_t begin = size_ == 0 || length == 0 ? 0
                                                       : skipped_first * strides_[first] +
                                                             skipped_second * strides_[second];
  Shape shape = shape_;
  Shape strides = strides_;
  shape.push_back(length);
  strides.push_back(strides_[first] + strides_[second]);
  for (const int axis : {std::max(first, second), std::min(first, second)}) {
    shape.erase(shape.begin() + axis);
    strides.erase(strides.begin() + axis);
  }
  return view(address_ + static_cast<CUdeviceptr>(begin), std::move(shape), std::move(strides));
}

Array Array::insert_axis(int axis) const {
  axis = normalize_axis(axis, ndim() + 1);
  Shape shape = shape_;
  Shape strides = strides_;
  shape.insert(shape.begin() + axis, 1);
  strides.insert(strides.begin() + axis, static_cast<std::int64_t>(scalar_size(type_)));
  return view(address_, std::move(shape), std::move(strides));
}

Array Array::broadcast(const Shape& shape) const {
  const auto fail = [&]() {
    throw InvalidArgument(format("an array of shape {} does not broadcast to shape {}",
                                 shape_to_string(shape_), shape_to_string(shape)));
  };
  if (shape_.size() > shape.size()) fail();
  const std::size_t missing = shape.size() - shape_.size();
  Shape strides(shape.size(), 0);
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    if (shape_[i] == shape[missing + i]) {
      strides[missing + i] = strides_[i];
    } else if (shape_[i] != 1) {
      fail();
    }
  }
  return view(address_, shape, std::move(strides));
}

Array Array::view(ScalarType type) const {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument(format("cannot view {} as {}: {}", identify(), scalar_name(type), why));
  };
  const auto from = static_cast<std::int64_t>(scalar_size(type_));
  const auto to = static_cast<std::int64_t>(scalar_size(type));
  Array result = *this;
  if (from != to) {
    if (shape_.empty()) {
      throw refuse(
          format("an array without axes cannot change its element size from {} to {} bytes: "
                 "reshape(1) it first",
                 from, to));
    }
    const std::int64_t extent = shape_.back();
    if (extent != 1 && size_ != 0 && strides_.back() != from) {
      throw refuse("the last axis has gaps: view a copy of it");
    }
    // In units of the smaller size nothing can overflow: the array has these bytes already.
    const bool divides = from > to ? from % to == 0 : (extent % (to / from)) == 0;
    if (!divides) {
      throw refuse(
          format("the last axis has {} elements of {} bytes, which is no whole number of "
                 "{} bytes",
                 extent, from, to));
    }
    result.shape_.back() = from > to ? extent * (from / to) : extent / (to / from);
    result.strides_.back() = to;
  }
  for (std::size_t axis = 0; axis < result.shape_.size(); ++axis) {
    if (result.shape_[axis] == 1 && result.strides_[axis] % to != 0) result.strides_[axis] = 0;
  }
  if (!is_aligned(address_, result.shape_, result.strides_, scalar_size(type))) {
    throw refuse(
        format("its address {:#x} and strides {} must be multiples of {} bytes; view a "
               "copy of it",
               address_, shape_to_string(strides_), to));
  }
  result.lay_out(std::move(result.shape_), std::move(result.strides_), type);
  return result;
}

void Array::to_host(void* data, const Stream& stream) const {
  if (size_ == 0) return;
  if (stream) stream.synchronize();
  copy_strided_to_host(device(), data, address_, shape_, strides_, scalar_size(type_));
}

void Array::assign_from_host(const void* data, const Stream& stream) {
  if (read_only_) throw InvalidArgument(format("{} is read-only", identify()));
  if (!is_contiguous()) {
    throw InvalidArgument(
        format("{} with strides {} is not contiguous: data from the host can only be copied into a "
               "contiguous array",
               identify(), shape_to_string(strides_)));
  }
  if (size_ == 0) return;
  if (stream) stream.synchronize();
  copy_to_device(device(), address_, data, nbytes());
}

void Array::use_on(const Stream& stream) const {
  if (any_capture()) {
    if (const auto capture = find_capture(stream)) return hold_in(*capture, stream);
  }
  if (buffer_ != nullptr) buffer_->use_on(stream);
}

void Array::hold_in(Capture& capture, const Stream& stream) const {
  if (buffer_ == nullptr || !buffer_->is_kept_by(capture, stream)) capture.keep_alive(owner_);
}

std::string Array::identify() const {
  return format("{} array of shape {} on {}", scalar_name(type_), shape_to_string(shape_),
                device_ == nullptr ? "no device" : device_->label());
}

}  // namespace kernwright
