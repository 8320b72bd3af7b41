// Plans the launches of attention's backward kernel for Hopper, makes its tensor maps.
#include "kernels_src/attention/hopper_backward.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/attention/gradient_call.h"
#include "kernels_src/attention/hopper_attention.h"
#include "kernels_src/attention/hopper_backward.cu.h"
#include "kernels_src/attention/hopper_plan.h"
#include "kernels_src/family.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kBackwardKeys = 128;   // of a block
constexpr std::int64_t kBackwardSums = 8192;  // of a tile of queries
constexpr int kBackwardThreads = 384;
constexpr int kBackwardStages = 2;
constexpr std::int64_t kFinishThreads = 256;
constexpr std::int64_t kFewBackwardQueries = 16;
constexpr double kHeadQueries = 131072;  // queries times the square of the heads at a time

/// `BackwardPlan` of gradient_part.cuh.
struct BackwardPlan {
  CUdeviceptr sums = 0, counters = 0;
  std::int32_t heads, key_tiles, section, query_tiles;
  std::int32_t q_batch, q_head, grad_batch, grad_head, k_batch, k_head, v_batch, v_head;
};

/// The template's extents of heads.
struct BackwardShape {
  int dim, value_dim, queries;

  explicit BackwardShape(const PreparedAttention& of)
      : dim(of.dim_class), value_dim(of.value_class), queries(128) {
    if (std::max(dim, value_dim) <= 64) return;
    dim = std::max(dim, 96);  // 128 columns: both warpgroups have a part of dq
    queries = 64;
    if (dim + value_dim > 192) dim = value_dim = 128;  // where registers suffice
  }
  int shared_bytes() const {
    const int columns = (dim + 63) / 64 + (value_dim + 63) / 64;
    const int rows = static_cast<int>(kBackwardKeys) + kBackwardStages * queries;
    const int changes = 2 * (queries / 64) * static_cast<int>(kBackwardKeys) * 128;
    return columns * rows * 128 + changes + 2 * static_cast<int>(kBackwardSums) * 4 +
           kBackwardStages * 2 * queries * 4 + 8 * (5 * kBackwardStages + 7);
  }
};

struct ForcedBackward {
  std::mutex mutex;
  AttentionKernel kernel = AttentionKernel::automatic;
  std::optional<int> heads;
};
ForcedBackward& forced_backward() {
  static auto& forced = *new ForcedBackward;
  return forced;
}

std::int64_t tiles_of(std::int64_t size, std::int64_t each) { return (size + each - 1) / each; }

/// Why the kernel cannot do it; null where it can.
const char* backward_obstacle(const PreparedGradient& made, const AttentionOptions& options) {
  const PreparedAttention& of = made.forward;
  const AttentionCall& call = of.call;
  if (const char* obstacle = hopper_obstacle(of, options)) return obstacle;
  if ((options.mask || options.slopes) && call.soft_cap > 0) {
    return "a cap comes with a mask or ALiBi";
  }
  if (std::max(of.dim_class, of.value_class) > 128) return "heads are larger than 128";
  if (call.queries == 0) return "there are no queries";
  const std::uint64_t bits = access_bits(made.grad, made.call.grad_at, call.value_dim) |
                             access_bits(of.made.out, call.out_at, call.value_dim);
  if (bits % 16 != 0) return "elements do not lie at multiples of 16 bytes";
  const std::int64_t batches = options.q_starts ? 1 : call.batches;
  if (!fits_map(made.call.grad_at, batches, call.heads, call.queries)) {
    return "strides are not above 0";
  }
  const std::int64_t parts = tiles_of(call.queries, 64) + tiles_of(call.keys, kBackwardKeys) + 2;
  if (parts * call.heads * call.batches > std::int64_t{1} << 28) return "there are too many rows";
  return nullptr;
}

/// Measured on an H100, heads of 128: 16 of 512 queries, 6 of 2048 to 4096, 2 of 16384. Where
/// blocks are few and some of them short, all: the long ones begin first.
std::int32_t heads_at_once(const PreparedGradient& made, const BackwardPlan& plan) {
  {
    ForcedBackward& forced = forced_backward();
    const std::lock_guard lock(forced.mutex);
    if (forced.heads) return *forced.heads;
  }
  const AttentionCall& call = made.forward.call;
  const std::int64_t blocks = std::int64_t{plan.heads} * plan.key_tiles;
  const std::int64_t multiprocessors =
      made.forward.q.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (call.right >= 0 && call.left < 0 && blocks <= 4 * multiprocessors) return plan.heads;
  const double heads = std::sqrt(kHeadQueries / static_cast<double>(call.queries));
  return std::max(1, static_cast<std::int32_t>(std::lround(heads)));
}

BackwardPlan plan_backward(const PreparedGradient& made, const AttentionOptions& options,
                           const BackwardShape& shape) {
  const AttentionCall& call = made.forward.call;
  const bool packed = options.q_starts.has_value();
  BackwardPlan plan{};
  plan.heads = packed ? call.kv_heads : call.kv_heads * call.batches;
  plan.key_tiles = static_cast<std::int32_t>(packed ? call.keys / kBackwardKeys + call.batches
                                                    : tiles_of(call.keys, kBackwardKeys));
  plan.query_tiles = static_cast<std::int32_t>(packed ? call.queries / shape.queries + call.batches
                                                      : tiles_of(call.queries, shape.queries));
  plan.section = std::min(plan.heads, heads_at_once(made, plan));
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

const Family& backward_family() {
  static const auto& family = *new Family("hopper_backward.cu", text::hopper_backward_cu);
  return family;
}

std::string tile_text(const BackwardShape& shape, bool ragged) {
  return format("Tile<{}, {}, {}, {}>", shape.dim, shape.value_dim, shape.queries, ragged);
}

enum class BackwardStep : std::uint8_t { rows, gradients, queries };

/// One compile makes the kernels of rows and of queries, by the first. That of the gradients has a
/// compile of its own, which takes place at the same time.
const LazyKernel& backward_kernel(BackwardStep step, const PreparedAttention& of,
                                  const BackwardShape& shape) {
  constexpr const char* kinds[] = {"kPlain", "kCapped", "kBiased"};
  const bool has_scores = step == BackwardStep::gradients;
  const int extras = has_scores ? hopper_extras(of.call) : 0;
  const auto key = InstanceKey()
                       .type(of.q.type())
                       .add(static_cast<int>(step), 2)
                       .add(shape.dim / 32, 4)
                       .add(shape.value_dim / 32, 4)
                       .add(extras, 2)
                       .add(is_ragged(of.call), 1);
  return backward_family().instance(key, [&]() -> std::vector<std::string> {
    const char* type = device_type(of.q.type());
    const std::string made = tile_text(shape, is_ragged(of.call));
    if (has_scores) return {format("hopper_backward<{}, {}, {}>", type, made, kinds[extras])};
    std::string finish = format("finish_queries<{}, {}>", type, made);
    if (step == BackwardStep::queries) return {std::move(finish)};
    return {format("sum_rows<{}, {}>", type, shape.value_dim <= 64 ? 8 : 16), std::move(finish)};
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

void force_backward_kernel(AttentionKernel kernel, std::optional<int> heads) {
  if (heads && *heads < 1) {
    throw ArgumentError(format("{} heads at a time: there must be 1 at least", *heads));
  }
  ForcedBackward& forced = forced_backward();
  const std::lock_guard lock(forced.mutex);
  forced.kernel = kernel;
  forced.heads = heads;
}

bool takes_hopper_backward(const PreparedGradient& made, const AttentionOptions& options) {
  AttentionKernel kernel = AttentionKernel::automatic;
  {
    ForcedBackward& forced = forced_backward();
    const std::lock_guard lock(forced.mutex);
    kernel = forced.kernel;
  }
  const bool automatic = kernel == AttentionKernel::automatic;
  const PreparedAttention& of = made.forward;
  if (kernel == AttentionKernel::mma) return false;
  if (automatic && of.call.queries <= kFewBackwardQueries) return false;
  const char* obstacle = backward_obstacle(made, options);
  if (obstacle == nullptr) return true;
  if (automatic) return false;
  throw ArgumentError(
      format("gradients of attention by the kernel for Hopper: {}; query is a {}, key a {}",
             obstacle, of.q.identify(), of.k.identify()));
}

void launch_hopper_backward(PreparedGradient& made, const AttentionOptions& options,
                            const Stream& on) {
  PreparedAttention& of = made.forward;
  const AttentionCall& call = of.call;
  Device& device = of.q.device();
  const BackwardShape shape(of);
  const LazyKernel& gradients = backward_kernel(BackwardStep::gradients, of, shape);
  KernelsAhead kernels;
  kernels.begin(gradients, device);
  BackwardPlan plan = plan_backward(made, options, shape);
  const bool packed = options.q_starts.has_value();
  const std::int64_t batches = packed ? 1 : call.batches;
  const std::int64_t tiles = batches * call.heads * plan.query_tiles;
  const Array delta = Array::empty(device, of.made.lse->shape(), ScalarType::float32, on);
  const Array sums = Array::empty(device, {tiles, kBackwardSums}, ScalarType::float32, on);
  const Array counters = Array::empty(device, {tiles + 1}, ScalarType::uint32, on);
  made.call.delta = delta.address();
  plan.sums = sums.address();
  plan.counters = counters.address();
  const std::int64_t lanes = shape.value_dim <= 64 ? 8 : 16;
  launch(backward_kernel(BackwardStep::rows, of, shape).on(device),
         backward_config(tiles_of(delta.size() * lanes, kFinishThreads), kFinishThreads, 0, on),
         call, made.call, counters.address(), tiles + 1);
  const int keys = static_cast<int>(kBackwardKeys);
  const CUtensorMap q = head_map(of.q, call.q_at, batches, call.heads, call.queries, shape.queries);
  const CUtensorMap grad =
      head_map(made.grad, made.call.grad_at, batches, call.heads, call.queries, shape.queries);
  const CUtensorMap k = head_map(of.k, call.k_at, batches, call.kv_heads, call.keys, keys);
  const CUtensorMap v = head_map(of.v, call.v_at, batches, call.kv_heads, call.keys, keys);
  const std::int64_t parts = std::int64_t{plan.heads} * plan.key_tiles;
  launch(kernels.on(gradients, device),
         backward_config(parts, kBackwardThreads, shape.shared_bytes(), on), q, grad, k, v, call,
         made.call, plan);
  launch(backward_kernel(BackwardStep::queries, of, shape).on(device),
         backward_config(tiles, kFinishThreads, 0, on), call, made.call, plan);
  for (const Array* each : {&delta, &sums, &counters}) each->use_on(on);
}

}  // namespace kernwright::kernels
