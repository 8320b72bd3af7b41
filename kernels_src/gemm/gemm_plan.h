// The plans of matrix products by tiles: what a caller of Gemm decides before it runs.
#pragma once

#include "kernels_src/gemm/fma/fma_choice.h"
#include "kernels_src/gemm/gemm_tile.h"
#include "kernels_src/gemm/mma/mma_choice.h"

#include <optional>
#include <variant>

namespace kernwright::kernels {

/// gemm.cu and promoted_gemm.cu. The model of the kernel (choose_gemm) chooses an absent tile, and
/// splits of 0.
struct WgmmaPlan {
  std::optional<GemmTile> tile{};
  int splits = 0;  ///< of the inner dimension
  bool operator==(const WgmmaPlan&) const = default;
};

/// mma_gemm.cu; choose_mma() chooses what is absent or 0.
struct MmaPlan {
  std::optional<MmaTile> tile{};
  int splits = 0;
  bool operator==(const MmaPlan&) const = default;
};

/// fma_gemm.cu; choose_fma() chooses what is absent or 0.
struct FmaPlan {
  std::optional<FmaTile> tile{};
  int splits = 0;
  bool operator==(const FmaPlan&) const = default;
};

/// The kernel of all types, matmul.cu.
struct PlainPlan {
  bool operator==(const PlainPlan&) const = default;
};

using GemmPlan = std::variant<WgmmaPlan, MmaPlan, FmaPlan, PlainPlan>;

}  // namespace kernwright::kernels
