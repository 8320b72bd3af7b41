// The plan of a matrix product, and the row of a plan in a table.
#pragma once

#include "kernels_src/gemm/gemm_plan.h"
#include "kernels_src/plans/skinny_plan.h"
#include "kernels_src/products/product_key.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace kernwright::kernels {

/// A kernel of packed/, which plan_packed() chooses. No table has one.
struct PackedPlan {
  SkinnyPlan kernel{};
  bool operator==(const PackedPlan&) const = default;
};

/// The kernel of a product and the kernel's template parameters.
using ProductPlan = std::variant<SkinnyPlan, WgmmaPlan, MmaPlan, FmaPlan, PlainPlan, PackedPlan>;
/// The choice of a table for a product. Nothing: the rules decide.
using ProductRow = std::optional<ProductPlan>;

/// A row as tables write it: the name of a kernel and its numbers.
///   skinny  gemv/skinny.h: kernel, warps, rows, unroll, hint, splits, ahead, stages
///   gemm    gemm.cu: rows, columns, stages, groups, ping_pong, cluster, splits, split_k
///   mma     mma_gemm.cu: rows, columns, stages, splits
///   fma     fma_gemm.cu: rows, columns, rows and columns of a thread, depth, stages, splits
struct ProductNumbers {
  std::string_view kernel = "rule";
  std::vector<int> numbers{};
};
constexpr std::size_t kMostProductNumbers = 8;

ProductNumbers product_numbers(const ProductRow& row);
/// The row of at most kMostProductNumbers numbers; absent ones are 0. Nothing for an unknown
/// kernel or more numbers.
std::optional<ProductRow> product_row(std::string_view kernel, std::span<const int> numbers);

/// Whether the kernel of the plan takes the plan's numbers for the product.
bool is_product_plan(const ProductPlan& plan, const ProductKey& key) noexcept;
/// Whether a plan of another shape in the bucket suits this product: a tile of wgmma only if the
/// modelled time is hardly longer than for the rule's tile, as whole waves of tiles differ. No
/// plan suits whose numbers the kernel does not take.
bool suits_product(const Device& device, const ProductKey& key, const ProductPlan& plan);
/// Plans worth a measurement on the device, the best by the models in front.
std::vector<ProductPlan> product_candidates(const Device& device, const ProductKey& key);

}  // namespace kernwright::kernels
