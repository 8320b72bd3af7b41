// Tensor maps: from an array's axes to the driver's dimensions, checked before the driver is asked.
#include "core/image/tensor_map.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace kernwright {
namespace {

std::string list(const auto& values, std::size_t count) {
  std::string text = "(";
  for (std::size_t i = count; i-- > 0;) text += format("{}{}", values[i], i == 0 ? "" : ", ");
  return text + ")";
}

void require_count(const char* what, std::size_t count, std::size_t wanted) {
  if (count == wanted) return;
  throw InvalidArgument(
      format("a tensor map wants {} values for its {}, got {}", wanted, what, count));
}

[[noreturn]] void refuse_map(const std::string& problem) {
  throw InvalidArgument("a tensor map cannot be made: " + problem);
}

void require_tensor_copies(Device& device) {
  const ComputeCapability capability = device.compute_capability();
  if (capabilities_of(capability).tma) return;
  throw DriverError(
      format("tensor maps need a device of compute capability 9.0 or newer: {} has {}.{}{}",
             device.identify(), capability.major, capability.minor,
             device.is_simulated() ? "; set KERNWRIGHT_SIM_CAPABILITY=9.0" : ""),
      CUDA_ERROR_NOT_SUPPORTED, result_name(CUDA_ERROR_NOT_SUPPORTED));
}

/// The axes of the array that are dimensions of the map: all but the axis of a slice.
std::size_t count_dimensions(const TensorLayout& tensor, bool has_slices) {
  const std::size_t axes = tensor.shape.size();
  if (!has_slices) {
    if (axes >= 1 && axes <= kMaxTensorRank) return axes;
    refuse_map(format("a tensor has 1 to {} axes, not {}", kMaxTensorRank, axes));
  }
  if (axes >= 4 && axes <= kMaxTensorRank + 1) return axes - 1;
  refuse_map(
      format("with an interleave a tensor has 4 to {} axes, the last that of a slice, not {}",
             kMaxTensorRank + 1, axes));
}

/// The last axis of an array for an interleaved map.
void require_slices(const TensorLayout& tensor, const TensorMapParameters& map) {
  const std::size_t axis = tensor.shape.size() - 1;
  const std::int64_t element = tensor_element_bytes(map.type);
  const std::int64_t slice = tensor_slice_bytes(map);
  if (tensor.shape[axis] != slice / element)
    refuse_map(
        format("axis {}: {} elements of {} byte{}: with that interleave the last axis is a "
               "slice of {} bytes",
               axis, tensor.shape[axis], element, element == 1 ? "" : "s", slice));
}

constexpr std::int64_t kLongestStride = std::int64_t{1} << 39;  ///< half the driver's limit

/// Strides in bytes, dimension 0 first. Those of extents of 1 are never used, and are set to values
/// accepted by the driver.
void set_strides(const TensorLayout& tensor, TensorMapParameters& map) {
  const std::size_t axes = tensor.shape.size();
  const std::int64_t element = tensor_element_bytes(map.type);
  const std::int64_t slice = tensor_slice_bytes(map);
  const std::int64_t unit = slice == 0 ? 16 : slice;
  std::int64_t next = element;
  for (std::size_t axis = axes; axis-- > 0;) {
    // The last axis has no gaps; where it is a slice, neither has the one before.
    const bool is_last = axis + 1 == axes;
    const std::int64_t dense = is_last ? element : axis + 2 == axes ? slice : 0;
    std::int64_t stride = tensor.strides.empty() ? next : tensor.strides[axis];
    next = stride * tensor.shape[axis];
    if (tensor.shape[axis] == 1) {
      // The view of one element along a reversed or a very long axis has any stride.
      const std::int64_t near = std::clamp<std::int64_t>(stride, 0, kLongestStride);
      stride = dense != 0 ? dense : (near / unit + 1) * unit;
    }
    if (dense != 0 && stride != dense)
      refuse_map(format(
          "axis {}: {} must follow each other, {} bytes apart, not {}: pass a copy of the array",
          axis, is_last ? "elements of the last axis" : "slices", dense, stride));
    if (stride < 0) refuse_map(format("axis {}: a stride of {} bytes is negative", axis, stride));
    if (dense == 0)
      map.stride[static_cast<std::size_t>(map.rank) - 1 - axis] =
          static_cast<std::uint64_t>(stride);
  }
}

TensorMapParameters common(const TensorLayout& tensor, const TensorMapOptions& options) {
  TensorMapParameters map;
  map.interleave = options.interleave;
  const bool has_slices = tensor_slice_bytes(map) != 0;
  const std::size_t axes = tensor.shape.size(), rank = count_dimensions(tensor, has_slices);
  if (!tensor.strides.empty()) require_count("strides", tensor.strides.size(), axes);
  if (!options.element_strides.empty())
    require_count("element strides", options.element_strides.size(), axes);
  map.address = tensor.address;
  map.rank = static_cast<int>(rank);
  map.type = tensor.data_type;
  map.swizzle = options.swizzle;
  map.l2_promotion = options.l2_promotion;
  map.fills_nan = options.oob_fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = rank - 1 - i;
    if (tensor.shape[axis] < 0)
      refuse_map(format("axis {}: an extent of {} is negative", axis, tensor.shape[axis]));
    map.extent[i] = static_cast<std::uint64_t>(tensor.shape[axis]);
    map.step[i] = options.element_strides.empty() ? 1 : options.element_strides[axis];
  }
  if (tensor_element_bytes(map.type) == 0) return map;  // refused later
  if (has_slices) require_slices(tensor, map);
  set_strides(tensor, map);
  return map;
}

void require_valid(const TensorMapParameters& map) {
  std::string wrong = check_tensor_map(map);
  if (wrong.empty()) wrong = check_slices(map);
  if (!wrong.empty()) refuse_map(wrong);
}

/// The enumerator without what all of them begin with.
std::string type_name(int type) {
  constexpr std::string_view kPrefix = "CU_TENSOR_MAP_DATA_TYPE_";
  for (const DriverEnumerator& row : driver_enumerators()) {
    if (std::string_view(row.type) == "CUtensorMapDataType" && row.value == type)
      return std::string(std::string_view(row.name).substr(kPrefix.size()));
  }
  return format("type {}", type);
}

}  // namespace

CUtensorMapDataType tensor_map_data_type(ScalarType type) {
  switch (type) {
    case ScalarType::int16:
    case ScalarType::uint16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case ScalarType::int32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case ScalarType::uint32:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case ScalarType::int64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case ScalarType::uint64:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    case ScalarType::float16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case ScalarType::bfloat16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case ScalarType::float32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case ScalarType::float64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    default:
      if (scalar_size(type) == 1) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
      throw InvalidArgument(
          format("a tensor map has no elements of {}: view the memory as a type "
                 "of 1 to 8 bytes that is not complex",
                 scalar_name(type)));
  }
}

TensorMap::TensorMap(Device& device, const TensorMapParameters& parameters,
                     std::shared_ptr<const void> owner)
    : parameters_(parameters), device_(&device), owner_(std::move(owner)) {
  encode();
}

TensorMap TensorMap::tiled(Device& device, const TensorLayout& tensor,
                           std::span<const std::uint32_t> box_dim,
                           const TensorMapOptions& options) {
  require_tensor_copies(device);
  TensorMapParameters map = common(tensor, options);
  require_count("box", box_dim.size(), tensor.shape.size());
  const auto rank = static_cast<std::size_t>(map.rank);
  if (rank < box_dim.size() && box_dim[rank] != tensor.shape[rank])
    refuse_map(format("axis {}: a copy takes whole slices of {} elements, not {}", rank,
                      tensor.shape[rank], box_dim[rank]));
  std::reverse_copy(box_dim.begin(), box_dim.begin() + map.rank, map.box.begin());
  require_valid(map);
  return {device, map, tensor.owner};
}

TensorMap TensorMap::im2col(Device& device, const TensorLayout& tensor, const PixelBox& box,
                            const TensorMapOptions& options) {
  require_tensor_copies(device);
  TensorMapParameters map = common(tensor, options);
  if (map.rank < 3) refuse_map(format("im2col takes tensors of 3 to 5 axes, not {}", map.rank));
  const std::size_t corners = static_cast<std::size_t>(map.rank) - 2;
  require_count("lower corner", box.lower_corner.size(), corners);
  require_count("upper corner", box.upper_corner.size(), corners);
  map.im2col = true;
  map.box[0] = box.channels_per_pixel;
  map.pixels = box.pixels_per_column;
  std::reverse_copy(box.lower_corner.begin(), box.lower_corner.end(), map.lower.begin());
  std::reverse_copy(box.upper_corner.begin(), box.upper_corner.end(), map.upper.begin());
  require_valid(map);
  return {device, map, tensor.owner};
}

void TensorMap::encode() {
  const TensorMapParameters& map = parameters_;
  const ContextGuard guard(*device_);
  const DriverApi& api = device_->driver();
  const auto type = static_cast<CUtensorMapDataType>(map.type);
  const auto rank = static_cast<cuuint32_t>(map.rank);
  void* const address = reinterpret_cast<void*>(map.address);
  const auto interleave = static_cast<CUtensorMapInterleave>(map.interleave);
  const auto swizzle = static_cast<CUtensorMapSwizzle>(map.swizzle);
  const auto promotion = static_cast<CUtensorMapL2promotion>(map.l2_promotion);
  const auto fill = map.fills_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                                  : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  if (map.im2col) {
    const CUresult result = api.cuTensorMapEncodeIm2col(
        &descriptor_, type, rank, address, map.extent.data(), map.stride.data() + 1,
        map.lower.data(), map.upper.data(), map.box[0], map.pixels, map.step.data(), interleave,
        swizzle, promotion, fill);
    if (result != CUDA_SUCCESS) device_->fail(result, "cuTensorMapEncodeIm2col", identify());
  } else {
    const CUresult result = api.cuTensorMapEncodeTiled(
        &descriptor_, type, rank, address, map.extent.data(), map.stride.data() + 1, map.box.data(),
        map.step.data(), interleave, swizzle, promotion, fill);
    if (result != CUDA_SUCCESS) device_->fail(result, "cuTensorMapEncodeTiled", identify());
  }
}

void TensorMap::replace_address(CUdeviceptr address, std::shared_ptr<const void> owner) {
  TensorMapParameters moved = parameters_;
  moved.address = address;
  require_valid(moved);
  CUtensorMap changed = descriptor_;
  {
    const ContextGuard guard(*device_);
    const CUresult result = device_->driver().cuTensorMapReplaceAddress(
        &changed, reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)));
    if (result != CUDA_SUCCESS) device_->fail(result, "cuTensorMapReplaceAddress", identify());
  }
  descriptor_ = changed;
  parameters_ = moved;
  owner_ = std::move(owner);
}

std::span<const std::byte, kTensorMapBytes> TensorMap::bytes() const noexcept {
  return std::as_bytes(std::span<const CUtensorMap, 1>(&descriptor_, 1));
}

bool TensorMap::operator==(const TensorMap& other) const noexcept {
  return device_ == other.device_ &&
         std::memcmp(&descriptor_, &other.descriptor_, sizeof descriptor_) == 0;
}

std::string TensorMap::identify() const {
  const TensorMapParameters& map = parameters_;
  const auto rank = static_cast<std::size_t>(map.rank);
  const std::string box = map.im2col
                              ? format("im2col of {} channels, {} pixels", map.box[0], map.pixels)
                              : "box " + list(map.box, rank);
  const std::uint32_t slice = tensor_slice_bytes(map);
  return format("tensor map of {} {}{}, {} on {}", type_name(map.type), list(map.extent, rank),
                slice == 0 ? "" : format(" of slices of {} bytes", slice), box, device_->label());
}

}  // namespace kernwright
