// The choice among the kernels for packed weights and their parameters.
#include "kernels_src/packed/packed_plan.h"

#include "base/errors.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/packed/packed_ring_plan.h"
#include "kernels_src/packed/packed_wgmma.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

[[noreturn]] void refuse_packed_plan() {
  throw InvalidArgument("there is no such plan of a product with packed weights");
}

// ---- of some rows on Hopper, by warpgroups

std::int64_t packed_wgmma_blocks(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan) {
  const std::int64_t height = std::int64_t{16} * plan.warps, width = std::int64_t{8} * plan.columns;
  return ceil_div(w.n, height) * ceil_div(m, width);
}

/// As many splits as run at once.
std::int64_t packed_wgmma_splits(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                                 const PackedDevice& device) {
  const std::int64_t blocks = packed_wgmma_blocks(w, m, plan), units = packed_units(w, 1);
  std::int64_t splits = std::clamp<std::int64_t>(units, 1, kMostCluster);
  while (splits > 1 && blocks > clusters_at_once(splits, device.multiprocessors)) --splits;
  return splits;
}

/// What blocks with so many warps in a team take, in a measure of its own: the time grows with
/// their rows, and each wave takes a little to begin.
std::int64_t packed_wgmma_cost(const PackedWeights& w, std::int64_t m, SkinnyPlan plan, int warps,
                               const PackedDevice& device) {
  plan.warps = warps;
  const std::int64_t blocks = packed_wgmma_blocks(w, m, plan);
  const std::int64_t splits = packed_wgmma_splits(w, m, plan, device);
  const std::int64_t waves =
      (blocks * splits + device.multiprocessors - 1) / device.multiprocessors;
  return waves * (packed_units(w, static_cast<int>(splits)) * warps + 8);
}

/// Warps of a team, measured on an H100.
int packed_wgmma_rows(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                      const PackedDevice& device) {
  const auto cost = [&](int warps) { return packed_wgmma_cost(w, m, plan, warps, device); };
  int best = 8;
  if ((plan.columns >= 4 || w.traits().has_unit_scales) && cost(4) < cost(best)) best = 4;
  return cost(16) < cost(best) ? 16 : best;
}

/// Teams of warps hide each other's waits. Measured on an H100: 16 warps are faster where a
/// format's threads have the registers. Four teams of four were slower for NF4.
int packed_wgmma_teams(const PackedWeights& w, const SkinnyPlan& plan) {
  if (plan.warps == 4) return 2;
  return plan.warps == 8 && plan.columns == 8 && w.traits().two_teams ? 2 : 1;
}

/// How codes and x meet, measured on an H200 (Q4_K with up to 32 rows on an H100). Lanes that read
/// codes in x's order need registers for those of other lanes; codes times scales that need no
/// accumulators of groups leave them.
int packed_wgmma_order(const PackedWeights& w, const SkinnyPlan& plan) {
  if (w.traits().always_arranged) return kPackedArranged;
  const bool exact = w.traits().is_exact;
  const bool half = plan.columns == 4 && w.traits().spreads_at_32;
  const bool spread =
      plan.columns == 8 ? plan.warps == 4 || exact : plan.warps == 4 && (exact || half);
  return spread ? kPackedSpread : kPackedArranged;
}

/// Stages that a block at least has, and of which it has a multiple. Where units have one scale,
/// each team has stages of its own and begins one while it keeps another.
std::int64_t least_packed_stages(const PackedWeights& w, const SkinnyPlan& plan) {
  return w.traits().has_unit_scales ? 2 * plan.unroll : 1;
}
int packed_stages_step(const PackedWeights& w, const SkinnyPlan& plan) {
  return w.traits().has_unit_scales ? plan.unroll : 1;
}

SkinnyPlan plan_packed_wgmma(const PackedWeights& w, std::int64_t m, SkinnyPlan plan,
                             const PackedDevice& device) {
  plan.kernel = SkinnyKernel::wgmma;
  choose_packed(plan.columns, m <= 16 ? 2 : m <= 32 ? 4 : 8);
  if (plan.warps <= 0) plan.warps = packed_wgmma_rows(w, m, plan, device);
  choose_packed(plan.unroll, packed_wgmma_teams(w, plan));
  choose_packed(plan.rows, packed_wgmma_order(w, plan));
  if (plan.stages <= 0) {
    plan.stages = 6;
    while (plan.stages > least_packed_stages(w, plan) &&
           packed_wgmma_shared(w, plan) > device.shared_bytes)
      plan.stages -= packed_stages_step(w, plan);
  }
  choose_packed(plan.splits, packed_wgmma_splits(w, m, plan, device));
  const bool fits = (plan.warps == 4 || plan.warps == 8 || plan.warps == 16) && plan.unroll <= 2 &&
                    plan.unroll * plan.warps <= 16 &&
                    (plan.columns == 2 || plan.columns == 4 || plan.columns == 8) &&
                    plan.stages >= least_packed_stages(w, plan) && plan.stages <= 8 &&
                    plan.stages % packed_stages_step(w, plan) == 0 &&
                    plan.rows <= (w.traits().has_byte_codes() ? kPackedArranged : kPackedSpread) &&
                    plan.splits <= kMostCluster && device.wgmma && w.traits().has_warpgroups &&
                    packed_wgmma_shared(w, plan) <= device.shared_bytes;
  if (!fits) refuse_packed_plan();
  return plan;
}

/// Whether its blocks take half of the multiprocessors or more.
bool fills_packed_wgmma(const PackedWeights& w, std::int64_t m, const PackedDevice& device) {
  const SkinnyPlan made = plan_packed_wgmma(w, m, {}, device);
  return packed_wgmma_blocks(w, m, made) * made.splits * 2 >= device.multiprocessors;
}

/// Whether `plan` names the kernel, or nothing and it is measured to be faster on an H100.
bool takes_packed_wgmma(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                        const PackedDevice& device) {
  if (plan != SkinnyPlan{}) return plan.kernel == SkinnyKernel::wgmma;
  if (!device.wgmma || !w.traits().has_warpgroups || m <= 8 || m > kSkinnyRows) return false;
  const std::int64_t numbers = w.n * w.k, large = std::int64_t{1} << (m <= 16 ? 25 : 24);
  if (numbers < large || (m <= 16 && !(w.traits().slow_tiles && w.k <= 4096))) return false;
  return fills_packed_wgmma(w, m, device);
}

/// Whether 9 to 16 rows are faster so than by a ring: measured on an H100.
bool beats_packed_ring(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                       const PackedDevice& device) {
  if (plan != SkinnyPlan{} || !device.wgmma || m <= 8 || m > 16) return false;
  if (!w.traits().has_unit_scales || w.n * w.k <= std::int64_t{1} << 25) return false;
  return w.k > w.traits().wgmma_depth && fills_packed_wgmma(w, m, device);
}

// ---- of up to 64 rows

SkinnyPlan plan_packed_tiles(const PackedWeights& w, std::int64_t m, SkinnyPlan plan,
                             std::int64_t multiprocessors) {
  const std::int64_t blocks = ceil_div(w.k, 128);
  choose_packed(plan.columns, std::bit_ceil(static_cast<unsigned>((m + 7) / 8)));
  // Two tiles of rows share the loads of x, if enough blocks remain.
  const bool shared = (plan.columns == 2 || plan.columns == 4) && w.n >= 32 * multiprocessors;
  choose_packed(plan.rows, shared ? 2 : 1);
  choose_packed(plan.warps, blocks >= 16 ? 8 : 4);
  const int loads = plan.columns * plan.rows == 1 ? 4 : plan.columns * plan.rows == 2 ? 2 : 1;
  choose_packed(plan.unroll, std::max(1, w.traits().has_byte_codes() ? loads / 2 : loads));
  const std::int64_t chunks = ceil_div(blocks, plan.unroll);
  const std::int64_t across =
      (ceil_div(w.n, 16) + plan.rows - 1) / std::max<std::int64_t>(1, plan.rows);
  choose_packed(plan.splits,
                std::clamp<std::int64_t>(multiprocessors / std::max<std::int64_t>(1, across), 1,
                                         std::max<std::int64_t>(1, chunks / plan.warps)));
  const bool fits = plan.warps <= 32 && plan.rows <= 4 && plan.columns <= 8 && plan.unroll <= 8 &&
                    plan.columns * 8 >= m && plan.splits <= 65535 &&
                    std::has_single_bit(static_cast<unsigned>(plan.warps));
  if (!fits) refuse_packed_plan();
  return plan;
}

// ---- of more rows

std::int64_t packed_gemm_blocks(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan) {
  const std::int64_t height = std::int64_t{16} * plan.rows * plan.warps;
  const std::int64_t width = std::int64_t{8} * plan.columns;
  return ceil_div(w.n, height) * ceil_div(m, width);
}

/// As StagedColumns in packed_gemm.cu.
std::int64_t packed_gemm_shared(const PackedWeights& w, const SkinnyPlan& plan) {
  const int gap = w.traits().has_short_groups() ? 16 : 32;
  return std::int64_t{plan.unroll} * plan.columns * 8 * (128 + gap) * 2;
}

SkinnyPlan plan_packed_gemm(const PackedWeights& w, std::int64_t m, SkinnyPlan plan,
                            const PackedDevice& device) {
  // Tiles of 64 rows of x where the last one of 128 would be half empty.
  choose_packed(plan.columns, (m - 1) % 128 < 64 && m <= 320 ? 8 : 16);
  choose_packed(plan.warps, 4);
  choose_packed(plan.unroll, plan.columns > 8 ? 2 : 3);
  if (plan.rows <= 0) {
    plan.rows = 2;
    if (packed_gemm_blocks(w, m, plan) < device.multiprocessors) plan.rows = 1;
  }
  const std::int64_t blocks = packed_gemm_blocks(w, m, plan);
  choose_packed(plan.splits,
                std::clamp<std::int64_t>(device.multiprocessors / blocks, 1,
                                         std::max<std::int64_t>(1, ceil_div(w.k, 128) / 4)));
  const bool fits = (plan.warps == 4 || plan.warps == 8) && plan.rows <= 2 &&
                    (plan.columns == 8 || plan.columns == 16) && plan.unroll >= 2 &&
                    plan.unroll <= 4 && plan.splits <= 65535 &&
                    packed_gemm_shared(w, plan) <= device.shared_bytes;
  if (!fits) refuse_packed_plan();
  return plan;
}

}  // namespace

PackedDevice packed_device(const Device& device) {
  return {.multiprocessors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
          .shared_bytes = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
          .overlapping = overlaps_launches(device),
          .wgmma = device.capabilities().wgmma};
}

SkinnyPlan plan_packed(const PackedWeights& w, std::int64_t m, SkinnyPlan wanted,
                       const PackedDevice& device) {
  if (beats_packed_ring(w, m, wanted, device)) return plan_packed_wgmma(w, m, wanted, device);
  if (takes_packed_ring(w, m, wanted, device)) {
    const SkinnyPlan ring = plan_packed_ring(w, m, wanted, device);
    if (!fits_packed_ring(w, m, ring, device)) refuse_packed_plan();
    return ring;
  }
  if (takes_packed_wgmma(w, m, wanted, device)) return plan_packed_wgmma(w, m, wanted, device);
  if (wanted.kernel != SkinnyKernel::chosen) refuse_packed_plan();
  if (wanted.stages > 0) refuse_packed_plan();
  if (m > kSkinnyRows) return plan_packed_gemm(w, m, wanted, device);
  return plan_packed_tiles(w, m, wanted, device.multiprocessors);
}

bool packed_fetches(const PackedWeights& w, const SkinnyPlan& plan) {
  if (plan.kernel == SkinnyKernel::wgmma) return false;
  return plan.kernel != SkinnyKernel::ring && plan.rows == 1 && plan.splits == 1 &&
         ceil_div(w.k, 128) <= std::int64_t{plan.warps} * plan.unroll;
}

std::int64_t packed_blocks(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
                           const PackedDevice& device) {
  if (plan.kernel == SkinnyKernel::ring) return packed_ring_blocks(w, m, plan, device);
  if (plan.kernel == SkinnyKernel::wgmma) return packed_wgmma_blocks(w, m, plan);
  if (m > kSkinnyRows) return packed_gemm_blocks(w, m, plan);
  return (w.n + 16 * plan.rows - 1) / (16 * plan.rows);
}

std::int64_t packed_shared_bytes(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan) {
  if (plan.kernel == SkinnyKernel::wgmma) return packed_wgmma_shared(w, plan);
  if (plan.kernel == SkinnyKernel::ring) return packed_ring_shared(w, m, plan);
  return m > kSkinnyRows ? packed_gemm_shared(w, plan) : 0;
}

}  // namespace kernwright::kernels
