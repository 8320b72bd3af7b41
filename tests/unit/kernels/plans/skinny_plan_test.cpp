// What each plan of a product with few rows promises, whichever rule chose it.
#include "kernels_src/plans/skinny_plan.h"

#include "base/math.h"
#include "base/scalar_type.h"
#include "kernels_src/plans/planned_rows.h"
#include "unit/random_engines.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <random>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

struct PlanDevice {
  int capability = 0;
  int multiprocessors = 1;
  int shared_bytes = 0;  ///< of a block, at most
};

constexpr PlanDevice kTuringPlans{75, 40, 65536}, kAmperePlans{80, 108, 166912},
    kHopperPlans{90, 132, 232448};
constexpr PlanDevice kDevices[] = {
    kTuringPlans, kAmperePlans, {89, 142, 101376}, kHopperPlans, {120, 170, 101376}};

constexpr int kSharedBytes = 233472;  ///< of a multiprocessor of Hopper
constexpr int kReservedBytes = 1024;  ///< by the system, of each block

constexpr ScalarType kNarrow[] = {ScalarType::int8, ScalarType::float8_e4m3fn,
                                  ScalarType::float8_e5m2};

/// A product as callers describe it: `x_bytes` and `weight_bytes` are the powers of two that divide
/// the addresses and distances of the operands.
SkinnyShape shape_on(const PlanDevice& device, SkinnyShape shape, int x_bytes, int weight_bytes) {
  const auto x_size = static_cast<int>(scalar_size(shape.x_type));
  const auto size = static_cast<int>(scalar_size(shape.weight_type));
  const auto near = [](std::int64_t bytes, int most) {
    while (bytes % most != 0) most /= 2;
    return most;
  };
  x_bytes = near(shape.k * x_size, x_bytes);
  weight_bytes = near((shape.by_columns ? shape.n : shape.k) * size, weight_bytes);
  shape.pairs = x_bytes >= 4 * x_size;
  shape.width = std::max(1, weight_bytes / size);
  if (!shape.by_columns && x_bytes < 16) shape.width = std::min(x_bytes / x_size, shape.width);
  shape.multiprocessors = device.multiprocessors;
  shape.overlapping = shape.clusters = device.capability >= 90;
  shape.tensor_cores = device.capability >= 80;
  const bool fits = shape.weight_type == shape.x_type || (size == 1 && !shape.by_columns);
  shape.tma_tiles = device.capability == 90 && is_half(shape.x_type) && fits && x_bytes == 16 &&
                    weight_bytes == 16;
  return shape;
}

class Draws {
 public:
  explicit Draws(unsigned seed) : engine_(seed) {}

  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(count));
  }
  /// Small ones as often as large ones; one in two is a multiple of 64.
  std::int64_t extent(int most_bits) {
    const std::int64_t drawn = 1 + below(std::int64_t{1} << (1 + below(most_bits)));
    return below(2) == 0 ? drawn : round_up(drawn, 64);
  }
  SkinnyShape shape(const PlanDevice& device) {
    constexpr ScalarType kTypes[] = {ScalarType::bfloat16, ScalarType::float16,
                                     ScalarType::float32};
    SkinnyShape drawn{
        .m = 1 + below(std::int64_t{1} << below(7)), .n = extent(17), .k = extent(16)};
    if (below(8) == 0) drawn.batches = 1 + below(300);
    drawn.x_type = drawn.weight_type = kTypes[below(3)];
    if (below(3) == 0) drawn.weight_type = kNarrow[below(3)];
    drawn.by_columns = below(4) == 0;
    const int x_bytes = below(4) == 0 ? 1 << below(5) : 16;
    const int weight_bytes = below(4) == 0 ? 1 << below(5) : 16;
    return shape_on(device, drawn, std::max<int>(x_bytes, scalar_size(drawn.x_type)),
                    std::max<int>(weight_bytes, scalar_size(drawn.weight_type)));
  }
  SkinnyKernel kernel() {
    constexpr SkinnyKernel kKernels[] = {
        SkinnyKernel::tiles,   SkinnyKernel::dot,    SkinnyKernel::column_tiles,
        SkinnyKernel::columns, SkinnyKernel::staged, SkinnyKernel::wgmma,
        SkinnyKernel::row,     SkinnyKernel::bytes,  SkinnyKernel::shifted};
    return below(2) == 0 ? SkinnyKernel::chosen : kKernels[below(std::size(kKernels))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Calls check(device, shape, plan) for plans of drawn products, half of them with a named kernel.
template <typename Check>
void each_plan(const Check& check) {
  Draws draws(20261130);
  for (int i = 0; i < 20'000; ++i) {
    const PlanDevice& device = kDevices[draws.below(std::size(kDevices))];
    const SkinnyShape shape = draws.shape(device);
    const SkinnyKernel kernel = draws.kernel();
    const SkinnyPlan plan = plan_skinny(shape, {.kernel = kernel});
    CAPTURE(device.capability);
    CAPTURE(static_cast<int>(kernel));
    CAPTURE(static_cast<int>(plan.kernel));
    CAPTURE(shape.batches);
    CAPTURE(shape.m);
    CAPTURE(shape.n);
    CAPTURE(shape.k);
    check(device, shape, plan);
  }
}

/// Layers of models, with k and n of the projections of Llama, Qwen and Gemma.
template <typename Check>
void each_layer(const PlanDevice& device, const Check& check) {
  constexpr std::int64_t kExtents[] = {1024, 2048, 3584, 4096, 5120, 8192, 14336, 18944, 28672};
  for (const std::int64_t n : kExtents) {
    for (const std::int64_t k : kExtents) {
      for (const ScalarType type : {ScalarType::bfloat16, ScalarType::int8}) {
        for (std::int64_t m = 1; m <= kSkinnyRows; m += m < 20 ? 1 : 11) {
          const SkinnyShape layer{
              .m = m, .n = n, .k = k, .x_type = ScalarType::bfloat16, .weight_type = type};
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          check(shape_on(device, layer, 16, 16));
        }
      }
    }
  }
}

struct BlockPart {
  std::int64_t rows, columns;  ///< of the weights, of x
};

/// What a block of the kernel computes.
BlockPart block_part(const SkinnyPlan& plan) {
  const std::int64_t rows = plan.rows, columns = plan.columns;
  switch (plan.kernel) {
    case SkinnyKernel::tiles:
    case SkinnyKernel::bytes:
      return {16 * rows, 8 * columns};
    case SkinnyKernel::staged:
    case SkinnyKernel::wgmma:
      return {16 * rows * plan.warps, 8 * columns};
    case SkinnyKernel::column_tiles:
      return {64, 8 * columns};
    case SkinnyKernel::columns:
      return {std::int64_t{32} * plan.width, columns};
    default:
      return {rows, columns};
  }
}

bool on_tensor_cores(SkinnyKernel kernel) {
  return kernel == SkinnyKernel::tiles || kernel == SkinnyKernel::column_tiles ||
         kernel == SkinnyKernel::staged || kernel == SkinnyKernel::wgmma ||
         kernel == SkinnyKernel::bytes;
}

bool has_tma_tiles(const SkinnyPlan& plan) {
  return plan.kernel == SkinnyKernel::wgmma || plan.kernel == SkinnyKernel::bytes;
}

/// Registers of a thread for accumulators and loads in flight.
std::int64_t registers(const SkinnyShape& shape, const SkinnyPlan& plan) {
  const std::int64_t rows = plan.rows, columns = plan.columns, unroll = plan.unroll;
  const auto size = static_cast<std::int64_t>(scalar_size(shape.weight_type));
  switch (plan.kernel) {
    case SkinnyKernel::tiles:
      return 4 * rows * columns + 8 * rows * unroll;
    case SkinnyKernel::staged:
      return 4 * rows * columns;
    case SkinnyKernel::wgmma:
    case SkinnyKernel::bytes:
      return 4 * columns;
    case SkinnyKernel::column_tiles:
      return 16 * columns + 16 * unroll;
    case SkinnyKernel::columns:
      return plan.width * columns + unroll * plan.width * size / 4;
    case SkinnyKernel::row:
      return 8 * unroll + 4 * rows;
    default:
      return rows * columns + rows * unroll * plan.width * size / 4;
  }
}

/// Blocks that run the product, splits and batches included.
std::int64_t all_blocks(const SkinnyShape& shape, const SkinnyPlan& plan) {
  return skinny_blocks(shape, plan) * plan.splits * shape.batches;
}

}  // namespace

TEST_CASE("skinny plan: each result is computed by one block, or by its splits") {
  each_plan([](const PlanDevice& device, const SkinnyShape& shape, const SkinnyPlan& plan) {
    const BlockPart part = block_part(plan);
    const std::int64_t blocks = skinny_blocks(shape, plan), tiles = ceil_div(shape.n, part.rows);
    if (plan.kernel == SkinnyKernel::row) {  // blocks stay, and take tile after tile
      CHECK(shape.m == 1);
      CHECK((blocks >= 1 && blocks <= tiles && blocks <= 16 * device.multiprocessors));
      CHECK(std::int64_t{512} * plan.warps * plan.unroll >= shape.k);
      CHECK(plan.splits == 1);
      return;
    }
    if (on_tensor_cores(plan.kernel)) CHECK(part.columns >= shape.m);
    CHECK(blocks == tiles * ceil_div(shape.m, part.columns));
    CHECK(plan.splits >= 1);
  });
}

TEST_CASE("skinny plan: a block fits the device") {
  each_plan([](const PlanDevice& device, const SkinnyShape& shape, const SkinnyPlan& plan) {
    const std::int64_t threads = 32 * (plan.warps + (has_tma_tiles(plan) ? 1 : 0));
    CHECK((plan.warps >= 1 && threads <= 1024));
    CHECK(registers(shape, plan) <= std::min<std::int64_t>(255, 65536 / threads));
    CHECK(skinny_shared_bytes(shape, plan) <= device.shared_bytes);
    CHECK(skinny_blocks(shape, plan) < std::int64_t{1} << 31);
    CHECK(plan.splits <= 65535);
    if (plan.clustered) CHECK((shape.clusters && plan.splits <= 8));
    // The key of an instance has so many bits for each.
    CHECK(std::max({plan.rows, plan.columns, plan.warps}) < 64);
    CHECK(std::max({plan.unroll, plan.width, plan.stages}) < 32);
    CHECK((plan.hint >= 0 && plan.hint < 4));
  });
}

TEST_CASE("skinny plan: the device has what the kernel needs, and the operands suit it") {
  each_plan([](const PlanDevice& device, const SkinnyShape& shape, const SkinnyPlan& plan) {
    const auto size = static_cast<int>(scalar_size(shape.weight_type));
    const bool same = shape.weight_type == shape.x_type;
    if (on_tensor_cores(plan.kernel)) CHECK((device.capability >= 80 && is_half(shape.x_type)));
    if (has_tma_tiles(plan)) CHECK(shape.tma_tiles);
    if (device.capability != 90) CHECK_FALSE(has_tma_tiles(plan));
    const bool by_columns =
        plan.kernel == SkinnyKernel::column_tiles || plan.kernel == SkinnyKernel::columns;
    if (plan.kernel != SkinnyKernel::wgmma) CHECK(by_columns == shape.by_columns);
    if (plan.kernel == SkinnyKernel::wgmma || plan.kernel == SkinnyKernel::shifted) CHECK(same);
    if (plan.kernel == SkinnyKernel::bytes) CHECK((size == 1 && shape.batches == 1));
    if (plan.kernel == SkinnyKernel::row) CHECK((size == 1 && shape.batches == 1));
    // A thread of skinny_shifted has two packs of a row or more.
    if (plan.kernel == SkinnyKernel::shifted) CHECK(shape.k * size >= 32);
    if (device.capability < 90) CHECK((plan.ahead == 0 && !plan.clustered));
    CHECK(plan.ahead >= 0);
  });
}

TEST_CASE("skinny plan: loads are as wide as the addresses allow, and no wider") {
  each_plan([](const PlanDevice&, const SkinnyShape& shape, const SkinnyPlan& plan) {
    const auto size = static_cast<int>(scalar_size(shape.weight_type));
    const bool units = shape.width * size == 16;
    switch (plan.kernel) {
      case SkinnyKernel::dot:
      case SkinnyKernel::columns:
        CHECK((plan.width >= 1 && plan.width <= shape.width));
        CHECK(shape.width % plan.width == 0);
        break;
      case SkinnyKernel::column_tiles:
        CHECK((units && shape.pairs));
        break;
      case SkinnyKernel::shifted:  // reads the aligned units around a pack
        CHECK(plan.width * size == 16);
        break;
      case SkinnyKernel::staged:  // copies parts of a unit
        CHECK(plan.width == shape.width);
        CHECK((units || (size == 2 && plan.width >= 2)));
        break;
      default:
        CHECK(units);
    }
  });
}

TEST_CASE("skinny plan: nothing stays open, and points that are asked for stay") {
  each_plan([](const PlanDevice&, const SkinnyShape& shape, const SkinnyPlan& plan) {
    CHECK(plan_skinny(shape, plan) == plan);
  });
  Draws draws(7);
  for (int i = 0; i < 5000; ++i) {
    const SkinnyShape shape = draws.shape(kDevices[draws.below(std::size(kDevices))]);
    SkinnyPlan wanted{.kernel = draws.kernel(), .warps = 4 << draws.below(2)};
    wanted.splits = static_cast<int>(draws.below(20));
    wanted.ahead = static_cast<int>(draws.below(3)) - 1;
    const SkinnyPlan plan = plan_skinny(shape, wanted);
    CAPTURE(static_cast<int>(plan.kernel));
    if (plan.kernel == SkinnyKernel::row) continue;  // its warps are as many as k needs
    if (plan.kernel != SkinnyKernel::bytes) CHECK(plan.warps == wanted.warps);
    // A cluster has at most eight blocks, and TMA tiles have no splits but in a cluster.
    if (has_tma_tiles(plan)) wanted.splits = std::min(wanted.splits, 8);
    if (plan.clustered) CHECK(plan.splits <= 8);
    if (wanted.splits > 0) CHECK(plan.splits == wanted.splits);
    if (wanted.ahead >= 0 && shape.overlapping && plan.kernel != SkinnyKernel::shifted)
      CHECK(plan.ahead == wanted.ahead);
  }
}

TEST_CASE("skinny plan: blocks share k only where there are few, and run at once") {
  each_plan([](const PlanDevice& device, const SkinnyShape& shape, const SkinnyPlan& plan) {
    const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(shape.k, 16));
    CHECK(plan.splits <= parts);
    if (plan.splits == 1) return;
    // Clusters with many columns of x are as many as leave one block more room.
    const bool parts_of_units = plan.kernel == SkinnyKernel::staged && shape.width < 8;
    const int room = parts_of_units ? 8 : plan.kernel == SkinnyKernel::wgmma ? 3 : 2;
    CHECK(all_blocks(shape, plan) <= room * std::int64_t{device.multiprocessors});
    if (plan.kernel == SkinnyKernel::bytes)
      CHECK(skinny_blocks(shape, plan) <= clusters_at_once(plan.splits, device.multiprocessors));
  });
}

TEST_CASE("skinny plan: a large layer of a model has work for many multiprocessors") {
  for (const PlanDevice& device : {kAmperePlans, kHopperPlans}) {
    each_layer(device, [&](const SkinnyShape& shape) {
      if (shape.n * shape.k < 1 << 22) return;
      CHECK(3 * all_blocks(shape, plan_skinny(shape, {})) >= device.multiprocessors);
    });
  }
}

TEST_CASE("skinny plan: wgmma multiplies more than 8 rows of x, the columns of an mma") {
  each_layer(kHopperPlans, [](const SkinnyShape& shape) {
    const SkinnyKernel kernel = plan_skinny(shape, {}).kernel;
    if (shape.m > 8 && shape.weight_type == shape.x_type) CHECK(kernel == SkinnyKernel::wgmma);
    if (shape.m <= 8) CHECK((kernel != SkinnyKernel::wgmma && kernel != SkinnyKernel::bytes));
  });
}

TEST_CASE("skinny plan: more than 8 rows at multiples of 4 or 8 bytes are copied in parts") {
  const auto kernel_of = [](std::int64_t m, int bytes) {
    const SkinnyShape layer{.m = m,
                            .n = 4096,
                            .k = 4096 + bytes / 2,
                            .x_type = ScalarType::bfloat16,
                            .weight_type = ScalarType::bfloat16};
    return plan_skinny(shape_on(kHopperPlans, layer, 16, bytes), {}).kernel;
  };
  for (const int bytes : {4, 8}) {
    CHECK(kernel_of(9, bytes) == SkinnyKernel::staged);
    CHECK(kernel_of(64, bytes) == SkinnyKernel::staged);
    CHECK(kernel_of(8, bytes) == SkinnyKernel::shifted);
  }
  CHECK(kernel_of(9, 2) == SkinnyKernel::dot);
}

TEST_CASE("skinny plan: blocks of TMA tiles with PDL have a multiprocessor each, or clusters") {
  each_layer(kHopperPlans, [](const SkinnyShape& shape) {
    const SkinnyPlan plan = plan_skinny(shape, {.kernel = SkinnyKernel::wgmma});
    if (plan.kernel != SkinnyKernel::wgmma) return;
    const std::int64_t blocks = all_blocks(shape, plan);
    const int bytes = skinny_shared_bytes(shape, plan) + kReservedBytes;
    const bool alone =
        plan.ahead > 0 && blocks < shape.multiprocessors && shape.k / plan.splits >= 4096;
    if (alone) CHECK(2 * bytes > kSharedBytes);
    if (plan.ahead > 0) CHECK((blocks <= shape.multiprocessors || plan.splits == 4));
    // A cluster waits until all of its blocks have a place: there is room for one block more.
    const std::int64_t beside = ceil_div(blocks, shape.multiprocessors) + 1;
    const bool gives_room = (plan.ahead <= 0 || plan.splits == 4) && plan.stages > 3;
    if (gives_room) CHECK(std::min<std::int64_t>(3, beside) * bytes <= kSharedBytes);
    CHECK(bytes <= kSharedBytes);
  });
}

TEST_CASE("skinny plan: teams of warps share no stage, which may be two rounds apart") {
  Draws draws(11);
  for (int i = 0; i < 3000; ++i) {
    SkinnyShape shape{.m = 1 + draws.below(kSkinnyRows), .n = draws.extent(17)};
    shape.k = round_up(draws.extent(16), 16);
    shape.x_type = ScalarType::bfloat16;
    shape.weight_type = kNarrow[draws.below(3)];
    SkinnyPlan wanted{.kernel = SkinnyKernel::bytes, .unroll = static_cast<int>(draws.below(5))};
    wanted.stages = static_cast<int>(draws.below(9));
    const SkinnyPlan plan = plan_skinny(shape_on(kHopperPlans, shape, 16, 16), wanted);
    CAPTURE(wanted.unroll);
    CAPTURE(wanted.stages);
    CHECK(plan.kernel == SkinnyKernel::bytes);
    CHECK((plan.stages >= plan.unroll && plan.stages % plan.unroll == 0));
    CHECK(plan.warps == plan.rows * plan.unroll);
    CHECK(plan.rows % 4 == 0);  // whole warpgroups
  }
}

TEST_CASE("skinny plan: within planned rows all have the kernel, warps and splits of the most") {
  each_layer(kHopperPlans, [](const SkinnyShape& shape) {
    if (shape.m > kMostPlannedRows || shape.weight_type != shape.x_type) return;
    SkinnyShape full = shape;
    full.m = kMostPlannedRows;
    const SkinnyPlan most = plan_skinny(full, {});
    const PlannedRowsScope scope(PlannedRows{kMostPlannedRows});
    const SkinnyPlan few = plan_skinny(shape, {});
    CHECK(few.kernel == most.kernel);
    CHECK(few.warps == most.warps);
    CHECK(few.splits == most.splits);
    CHECK(few.columns <= most.columns);
  });
}

TEST_CASE("skinny plan: a kernel with a norm keeps all but the rows of its blocks") {
  each_plan([](const PlanDevice&, const SkinnyShape& shape, const SkinnyPlan& plan) {
    SkinnyPlan normed = plan_skinny_normed(shape, plan);
    CHECK(normed.rows >= plan.rows);
    CHECK(registers(shape, normed) <= 65536 / (32 * normed.warps));
    normed.rows = plan.rows;
    normed.unroll = plan.unroll;
    CHECK(normed == plan);
  });
}
