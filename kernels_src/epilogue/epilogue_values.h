// How a kernel gets the epilogue of a product: parameters, and a type in the instance's name.
#pragma once

#include "driver/driver_api.h"
#include "kernels_src/epilogue/product_epilogue.h"
#include "kernels_src/family.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kernwright::kernels {

/// As in include/product/product_epilogue.cuh.
struct ProductScales {
  CUdeviceptr data = 0;
  std::int32_t step = 0;
};
struct ProductEpilogueValues {
  CUdeviceptr bias = 0, c = 0;
  std::int64_t c_row = 0, c_batch = 0;
  CUdeviceptr column_scales = 0;
  std::int32_t column_step = 0;
  float alpha = 1;
};
struct TileEpilogueValues : ProductEpilogueValues {
  ProductScales row_scales{};
  float beta = 1;
  Knobs<float> knobs{ActivationCall{}};
};
/// The parameters for an epilogue of ready_epilogue(), of kernels of few rows and of tiles. Rows of
/// the residual have no gaps between their elements.
ProductEpilogueValues epilogue_values(const ProductEpilogue& epilogue);
TileEpilogueValues tile_epilogue_values(const ProductEpilogue& epilogue);

/// The function of accumulators, by itself or as a gate.
const std::optional<ActivationCall>& epilogue_activation(const ProductEpilogue& epilogue);
/// "Epilogue<Silu, BFloat16, true>"; `activation` is the struct of the function.
std::string epilogue_type(const ProductEpilogue& epilogue, const char* activation,
                          bool one_scale = false);
/// epilogue_type() with the struct for kernels of tiles.
std::string tile_epilogue_type(const ProductEpilogue& epilogue, bool one_scale = false);
/// Adds what tells the types apart, but for one_scale.
void add_epilogue(InstanceKey& key, const ProductEpilogue& epilogue);

/// Whether all accumulators have one scale, which gemm.cu and promoted_gemm.cu then read once.
bool has_one_scale(const ProductEpilogue& epilogue);
/// Whether gemm.cu has the activation or gate, where it is compiled once for each sum of a thread.
bool has_short_epilogue(const ProductEpilogue& epilogue);

}  // namespace kernwright::kernels
