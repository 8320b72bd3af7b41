// Plans of products to measure, and plans allowed in a table.
#include "base/errors.h"
#include "core/device.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/products/product_plan.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace kernwright::kernels {
namespace {

constexpr std::size_t kMostKernelPlans = 16;
constexpr std::int64_t kMostFloatRows = 16;

/// A plan and the time by a model.
struct Candidate {
  ProductPlan plan;
  double cost;
};

bool is_promoted(const ProductKey& key) {
  return key.accumulation == ProductAccumulation::promoted ||
         key.accumulation == ProductAccumulation::blocks;
}
/// Products of integers have no split-K.
bool is_whole(const ProductKey& key) { return key.a == ScalarType::int8; }

/// Whether gemm.cu or promoted_gemm.cu make the product. Products of integers and of float8 are not
/// rounded to the operands' type there, as matmul() does.
bool has_gemm(const ProductKey& key) {
  const bool is_float = is_half(key.out) || key.out == ScalarType::float32;
  if (is_float8(key.a)) {
    return is_float8(key.b) && is_float && key.accumulation != ProductAccumulation::tf32;
  }
  if (is_whole(key) && !is_float && key.out != ScalarType::int32) return false;
  if (key.a != key.b || is_promoted(key)) return false;
  if (key.a == ScalarType::float32) return key.accumulation == ProductAccumulation::tf32;
  return key.accumulation == ProductAccumulation::plain && (is_half(key.a) || is_whole(key));
}

/// Whether fma_gemm.cu does.
bool is_fma_type(const ProductKey& key) {
  const bool exact = key.a == ScalarType::float32 || key.a == ScalarType::float64;
  return exact && key.a == key.b && key.accumulation == ProductAccumulation::plain;
}

GemmSize size_of(const Device& device, const ProductKey& key) {
  return {.rows = key.rows,
          .columns = key.columns,
          .inner = key.inner,
          .batches = key.batches,
          .multiprocessors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
          .bandwidth = memory_bandwidth(device),
          .out_bytes = scalar_size(key.out),
          .in_bytes = scalar_size(key.a),
          .promotes = is_promoted(key),
          .block_scales = key.accumulation == ProductAccumulation::blocks,
          .whole = is_whole(key),
          .b_turned = key.b_turned,
          .gated = key.gated};
}

std::size_t shared_bytes(const Device& device) {
  return static_cast<std::size_t>(
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
}

/// The cheapest by the models, none of which costs twice as much as the first.
void keep_best(std::vector<Candidate>& all, std::vector<ProductPlan>& plans) {
  std::ranges::stable_sort(all, {}, &Candidate::cost);
  for (std::size_t i = 0; i < std::min(all.size(), kMostKernelPlans); ++i) {
    if (all[i].cost > 2 * all[0].cost) break;
    plans.push_back(all[i].plan);
  }
}

/// The splits that the model would take, none, half and twice as many.
std::vector<int> splits_near(int modelled, std::int64_t inner, bool may_split) {
  std::vector<int> all = {modelled};
  if (!may_split) return {1};
  for (const int splits : {1, modelled * 2, modelled / 2}) {
    const bool known = std::ranges::find(all, splits) != all.end();
    if (splits >= 1 && splits <= 64 && inner / splits >= 128 && !known) all.push_back(splits);
  }
  return all;
}

/// For the tiles of gemm.cu: of contiguous operands, whose lines lie along the inner dimension
/// unless they are 16-bit floats.
GemmSize make_gemm_size(const Device& device, const ProductKey& key) {
  GemmSize size = size_of(device, key);
  const auto pitch = [&](std::int64_t extent) {
    return operand_pitch(extent * static_cast<std::int64_t>(size.in_bytes));
  };
  const bool any = is_half(key.a);
  size.b_turned = key.b_turned || !any;
  size.a_pitch = pitch(any && key.a_turned ? key.rows : key.inner);
  size.b_pitch = pitch(size.b_turned ? key.inner : key.columns);
  return size;
}

void add_gemm(const Device& device, const ProductKey& key, std::vector<ProductPlan>& plans) {
  const GemmSize size = make_gemm_size(device, key);
  const bool may_split = !key.gated && !size.whole;
  std::vector<Candidate> all;
  const auto add = [&](const GemmTile& tile, int splits) {
    all.push_back({WgmmaPlan{tile, splits}, gemm_cost(size, choose_gemm(size, tile, splits))});
  };
  for (const GemmTile& tile : split_k_tiles(size.block_scales)) {
    if (!key.gated || tile.columns % 128 == 0) add(tile, 1);
  }
  for (const GemmTile& tile : gemm_tiles(size.promotes, size.block_scales)) {
    if (key.gated && tile.columns % 128 != 0) continue;
    const int modelled = choose_gemm(size, tile, may_split ? 0 : 1).splits;
    for (const int splits : splits_near(modelled, key.inner, may_split)) {
      add(tile, splits);
    }
  }
  keep_best(all, plans);
}

void add_mma(const Device& device, const ProductKey& key, std::vector<ProductPlan>& plans) {
  const auto element = static_cast<std::int64_t>(scalar_size(key.a));
  const GemmSize size = size_of(device, key);
  for (MmaTile tile : mma_tiles()) {
    if (shared_bytes(device) <= std::size_t{100} * 1024) tile.stages = 3;
    const bool may_split = key.a != ScalarType::int8;
    const int modelled = choose_mma(size, (key.inner * element + 63) / 64, tile, may_split).splits;
    for (const int splits : splits_near(modelled, key.inner, may_split)) {
      plans.push_back(MmaPlan{tile, splits});
    }
  }
}

void add_fma(const Device& device, const ProductKey& key, std::vector<ProductPlan>& plans) {
  GemmSize size = size_of(device, key);
  size.out_bytes = scalar_size(key.a);
  const std::size_t shared = shared_bytes(device);
  std::vector<Candidate> all;
  for (const FmaTile& tile : fma_tiles(size.out_bytes)) {
    const int modelled = choose_fma(size, shared, tile, 0).splits;
    for (const int splits : splits_near(modelled, key.inner, true)) {
      all.push_back(
          {FmaPlan{tile, splits}, fma_cost(size, shared, choose_fma(size, shared, tile, splits))});
    }
  }
  keep_best(all, plans);
}

/// All that is not given is the kernel's own choice.
ProductPlan skinny_by(SkinnyKernel kernel, int warps = 0, int splits = 0) {
  return SkinnyPlan{.kernel = kernel, .warps = warps, .splits = splits};
}

/// Kernels with their own choices, and with more or fewer splits. Weights with neighbours along the
/// inner dimension are turned columns of b.
void add_skinny(const ProductKey& key, bool may_use_tma, std::vector<ProductPlan>& plans) {
  const std::int64_t most = key.a == ScalarType::float32 ? kMostFloatRows : kSkinnyRows;
  if ((!is_half(key.a) && key.a != ScalarType::float32) || key.out != key.a || key.gated) return;
  if (key.rows > most || key.columns * key.inner < 16384) return;
  std::vector<SkinnyKernel> kernels;
  if (!key.b_turned) {
    if (is_half(key.a)) kernels.push_back(SkinnyKernel::column_tiles);
    if (!is_half(key.a) || key.rows <= 8) kernels.push_back(SkinnyKernel::columns);
  } else {
    if (is_half(key.a)) kernels = {SkinnyKernel::tiles, SkinnyKernel::staged};
    if (!is_half(key.a) || key.rows <= 4) kernels.push_back(SkinnyKernel::dot);
  }
  const bool bytes = scalar_size(key.b) == 1;
  if (may_use_tma && is_half(key.a) && bytes && key.b_turned)
    kernels.push_back(SkinnyKernel::bytes);
  if (may_use_tma && is_half(key.a) && !bytes) kernels.push_back(SkinnyKernel::wgmma);
  for (const SkinnyKernel kernel : kernels) {
    for (const int splits : {0, 1, 2, 4, 8}) {
      plans.push_back(skinny_by(kernel, 0, splits));
    }
    plans.push_back(skinny_by(kernel, kernel == SkinnyKernel::bytes ? 16 : 4));
  }
  if (key.b_turned && is_half(key.a) && key.rows == 1 && bytes) {
    plans.push_back(skinny_by(SkinnyKernel::row));
  }
}

bool fits(const SkinnyPlan& plan, const ProductKey& key) {
  const auto within = [](int value, int least, int most) {
    return value >= least && value <= most;
  };
  if (key.accumulation != ProductAccumulation::plain || key.out != key.a) return false;
  const auto kernel = static_cast<int>(plan.kernel);
  const bool has_bytes = scalar_size(key.b) == 1 && key.b_turned && is_half(key.a);
  const bool bytes = plan.kernel == SkinnyKernel::bytes;
  if (plan.kernel == SkinnyKernel::row && (key.rows != 1 || scalar_size(key.b) != 1)) return false;
  if (bytes && !has_bytes) return false;
  const bool known = within(kernel, 1, 10) && kernel != 9 && plan.kernel != SkinnyKernel::ring;
  return known && !key.gated && key.rows <= kSkinnyRows &&
         (plan.warps == 0 || plan.warps == 4 || plan.warps == 8 || (bytes && plan.warps == 16)) &&
         within(plan.rows, 0, 2) && within(plan.unroll, 0, 4) && within(plan.hint, -1, 2) &&
         within(plan.splits, 0, 8) && within(plan.ahead, -1, 16) &&
         within(plan.stages, 0, plan.kernel == SkinnyKernel::wgmma ? 8 : 4);
}

bool is_split_count(int count) { return count >= 1 && count <= 64; }

bool fits(const WgmmaPlan& plan, const ProductKey& key) {
  require_gemm_tile(plan.tile.value(), is_promoted(key),
                    key.accumulation == ProductAccumulation::blocks);
  return has_gemm(key) && is_split_count(plan.splits) && (!is_whole(key) || plan.splits == 1) &&
         (!key.gated || plan.tile->columns % 128 == 0);
}
bool fits(const MmaPlan& plan, const ProductKey& key) {
  require_mma_tile(plan.tile.value());
  return is_half(key.a) && is_split_count(plan.splits) && !key.gated;
}
bool fits(const FmaPlan& plan, const ProductKey& key) {
  require_fma_tile(plan.tile.value(), scalar_size(key.a));
  return is_fma_type(key) && is_split_count(plan.splits);
}
bool fits(const PlainPlan& /*plan*/, const ProductKey& /*key*/) { return true; }
bool fits(const PackedPlan& /*plan*/, const ProductKey& /*key*/) { return false; }

constexpr double kHardlyLonger = 1.05;

}  // namespace

std::vector<ProductPlan> product_candidates(const Device& device, const ProductKey& key) {
  std::vector<ProductPlan> all;
  if (std::min({key.rows, key.columns, key.inner, key.batches}) < 1) return all;
  const Capabilities can = device.capabilities();
  if (key.accumulation == ProductAccumulation::plain) add_skinny(key, can.wgmma, all);
  if (is_fma_type(key)) {
    if (can.async_copy) add_fma(device, key, all);
  } else if (has_gemm(key)) {
    if (can.wgmma) add_gemm(device, key, all);
    if (is_half(key.a) && can.bf16 && !key.gated) add_mma(device, key, all);
  }
  return all;
}

bool is_product_plan(const ProductPlan& plan, const ProductKey& key) noexcept {
  try {
    return std::visit([&](const auto& each) { return fits(each, key); }, plan);
  } catch (const std::exception&) {  // of a tile that is none
    return false;
  }
}

bool suits_product(const Device& device, const ProductKey& key, const ProductPlan& plan) {
  if (!is_product_plan(plan, key)) return false;
  const WgmmaPlan* const tiles = std::get_if<WgmmaPlan>(&plan);
  if (tiles == nullptr) return true;
  const GemmSize size = make_gemm_size(device, key);
  const double rule = gemm_cost(size, choose_gemm(size));
  return gemm_cost(size, choose_gemm(size, *tiles->tile, tiles->splits)) <= kHardlyLonger * rule;
}

}  // namespace kernwright::kernels
