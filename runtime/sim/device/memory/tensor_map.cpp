// Driver functions of tensor maps: the rules of driver/tensor_map_parameters.h, the bytes of
// sim/tensor_map.h.
#include "sim/tensor_map.h"
#include "sim/device/profile.h"
#include "sim/device/sim_driver.h"

#include <cstring>

namespace kernwright::sim {
namespace {

/// The driver's own minimum; the type's declaration asks for more.
constexpr std::uintptr_t kMapAlignment = 64;

void check_target(const CUtensorMap* map) {
  current_context();
  require(device_profile().is_90, CUDA_ERROR_NOT_SUPPORTED);
  require(map != nullptr && reinterpret_cast<std::uintptr_t>(map) % kMapAlignment == 0);
}

void store(CUtensorMap* map, const TensorMapParameters& parameters) {
  require(check_tensor_map(parameters).empty());
  const auto bytes = encode_tensor_map(parameters);
  std::memcpy(map->opaque, bytes.data(), bytes.size());
}

/// The parameters common to both kinds of map.
TensorMapParameters common(CUtensorMapDataType type, cuuint32_t rank, void* address,
                           const cuuint64_t* extents, const cuuint64_t* strides,
                           const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                           CUtensorMapFloatOOBfill oob_fill) {
  require(rank >= 1 && rank <= static_cast<cuuint32_t>(kMaxTensorRank));
  require(extents != nullptr && element_strides != nullptr && (strides != nullptr || rank == 1));
  require(oob_fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
          oob_fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  TensorMapParameters map;
  map.address = reinterpret_cast<std::uintptr_t>(address);
  map.rank = static_cast<int>(rank);
  map.type = type;
  for (std::size_t i = 0; i < rank; ++i) {
    map.extent[i] = extents[i];
    map.step[i] = element_strides[i];
    if (i > 0) map.stride[i] = strides[i - 1];
  }
  map.interleave = interleave;
  map.swizzle = swizzle;
  map.l2_promotion = l2_promotion;
  map.fills_nan = oob_fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  return map;
}

}  // namespace

void calls::cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                   void* address, const cuuint64_t* extents,
                                   const cuuint64_t* strides, const cuuint32_t* box,
                                   const cuuint32_t* element_strides,
                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                   CUtensorMapL2promotion l2_promotion,
                                   CUtensorMapFloatOOBfill oob_fill) {
  check_target(map);
  require(box != nullptr);
  TensorMapParameters parameters = common(type, rank, address, extents, strides, element_strides,
                                          interleave, swizzle, l2_promotion, oob_fill);
  for (std::size_t i = 0; i < rank; ++i) parameters.box[i] = box[i];
  store(map, parameters);
}

void calls::cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                    void* address, const cuuint64_t* extents,
                                    const cuuint64_t* strides, const int* lower_corner,
                                    const int* upper_corner, cuuint32_t channels, cuuint32_t pixels,
                                    const cuuint32_t* element_strides,
                                    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                    CUtensorMapL2promotion l2_promotion,
                                    CUtensorMapFloatOOBfill oob_fill) {
  check_target(map);
  require(lower_corner != nullptr && upper_corner != nullptr && rank >= 3);
  TensorMapParameters parameters = common(type, rank, address, extents, strides, element_strides,
                                          interleave, swizzle, l2_promotion, oob_fill);
  parameters.im2col = true;
  parameters.box[0] = channels;
  parameters.pixels = pixels;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    parameters.lower[i] = lower_corner[i];
    parameters.upper[i] = upper_corner[i];
  }
  store(map, parameters);
}

void calls::cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  check_target(map);
  std::array<std::byte, kTensorMapBytes> bytes;
  std::memcpy(bytes.data(), map->opaque, bytes.size());
  auto parameters = decode_tensor_map(bytes.data());
  require(parameters.has_value());
  parameters->address = reinterpret_cast<std::uintptr_t>(address);
  store(map, *parameters);
}

}  // namespace kernwright::sim
