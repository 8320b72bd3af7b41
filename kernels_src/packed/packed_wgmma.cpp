// Launches of packed_wgmma.cu.
#include "kernels_src/packed/packed_wgmma.h"

#include "base/format.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/gemm/gemm_maps.h"
#include "kernels_src/packed/packed_wgmma.cu.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kernwright::kernels {
namespace {

const Family& packed_wgmma_family() {
  static const auto& made = *new Family("packed_wgmma.cu", text::packed_wgmma_cu);
  return made;
}

constexpr std::int64_t kUnitWordBytes = 2240;     ///< of a warp, as UnitWords
constexpr std::int64_t kPackedColumnBytes = 512;  ///< of a row of x and a unit of two blocks

std::string packed_wgmma_name(const PackedLinearCall& call, const SkinnyPlan& plan) {
  return format("packed_wgmma<{}, {}, {}, {}, {}, {}, {}, {}>", device_type(call.x.type()),
                packed_device_format(call.weights, call.x.type()), packed_activation(call),
                plan.warps, plan.columns, plan.stages, plan.unroll, plan.rows == kPackedSpread);
}

InstanceKey packed_wgmma_key(const PackedLinearCall& call, const SkinnyPlan& plan) {
  return packed_product_key(call, plan).add(packed_key(call.weights), kPackedKeyBits);
}

}  // namespace

int packed_wgmma_warps(const SkinnyPlan& plan) {
  const int arranging = plan.columns == 8 ? 3 : 1;  // as arrangers()
  return plan.warps * plan.unroll + 1 + (plan.rows == kPackedSpread ? 0 : arranging);
}

const char* packed_activation(const PackedLinearCall& call) {
  const ProductEpilogue& epilogue = call.epilogue;
  if (epilogue.gate) return activation_type(epilogue.gate->kind, call.x.type());
  return epilogue.activation ? activation_traits(epilogue.activation->kind).type : "Same";
}

InstanceKey packed_product_key(const PackedLinearCall& call, const SkinnyPlan& plan) {
  const ProductEpilogue& epilogue = call.epilogue;
  const auto& activation = epilogue.gate ? epilogue.gate : epilogue.activation;
  return InstanceKey()
      .type(call.x.type())
      .add(activation ? static_cast<int>(activation->kind) + 1 : 0, 5)
      .add(plan.warps, 6)
      .add(plan.rows, 3)
      .add(plan.columns, 5)
      .add(plan.unroll, 4)
      .add(std::max(0, plan.stages), 4)
      .add(epilogue.gate ? 2
           : call.norm   ? 1
                         : 0,
           2);
}

std::int64_t packed_wgmma_shared(const PackedWeights& w, const SkinnyPlan& plan) {
  const std::int64_t columns = std::int64_t{8} * plan.columns;
  const std::int64_t stage =
      (columns * kPackedColumnBytes + plan.warps * packed_stage_bytes(w) + 1023) / 1024 * 1024;
  const std::int64_t accumulators = plan.unroll * columns * (16 * plan.warps + 4) * 4;
  const std::int64_t scale_bytes = w.parts[4] ? 1024 : 0;
  const std::int64_t table = scale_bytes + (w.traits().has_table ? kPairTableBytes : 0);
  const std::int64_t words =
      w.traits().has_unit_scales ? plan.unroll * plan.warps * kUnitWordBytes : 0;
  return std::max(plan.stages * stage, accumulators) + plan.stages * 32 + 16 + table + words;
}

Array packed_wgmma_columns(const Array& x, const Stream& on) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
  const std::int64_t apart = x.strides()[0];
  return x.shape()[0] == 1 || (apart > 0 && apart < kMostBytes) ? x : copy(x, on);
}

CUtensorMap packed_wgmma_map(const Array& x, const SkinnyPlan& plan) {
  const std::int64_t rows = x.shape()[0];
  return gemm_map(x.device(), {.address = x.address(),
                               .shape = {1, 1, rows, x.shape()[1]},
                               .strides = {0, 0, rows > 1 ? x.strides()[0] : 0, 2},
                               .type = x.type(),
                               .tma_rows = static_cast<std::uint32_t>(8 * plan.columns)});
}

const LazyKernel& packed_wgmma_kernel(const PackedLinearCall& call, const SkinnyPlan& plan) {
  return packed_wgmma_family().instance(packed_wgmma_key(call, plan),
                                        [&] { return packed_wgmma_name(call, plan); });
}

}  // namespace kernwright::kernels
