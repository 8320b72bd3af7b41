// Tensor maps: descriptors of the tensor copies of compute capability 9.0 and newer.
#pragma once

#include "base/scalar_type.h"
#include "core/arguments.h"
#include "driver/driver_api.h"
#include "driver/tensor_map_parameters.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// A tensor in device memory, axes in the order of an array's: elements along the last follow each
/// other. A tensor for maps with an interleave has one axis more than the map, its last: the
/// channels of a slice, 16 or 32 bytes together; N, C/8, H, W, 8 for NC/8HWC8.
struct TensorLayout {
  CUdeviceptr address = 0;
  CUtensorMapDataType data_type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> strides{};  ///< bytes; empty: row-major without gaps
  std::shared_ptr<const void> owner{};  ///< of the memory: held as long as a map lives
};

/// How a copy reads the tensor and lays it out in shared memory.
struct TensorMapOptions {
  std::vector<std::uint32_t> element_strides{};  ///< per axis; empty: every element
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill oob_fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

/// The part of a tensor of axes N, (D, (H,)) W and C for an im2col copy: pixels of a bounding box.
/// Its corners are given from the tensor's own corners on, in the order of its axes.
struct PixelBox {
  std::vector<std::int32_t> lower_corner{}, upper_corner{};  ///< one each for D, H and W
  std::uint32_t channels_per_pixel = 0;
  std::uint32_t pixels_per_column = 0;
};

/// The default data type of elements: 1-byte types are UINT8, int16 is UINT16. Throws
/// InvalidArgument for a type without tensor maps.
CUtensorMapDataType tensor_map_data_type(ScalarType type);

/// The 128 bytes that tensor copies want: pass it by value to a parameter
/// `const __grid_constant__ CUtensorMap map`. A value with a reference to the tensor's memory,
/// fixed but for its address. Distinct objects may be used from any threads.
class TensorMap {
 public:
  /// A map for copies of boxes of `box_dim` elements. Throws InvalidArgument with the rule of the
  /// driver that is broken and the values, DriverError on a device below 9.0.
  static TensorMap tiled(Device& device, const TensorLayout& tensor,
                         std::span<const std::uint32_t> box_dim,
                         const TensorMapOptions& options = {});
  /// A map for copies of im2col columns; throws as tiled() does.
  static TensorMap im2col(Device& device, const TensorLayout& tensor, const PixelBox& box,
                          const TensorMapOptions& options = {});

  /// The same map for a tensor elsewhere on the device. Throws InvalidArgument for an address that
  /// is not aligned as the map wants it, and changes nothing then.
  void replace_address(CUdeviceptr address, std::shared_ptr<const void> owner = {});

  const CUtensorMap& descriptor() const noexcept { return descriptor_; }
  std::span<const std::byte, kTensorMapBytes> bytes() const noexcept;
  /// The parameters given to the driver.
  const TensorMapParameters& parameters() const noexcept { return parameters_; }
  Device& device() const noexcept { return *device_; }
  /// Bytes of a load into shared memory: the count expected by its mbarrier.
  std::uint64_t box_bytes() const noexcept { return tensor_box_bytes(parameters_); }

  /// Equal descriptors on the same device.
  bool operator==(const TensorMap& other) const noexcept;
  /// "tensor map of FLOAT16 (128, 256), box (64, 64) on sim:0"
  std::string identify() const;

 private:
  TensorMap(Device& device, const TensorMapParameters& parameters,
            std::shared_ptr<const void> owner);
  void encode();

  CUtensorMap descriptor_{};
  TensorMapParameters parameters_;
  Device* device_;
  std::shared_ptr<const void> owner_;
};

template <>
struct KernelArgument<TensorMap> {
  static ArgumentView view(const TensorMap& map) {
    return {.kind = ArgumentView::Kind::bytes,
            .noun = "a tensor map",
            .data = &map.descriptor(),
            .size = sizeof map.descriptor(),
            .device = &map.device()};
  }
};

}  // namespace kernwright
