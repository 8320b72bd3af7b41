// Plans of products from rows of tables, and the rows of plans.
#include "kernels_src/products/product_plan.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace kernwright::kernels {
namespace {

ProductNumbers plan_numbers(const SkinnyPlan& plan) {
  return {"skinny",
          {static_cast<int>(plan.kernel), plan.warps, plan.rows, plan.unroll, plan.hint,
           plan.splits, plan.ahead, plan.stages}};
}
ProductNumbers plan_numbers(const WgmmaPlan& plan) {
  const GemmTile tile = plan.tile.value_or(GemmTile{});
  return {"gemm",
          {tile.rows, tile.columns, tile.stages, tile.groups, tile.ping_pong ? 1 : 0, tile.cluster,
           plan.splits, tile.split_k ? 1 : 0}};
}
ProductNumbers plan_numbers(const MmaPlan& plan) {
  const MmaTile tile = plan.tile.value_or(MmaTile{});
  return {"mma", {tile.rows, tile.columns, tile.stages, plan.splits}};
}
ProductNumbers plan_numbers(const FmaPlan& plan) {
  const FmaTile tile = plan.tile.value_or(FmaTile{});
  return {"fma",
          {tile.rows, tile.columns, tile.thread_rows, tile.thread_columns, tile.depth, tile.stages,
           plan.splits}};
}
ProductNumbers plan_numbers(const PlainPlan& /*plan*/) { return {"plain", {}}; }
ProductNumbers plan_numbers(const PackedPlan& /*plan*/) { return {"packed", {}}; }

}  // namespace

ProductNumbers product_numbers(const ProductRow& row) {
  if (!row) return {};
  return std::visit([](const auto& plan) { return plan_numbers(plan); }, *row);
}

std::optional<ProductRow> product_row(std::string_view kernel, std::span<const int> numbers) {
  if (numbers.size() > kMostProductNumbers) return std::nullopt;
  std::array<int, kMostProductNumbers> n{};
  std::ranges::copy(numbers, n.begin());
  if (kernel == "rule") return ProductRow{};
  if (kernel == "skinny") {
    SkinnyPlan plan;
    // A number that no kernel has is kept, so that is_product_plan() refuses it.
    plan.kernel = static_cast<SkinnyKernel>(std::clamp(n[0], 0, 255));
    plan.warps = n[1];
    plan.rows = n[2];
    plan.unroll = n[3];
    plan.hint = n[4];
    plan.splits = n[5];
    plan.ahead = n[6];
    plan.stages = n[7];
    return plan;
  }
  if (kernel == "gemm")
    return WgmmaPlan{GemmTile{n[0], n[1], n[2], n[3], n[4] != 0, n[5], n[7] != 0}, n[6]};
  if (kernel == "mma") return MmaPlan{MmaTile{n[0], n[1], n[2]}, n[3]};
  if (kernel == "fma") return FmaPlan{FmaTile{n[0], n[1], n[2], n[3], n[4], n[5]}, n[6]};
  return std::nullopt;
}

}  // namespace kernwright::kernels
