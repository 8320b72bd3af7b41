// The affine part of norms for the kernels: weight and bias, of elements or of channels.
#pragma once

#include "kernels_src/norm/norm.h"

#include <initializer_list>
#include <optional>

namespace kernwright::kernels {

/// The kernels' parameter of that name (include/norm/norm_rows.cuh).
struct AffineArguments {
  CUdeviceptr weight = 0;
  CUdeviceptr bias = 0;
  std::int32_t groups = 1;
  std::int32_t per_row = 1;
  std::int32_t spatial = 1;
};
static_assert(sizeof(AffineArguments) == 32);

AffineArguments affine_arguments(const std::optional<Array>& weight,
                                 const std::optional<Array>& bias, const NormShape& shape);

/// The widest pack up to `pack` that weight and bias allow.
int affine_pack(int pack, const std::optional<Array>& weight, const std::optional<Array>& bias,
                const NormShape& shape);

void use_all_on(const Stream& stream, std::initializer_list<const Array*> arrays,
                std::initializer_list<const std::optional<Array>*> optional_arrays);

}  // namespace kernwright::kernels
