// The instances of gemm.cu and finish_product.cu, and what their parameters begin with.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"
#include "jit/program.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/gemm/gemm.h"

#include <cstdint>

namespace kernwright::kernels {

/// As in include/product_epilogue.cuh.
struct GemmEpilogueValues {
  CUdeviceptr bias = 0, c = 0;
  float alpha = 1, beta = 1;
  Knobs<float> knobs{ActivationCall{}};
};
GemmEpilogueValues gemm_epilogue_values(const GemmEpilogue& epilogue);

/// `Store` of gemm.cu.
enum class GemmStore : std::uint8_t { by_copies, by_elements, direct };

struct GemmInstance {
  ScalarType in, out;
  GemmTile tile;
  bool turn_a, turn_b;
  GemmStore store;
};
const LazyKernel& gemm_kernel(const GemmInstance& of, const GemmEpilogue& epilogue);

struct MmaInstance {
  ScalarType in, out;
  MmaTile tile;
  bool turn_a, turn_b;
};
const LazyKernel& mma_kernel(const MmaInstance& of, const GemmEpilogue& epilogue);

/// `Way` of fma_gemm.cu.
enum class FmaWay : std::uint8_t { packs, across, along };

struct FmaInstance {
  ScalarType in, out;
  FmaTile tile;
  FmaWay way_a, way_b;
};
const LazyKernel& fma_kernel(const FmaInstance& of, const GemmEpilogue& epilogue);

/// float16 or bfloat16.
bool is_half_float(ScalarType type) noexcept;
/// Whether gemm.cu has the activation or gate, where it is compiled once for each sum of a thread.
bool has_short_epilogue(const GemmEpilogue& epilogue);

/// Adds up `parts` of sums, which are of so many times the size of `result`, in their order, and
/// does what follows.
void finish_sums(const Array& sums, const Array& result, const GemmEpilogue& epilogue, int parts,
                 const Stream& on);

}  // namespace kernwright::kernels
