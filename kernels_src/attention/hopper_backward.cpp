// Plans the launches of attention's backward kernel for Hopper, makes its tensor maps.
#include "kernels_src/attention/hopper_backward.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/attention/gradient_call.h"
#include "kernels_src/attention/hopper_attention.h"
#include "kernels_src/attention/hopper_backward.cu.h"
#include "kernels_src/attention/hopper_plan.h"
#include "kernels_src/attention/wide_backward.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/plans/plan_scope.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::kernels {
namespace {

constexpr int kRowBytes = 128;              // of a column in shared memory, of 64 elements
constexpr int kWideBlock = 64 * kRowBytes;  // of 64 rows: operands, weights, slots of wide heads
constexpr int kBackwardThreads = 384;
constexpr std::int64_t kFinishThreads = 256;
constexpr std::int64_t kFewBackwardQueries = 16;
constexpr double kHeadQueries = 131072;  // queries times the square of the heads at a time
constexpr double kWideHeadQueries = 4 * kHeadQueries;  // of heads above 128

/// `BackwardPlan` of gradient_part.cuh.
struct BackwardPlan {
  CUdeviceptr accumulators = 0, counters = 0;
  std::int32_t heads, key_tiles, section, query_tiles;
  std::int32_t q_batch, q_head, grad_batch, grad_head, k_batch, k_head, v_batch, v_head;
};

/// The tile of a kernel: extents of heads, the queries a block takes at a time and stages of them,
/// blocks of a cluster. With heads above 128 the blocks have slots for accumulators of each other.
struct BackwardShape {
  int dim, value_dim, queries = 64, blocks = 1, stages = 2, slots = 0;
  static constexpr int keys = 128;  // of a block or a cluster

  explicit BackwardShape(const PreparedAttention& forward)
      : dim(forward.dim_class), value_dim(forward.value_class) {
    if (std::max(dim, value_dim) > 128) {
      widen();
    } else if (std::max(dim, value_dim) <= 64) {
      queries = 128;
    } else {
      dim = std::max(dim, 96);  // 128 columns: both warpgroups have a part of dq
      if (dim + value_dim > 192) dim = value_dim = 128;  // where registers suffice
    }
  }
  bool is_wide() const { return blocks == 2; }
  int block_keys() const { return keys / blocks; }
  /// Columns of 64 elements.
  int columns() const { return ceil_div(dim, 64) + ceil_div(value_dim, 64); }
  std::int64_t accumulators() const { return std::int64_t{ceil_div(dim, 64)} * queries * 64; }
  /// Lanes for a row of values, eight elements each.
  int row_lanes() const { return value_dim <= 64 ? 8 : value_dim <= 128 ? 16 : 32; }
  int shared_bytes() const {
    const int rows = columns() * (block_keys() + stages * queries) * kRowBytes;
    const int facts = stages * 2 * queries * 4, barriers = 8 * (5 * stages + 3);
    if (is_wide()) {
      return rows + (2 + slots) * kWideBlock + facts + barriers + 8 * (2 * stages + 2 * slots + 4);
    }
    const int changes = 2 * (queries / 64) * keys * kRowBytes;
    return rows + changes + 8 * static_cast<int>(accumulators()) + facts + barriers + 32;
  }

 private:
  /// Heads above 128: what stages and two sets of weights leave is for slots.
  void widen() {
    dim = ceil_div(dim, 64) * 64;
    value_dim = ceil_div(value_dim, 64) * 64;
    blocks = 2;
    if (columns() < 6) stages = 3;
    const int left = kHopperSharedBytes / kWideBlock - columns() * (1 + stages);
    slots = std::min(4, left - 2);
  }
};

AttentionBackwardPlan current_backward_plan() noexcept {
  return PlanScope<AttentionBackwardPlan>::current().value_or(AttentionBackwardPlan{});
}

/// Why the kernel cannot do it; null where it can.
const char* backward_obstacle(const PreparedGradient& made, const AttentionOptions& options) {
  const PreparedAttention& forward = made.forward;
  const AttentionCall& call = forward.call;
  if (const char* obstacle = hopper_obstacle(forward, options)) return obstacle;
  if ((options.mask || options.slopes) && call.soft_cap > 0) {
    return "a cap comes with a mask or ALiBi";
  }
  if (call.queries == 0) return "there are no queries";
  const std::uint64_t bits = access_bits(made.grad, made.call.grad_at, call.value_dim) |
                             access_bits(forward.made.out, call.out_at, call.value_dim);
  if (bits % 16 != 0) return "elements do not lie at multiples of 16 bytes";
  const std::int64_t batches = options.q_starts ? 1 : call.batches;
  if (!fits_map(made.call.grad_at, batches, call.heads, call.queries)) {
    return "strides are not above 0";
  }
  const std::int64_t parts = ceil_div(call.queries, 64) + ceil_div(call.keys, 64) + 2;
  if (parts * call.heads * call.batches > std::int64_t{1} << 28) return "there are too many rows";
  return nullptr;
}

/// Measured on an H100, heads of 128: 16 of 512 queries, 6 of 2048 to 4096, 2 of 16384. On an H200,
/// heads of 192 and 256: 16 of 2048 to 4096. Where blocks are few and some of them short, all: the
/// long ones begin first.
std::int32_t heads_at_once(const PreparedGradient& made, const BackwardPlan& plan,
                           const BackwardShape& shape) {
  if (const auto heads = current_backward_plan().heads) return *heads;
  const AttentionCall& call = made.forward.call;
  const std::int64_t blocks = std::int64_t{plan.heads} * plan.key_tiles;
  const std::int64_t multiprocessors =
      made.forward.q.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (call.right >= 0 && call.left < 0 && blocks <= 4 * multiprocessors) return plan.heads;
  const double many = shape.is_wide() ? kWideHeadQueries : kHeadQueries;
  const double heads = std::sqrt(many / static_cast<double>(call.queries));
  return std::max(1, static_cast<std::int32_t>(std::lround(heads)));
}

BackwardPlan plan_backward(const PreparedGradient& made, const AttentionOptions& options,
                           const BackwardShape& shape) {
  const AttentionCall& call = made.forward.call;
  const bool packed = options.q_starts.has_value();
  BackwardPlan plan{};
  plan.heads = packed ? call.kv_heads : call.kv_heads * call.batches;
  plan.key_tiles = static_cast<std::int32_t>(packed ? call.keys / shape.keys + call.batches
                                                    : ceil_div(call.keys, shape.keys));
  plan.query_tiles = static_cast<std::int32_t>(packed ? call.queries / shape.queries + call.batches
                                                      : ceil_div(call.queries, shape.queries));
  plan.section = std::min(plan.heads, heads_at_once(made, plan, shape));
  const auto step = [](std::int64_t stride) { return stride != 0 ? 1 : 0; };
  plan.q_batch = step(call.q_at.batch);
  plan.q_head = step(call.q_at.head);
  plan.grad_batch = step(made.call.grad_at.batch);
  plan.grad_head = step(made.call.grad_at.head);
  plan.k_batch = step(call.k_at.batch);
  plan.k_head = step(call.k_at.head);
  plan.v_batch = step(call.v_at.batch);
  plan.v_head = step(call.v_at.head);
  return plan;
}

const Family& backward_family(bool is_wide) {
  static const auto& family = *new Family("hopper_backward.cu", text::hopper_backward_cu);
  static const auto& wide = *new Family("wide_backward.cu", text::wide_backward_cu);
  return is_wide ? wide : family;
}

std::string tile_text(const BackwardShape& shape, bool ragged) {
  if (shape.is_wide()) {
    return format("WideTile<{}, {}, {}, {}, {}>", shape.dim, shape.value_dim, ragged, shape.stages,
                  shape.slots);
  }
  return format("Tile<{}, {}, {}, {}>", shape.dim, shape.value_dim, shape.queries, ragged);
}

enum class BackwardStep : std::uint8_t { rows, gradients, queries };

/// One compile makes the kernels of rows and of queries, by the first. That of the gradients has a
/// compile of its own, which takes place at the same time.
const LazyKernel& backward_kernel(BackwardStep step, const PreparedAttention& forward,
                                  const BackwardShape& shape) {
  constexpr const char* kinds[] = {"kPlain", "kCapped", "kBiased"};
  const bool has_scores = step == BackwardStep::gradients;
  const int extras = has_scores ? hopper_extras(forward.call) : 0;
  const auto key = InstanceKey()
                       .type(forward.q.type())
                       .add(static_cast<int>(step), 2)
                       .add(shape.dim / 32, 4)
                       .add(shape.value_dim / 32, 4)
                       .add(extras, 2)
                       .add(is_ragged(forward.call), 1);
  return backward_family(shape.is_wide()).instance(key, [&]() -> std::vector<std::string> {
    const char* type = device_type(forward.q.type());
    const std::string made = tile_text(shape, is_ragged(forward.call));
    if (has_scores) {
      return {format("{}<{}, {}, {}>", shape.is_wide() ? "wide_backward" : "hopper_backward", type,
                     made, kinds[extras])};
    }
    std::string finish = format("finish_queries<{}, {}>", type, made);
    if (step == BackwardStep::queries) return {std::move(finish)};
    return {format("sum_rows<{}, {}>", type, shape.row_lanes()), std::move(finish)};
  });
}

LaunchConfig backward_config(std::int64_t blocks, std::int64_t threads, int bytes,
                             const Stream& on) {
  return {.grid = {static_cast<std::uint32_t>(blocks)},
          .block = {static_cast<std::uint32_t>(threads)},
          .shared_bytes = static_cast<std::uint32_t>(bytes),
          .stream = on};
}

}  // namespace

void require_backward_plan(const AttentionBackwardPlan& plan) {
  if (plan.heads && *plan.heads < 1) {
    throw ArgumentError(format("{} heads at a time: there must be 1 at least", *plan.heads));
  }
}

bool takes_hopper_backward(const PreparedGradient& made, const AttentionOptions& options) {
  const AttentionKernel kernel = current_backward_plan().kernel;
  const bool automatic = kernel == AttentionKernel::automatic;
  const PreparedAttention& forward = made.forward;
  if (kernel == AttentionKernel::mma) return false;
  if (automatic && forward.call.queries <= kFewBackwardQueries) return false;
  const char* obstacle = backward_obstacle(made, options);
  if (obstacle == nullptr) return true;
  if (automatic) return false;
  throw ArgumentError(
      format("gradients of attention by the kernel for Hopper: {}; query is a {}, key a {}",
             obstacle, forward.q.identify(), forward.k.identify()));
}

void launch_hopper_backward(PreparedGradient& made, const AttentionOptions& options,
                            const Stream& on) {
  PreparedAttention& forward = made.forward;
  const AttentionCall& call = forward.call;
  Device& device = forward.q.device();
  const BackwardShape shape(forward);
  const LazyKernel& gradients = backward_kernel(BackwardStep::gradients, forward, shape);
  KernelsAhead kernels;
  kernels.begin(gradients, device);
  BackwardPlan plan = plan_backward(made, options, shape);
  const bool packed = options.q_starts.has_value();
  const std::int64_t batches = packed ? 1 : call.batches;
  const std::int64_t tiles = batches * call.heads * plan.query_tiles;
  const Array delta = Array::empty(device, forward.made.lse->shape(), ScalarType::float32, on);
  const Array accumulators =
      Array::empty(device, {tiles, shape.accumulators()}, ScalarType::float32, on);
  const Array counters = Array::empty(device, {tiles + 1}, ScalarType::uint32, on);
  made.call.delta = delta.address();
  plan.accumulators = accumulators.address();
  plan.counters = counters.address();
  const std::int64_t row_blocks = ceil_div(call.queries * shape.row_lanes(), kFinishThreads);
  launch(backward_kernel(BackwardStep::rows, forward, shape).on(device),
         backward_config(batches * call.heads * row_blocks, kFinishThreads, 0, on), call, made.call,
         counters.address(), tiles + 1);
  const CUtensorMap q =
      head_map(forward.q, call.q_at, batches, call.heads, call.queries, shape.queries);
  const CUtensorMap grad =
      head_map(made.grad, made.call.grad_at, batches, call.heads, call.queries, shape.queries);
  const CUtensorMap k =
      head_map(forward.k, call.k_at, batches, call.kv_heads, call.keys, shape.block_keys());
  const CUtensorMap v =
      head_map(forward.v, call.v_at, batches, call.kv_heads, call.keys, shape.block_keys());
  const std::int64_t parts = std::int64_t{plan.heads} * plan.key_tiles;
  LaunchConfig config =
      backward_config(parts * shape.blocks, kBackwardThreads, shape.shared_bytes(), on);
  if (shape.blocks > 1) config.cluster = {static_cast<std::uint32_t>(shape.blocks)};
  launch(kernels.on(gradients, device), config, q, grad, k, v, call, made.call, plan);
  launch(backward_kernel(BackwardStep::queries, forward, shape).on(device),
         backward_config(tiles, kFinishThreads, 0, on), call, made.call, plan);
  for (const Array* each : {&delta, &accumulators, &counters}) each->use_on(on);
}

}  // namespace kernwright::kernels
