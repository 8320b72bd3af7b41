// Plans of products to measure, and plans allowed in a table.
#include "base/errors.h"
#include "core/device.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/gemm/product_choices.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace kernwright::kernels {
namespace {

constexpr std::size_t kMostOfKernel = 16;
constexpr std::int64_t kMostFloatRows = 16;

/// A plan and what a model says of its time.
struct Candidate {
  ProductPlan plan;
  double cost;
};

ProductPlan product_plan_of(ProductKernel kernel, std::initializer_list<int> numbers) {
  ProductPlan plan{kernel, {}};
  std::ranges::transform(numbers, plan.numbers.begin(),
                         [](int n) { return static_cast<std::int16_t>(n); });
  return plan;
}

bool is_promoted(const ProductKey& key) {
  return key.sums == ProductSums::promoted || key.sums == ProductSums::blocks;
}
/// Sums of integers are not split.
bool is_whole(const ProductKey& key) { return key.a == ScalarType::int8; }

/// Whether gemm.cu or promoted_gemm.cu make such a product. Sums of integers and of float8 are not
/// rounded to the operands' type there, as matmul() does.
bool has_gemm(const ProductKey& key) {
  const bool is_float = is_half(key.out) || key.out == ScalarType::float32;
  if (is_float8(key.a)) {
    return is_float8(key.b) && is_float && key.sums != ProductSums::tf32;
  }
  if (is_whole(key) && !is_float && key.out != ScalarType::int32) return false;
  if (key.a != key.b || is_promoted(key)) return false;
  if (key.a == ScalarType::float32) return key.sums == ProductSums::tf32;
  return key.sums == ProductSums::plain && (is_half(key.a) || is_whole(key));
}

/// Whether fma_gemm.cu does.
bool has_fma(const ProductKey& key) {
  const bool exact = key.a == ScalarType::float32 || key.a == ScalarType::float64;
  return exact && key.a == key.b && key.sums == ProductSums::plain;
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
          .block_scales = key.sums == ProductSums::blocks,
          .whole = is_whole(key),
          .b_turned = key.b_turned,
          .gated = key.gated};
}

std::size_t shared_of(const Device& device) {
  return static_cast<std::size_t>(
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
}

/// The cheapest by their models, none of which costs twice as much as the first.
void keep_best(std::vector<Candidate>& all, std::vector<ProductPlan>& into) {
  std::ranges::stable_sort(all, {}, &Candidate::cost);
  for (std::size_t i = 0; i < std::min(all.size(), kMostOfKernel); ++i) {
    if (all[i].cost > 2 * all[0].cost) break;
    into.push_back(all[i].plan);
  }
}

/// The splits that the model would take, none, and those about them.
std::vector<int> splits_near(int modelled, std::int64_t inner, bool may_split) {
  std::vector<int> all = {modelled};
  if (!may_split) return {1};
  for (const int splits : {1, modelled * 2, modelled / 2}) {
    const bool known = std::ranges::find(all, splits) != all.end();
    if (splits >= 1 && splits <= 64 && inner / splits >= 128 && !known) all.push_back(splits);
  }
  return all;
}

ProductPlan gemm_plan(const GemmTile& tile, int splits) {
  return product_plan_of(ProductKernel::gemm, {tile.rows, tile.columns, tile.stages, tile.groups,
                                               tile.ping_pong, tile.cluster, splits, tile.gathers});
}

/// For the tiles of gemm.cu: of contiguous operands, whose lines lie along the inner dimension
/// unless they are 16-bit floats.
GemmSize gemm_size_of(const Device& device, const ProductKey& key) {
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

void add_gemm(const Device& device, const ProductKey& key, std::vector<ProductPlan>& into) {
  const GemmSize size = gemm_size_of(device, key);
  const bool may_split = !key.gated && !size.whole;
  std::vector<Candidate> all;
  const auto add = [&](const GemmTile& tile, int splits) {
    all.push_back({gemm_plan(tile, splits), gemm_cost(size, choose_gemm(size, tile, splits))});
  };
  for (const GemmTile& tile : gathering_tiles(size.block_scales)) {
    if (!key.gated || tile.columns % 128 == 0) add(tile, 1);
  }
  for (const GemmTile& tile : gemm_tiles(size.promotes, size.block_scales)) {
    if (key.gated && tile.columns % 128 != 0) continue;
    const int modelled = choose_gemm(size, tile, may_split ? 0 : 1).splits;
    for (const int splits : splits_near(modelled, key.inner, may_split)) {
      add(tile, splits);
    }
  }
  keep_best(all, into);
}

void add_mma(const Device& device, const ProductKey& key, std::vector<ProductPlan>& into) {
  const auto element = static_cast<std::int64_t>(scalar_size(key.a));
  const GemmSize size = size_of(device, key);
  for (MmaTile tile : mma_tiles()) {
    if (shared_of(device) <= std::size_t{100} * 1024) tile.stages = 3;
    const bool may_split = key.a != ScalarType::int8;
    const int modelled = choose_mma(size, (key.inner * element + 63) / 64, tile, may_split).splits;
    for (const int splits : splits_near(modelled, key.inner, may_split)) {
      into.push_back(
          product_plan_of(ProductKernel::mma, {tile.rows, tile.columns, tile.stages, splits}));
    }
  }
}

void add_fma(const Device& device, const ProductKey& key, std::vector<ProductPlan>& into) {
  GemmSize size = size_of(device, key);
  size.out_bytes = scalar_size(key.a);
  const std::size_t shared = shared_of(device);
  std::vector<Candidate> all;
  for (const FmaTile& tile : fma_tiles(size.out_bytes)) {
    const int modelled = choose_fma(size, shared, tile, 0).splits;
    for (const int splits : splits_near(modelled, key.inner, true)) {
      all.push_back({product_plan_of(ProductKernel::fma,
                                     {tile.rows, tile.columns, tile.thread_rows,
                                      tile.thread_columns, tile.depth, tile.stages, splits}),
                     fma_cost(size, shared, choose_fma(size, shared, tile, splits))});
    }
  }
  keep_best(all, into);
}

/// All that is not given is the kernel's own choice.
ProductPlan skinny_by(SkinnyKernel kernel, int warps = 0, int splits = 0) {
  return product_plan_of(ProductKernel::skinny,
                         {static_cast<int>(kernel), warps, 0, 0, -1, splits, -1, 0});
}

/// Kernels with their own choices, and with more or fewer splits. Weights with neighbours along the
/// inner dimension are turned columns of b.
void add_skinny(const ProductKey& key, bool may_box, std::vector<ProductPlan>& into) {
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
  if (may_box && is_half(key.a) && bytes && key.b_turned) kernels.push_back(SkinnyKernel::bytes);
  if (may_box && is_half(key.a) && !bytes) kernels.push_back(SkinnyKernel::wgmma);
  for (const SkinnyKernel kernel : kernels) {
    for (const int splits : {0, 1, 2, 4, 8}) {
      into.push_back(skinny_by(kernel, 0, splits));
    }
    into.push_back(skinny_by(kernel, kernel == SkinnyKernel::bytes ? 16 : 4));
  }
  if (key.b_turned && is_half(key.a) && key.rows == 1 && bytes) {
    into.push_back(skinny_by(SkinnyKernel::row));
  }
}

bool is_skinny_plan(const ProductPlan& plan, const ProductKey& key) {
  const auto& n = plan.numbers;
  const auto within = [](int value, int least, int most) {
    return value >= least && value <= most;
  };
  if (key.sums != ProductSums::plain || key.out != key.a) return false;
  const auto kernel = static_cast<SkinnyKernel>(n[0]);
  const bool of_bytes = scalar_size(key.b) == 1 && key.b_turned && is_half(key.a);
  const bool bytes = kernel == SkinnyKernel::bytes;
  if (kernel == SkinnyKernel::row && (key.rows != 1 || scalar_size(key.b) != 1)) return false;
  if (bytes && !of_bytes) return false;
  const bool known = n[0] >= 1 && n[0] <= 10 && n[0] != 9 && kernel != SkinnyKernel::ring;
  return known && !key.gated && key.rows <= kSkinnyRows &&
         (n[1] == 0 || n[1] == 4 || n[1] == 8 || (bytes && n[1] == 16)) && within(n[2], 0, 2) &&
         within(n[3], 0, 4) && within(n[4], -1, 2) && within(n[5], 0, 8) && within(n[6], -1, 16) &&
         within(n[7], 0, kernel == SkinnyKernel::wgmma ? 8 : 4);
}

constexpr double kHardlyLonger = 1.05;

}  // namespace

std::vector<ProductPlan> product_candidates(const Device& device, const ProductKey& key) {
  std::vector<ProductPlan> all;
  if (std::min({key.rows, key.columns, key.inner, key.batches}) < 1) return all;
  const Capabilities can = device.capabilities();
  if (key.sums == ProductSums::plain) add_skinny(key, can.wgmma, all);
  if (has_fma(key)) {
    if (can.async_copy) add_fma(device, key, all);
  } else if (has_gemm(key)) {
    if (can.wgmma) add_gemm(device, key, all);
    if (is_half(key.a) && can.bf16 && !key.gated) add_mma(device, key, all);
  }
  return all;
}

bool is_product_plan(const ProductPlan& plan, const ProductKey& key) noexcept {
  try {
    const auto& n = plan.numbers;
    const auto split = [](int splits) { return splits >= 1 && splits <= 64; };
    switch (plan.kernel) {
      case ProductKernel::skinny:
        return is_skinny_plan(plan, key);
      case ProductKernel::gemm:
        require_gemm_tile(planned_tile(plan), is_promoted(key), key.sums == ProductSums::blocks);
        return has_gemm(key) && split(n[6]) && (!is_whole(key) || n[6] == 1) &&
               (!key.gated || n[1] % 128 == 0);
      case ProductKernel::mma:
        require_mma_tile({n[0], n[1], n[2]});
        return is_half(key.a) && split(n[3]) && !key.gated;
      case ProductKernel::fma:
        require_fma_tile({n[0], n[1], n[2], n[3], n[4], n[5]}, scalar_size(key.a));
        return has_fma(key) && split(n[6]);
      default:
        return true;
    }
  } catch (const Error&) {
    return false;
  }
}

bool suits_product(const Device& device, const ProductKey& key, const ProductPlan& plan) {
  if (!is_product_plan(plan, key)) return false;
  if (plan.kernel != ProductKernel::gemm) return true;
  const GemmSize size = gemm_size_of(device, key);
  const auto& n = plan.numbers;
  const GemmTile tile = planned_tile(plan);
  const double rule = gemm_cost(size, choose_gemm(size));
  return gemm_cost(size, choose_gemm(size, tile, n[6])) <= kHardlyLonger * rule;
}

}  // namespace kernwright::kernels
