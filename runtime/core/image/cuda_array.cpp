// Making CUDA arrays and filling them.
#include "core/image/cuda_array.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/device_limits.h"
#include "core/graph/capture.h"
#include "core/transfer_counts.h"

#include <algorithm>
#include <utility>

namespace kernwright {
namespace {

struct FormatName {
  ScalarType type;
  CUarray_format format;
};

constexpr FormatName kFormats[] = {
    {ScalarType::uint8, CU_AD_FORMAT_UNSIGNED_INT8},
    {ScalarType::uint16, CU_AD_FORMAT_UNSIGNED_INT16},
    {ScalarType::uint32, CU_AD_FORMAT_UNSIGNED_INT32},
    {ScalarType::int8, CU_AD_FORMAT_SIGNED_INT8},
    {ScalarType::int16, CU_AD_FORMAT_SIGNED_INT16},
    {ScalarType::int32, CU_AD_FORMAT_SIGNED_INT32},
    {ScalarType::float16, CU_AD_FORMAT_HALF},
    {ScalarType::float32, CU_AD_FORMAT_FLOAT},
};

[[noreturn]] void refuse(const std::string& problem) {
  throw InvalidArgument("a CUDA array cannot be made: " + problem);
}

/// Axes of the array's shape: layers or faces count as one.
std::size_t shape_axes(const CudaArrayOptions& options, std::size_t given) {
  if (options.cubemap && given != 3) refuse(format("a cubemap has 3 axes, not {}", given));
  if (options.layered && (given < 2 || given > 3))
    refuse(format("a layered array has 2 or 3 axes, not {}", given));
  if (given < 1 || given > 3) refuse(format("an array has 1 to 3 axes, not {}", given));
  return given;
}

CUDA_ARRAY3D_DESCRIPTOR describe(std::span<const std::int64_t> shape, ScalarType type,
                                 const CudaArrayOptions& options) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  const std::size_t axes = shape_axes(options, shape.size());
  for (std::size_t axis = 0; axis < axes; ++axis) {
    if (shape[axis] < 1) refuse(format("axis {}: an extent of {} is below 1", axis, shape[axis]));
  }
  const auto extent = [&](std::size_t axis) { return static_cast<std::size_t>(shape[axis]); };
  d.Width = extent(axes - 1);
  if (axes == 3) {
    d.Depth = extent(0);
    d.Height = extent(1);
  } else if (axes == 2) {
    (options.layered ? d.Depth : d.Height) = extent(0);
  }
  d.Format = texel_format(type);
  d.NumChannels = options.channels;
  d.Flags = (options.layered ? kArrayLayered : 0) | (options.cubemap ? kArrayCubemap : 0) |
            (options.surface ? kArraySurface : 0) | (options.gather ? kArrayGather : 0);
  return d;
}

CUarray array_handle(std::uint64_t handle) { return reinterpret_cast<CUarray>(handle); }

std::string array_label(const CUDA_ARRAY3D_DESCRIPTOR& d, const Device& device) {
  const std::string_view type = scalar_name(texel_type(d.Format));
  return format("{}, {} x {} on {}", describe_array(d), d.NumChannels, type, device.label());
}

}  // namespace

CUarray_format texel_format(ScalarType type) {
  for (const FormatName& known : kFormats) {
    if (known.type == type) return known.format;
  }
  throw InvalidArgument(
      format("a CUDA array or texture has no elements of {}: they are integers of 8 to 32 bits, "
             "float16 or float32",
             scalar_name(type)));
}

ScalarType texel_type(CUarray_format type) noexcept {
  for (const FormatName& known : kFormats) {
    if (known.format == type) return known.type;
  }
  return ScalarType::uint8;
}

CudaArray::CudaArray(Device& device, std::span<const std::int64_t> shape, ScalarType type,
                     const CudaArrayOptions& options)
    : descriptor_(describe(shape, type, options)) {
  const std::string wrong = check_array(descriptor_, LimitsReader(device));
  if (!wrong.empty()) refuse(wrong);
  CUarray handle = nullptr;
  std::string name = array_label(descriptor_, device);
  const ContextGuard guard(device);
  const RelaxedCapture relaxed(device);
  device.check(device.driver().cuArray3DCreate(&handle, &descriptor_), "cuArray3DCreate", name);
  const auto destroy = [](const DriverApi& api, std::uint64_t gone) {
    return api.cuArrayDestroy(array_handle(gone));
  };
  object_ =
      track_object(device, reinterpret_cast<std::uintptr_t>(handle), destroy, std::move(name));
}

CUarray CudaArray::handle() const noexcept { return array_handle(object_->handle()); }

std::vector<std::int64_t> CudaArray::shape() const {
  std::vector<std::int64_t> shape;
  for (const std::size_t extent : {descriptor_.Depth, descriptor_.Height, descriptor_.Width}) {
    if (extent != 0) shape.push_back(static_cast<std::int64_t>(extent));
  }
  return shape;
}

std::size_t CudaArray::bytes() const noexcept {
  const CUDA_MEMCPY3D box = whole();
  return box.WidthInBytes * box.Height * box.Depth;
}

CUDA_MEMCPY3D CudaArray::whole() const noexcept {
  CUDA_MEMCPY3D box{};
  box.WidthInBytes = descriptor_.Width * texel_bytes(descriptor_.Format, descriptor_.NumChannels);
  box.Height = std::max<std::size_t>(descriptor_.Height, 1);
  box.Depth = std::max<std::size_t>(descriptor_.Depth, 1);
  box.srcPitch = box.dstPitch = box.WidthInBytes;
  box.srcHeight = box.dstHeight = box.Height;
  box.srcArray = box.dstArray = handle();
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  return box;
}

void CudaArray::copy(const CUDA_MEMCPY3D& box, const Stream& stream) const {
  Device& owner = device();
  if (stream && &stream.device() != &owner)
    throw InvalidArgument(format("{} cannot be copied on {}", identify(), stream.identify()));
  const ContextGuard guard(owner);
  owner.check(owner.driver().cuMemcpy3DAsync(&box, stream.handle()), "cuMemcpy3DAsync",
              object_->name());
  use_on(stream);
}

void CudaArray::wait_for(const CUDA_MEMCPY3D& box, const Stream& stream, const char* call) const {
  const Stream user = stream ? stream : Stream::legacy(device());
  {
    const ContextGuard guard(device());
    refuse_in_capture(device(), user.handle(), call);
  }
  copy(box, user);
  user.synchronize();
}

void CudaArray::copy_from_host(const void* from, const Stream& stream) {
  CUDA_MEMCPY3D box = whole();
  box.srcMemoryType = CU_MEMORYTYPE_HOST;
  box.srcHost = from;
  wait_for(box, stream, "a copy of host memory to a CUDA array");
  count_transfer(device(), TransferWay::to_device, bytes());
}

void CudaArray::copy_to_host(void* to, const Stream& stream) const {
  CUDA_MEMCPY3D box = whole();
  box.dstMemoryType = CU_MEMORYTYPE_HOST;
  box.dstHost = to;
  wait_for(box, stream, "a copy of a CUDA array to host memory");
  count_transfer(device(), TransferWay::to_host, bytes());
}

void CudaArray::copy_from_device(CUdeviceptr from, const Stream& stream) {
  CUDA_MEMCPY3D box = whole();
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from;
  copy(box, stream);
}

void CudaArray::copy_to_device(CUdeviceptr to, const Stream& stream) const {
  CUDA_MEMCPY3D box = whole();
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = to;
  copy(box, stream);
}

std::string CudaArray::identify() const { return object_->name(); }

}  // namespace kernwright
