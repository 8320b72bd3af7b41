// Attention of float8 operands on Hopper: values are turned, then one kernel attends.
#include "kernels_src/attention/float8_attention.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/attention/attention_call.h"
#include "kernels_src/attention/float8_attention.cu.h"
#include "kernels_src/attention/hopper_plan.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

// Widening takes no longer for small heads, whose time is that of exponentials, or for fewer
// tokens.
constexpr int kSmallHead = 64;
constexpr std::int64_t kFewQueries = 128, kFewKeys = 512;
constexpr std::int32_t kMostBlocks = 65535;  // of a grid, but for its first axis
// Accumulators of float8 products lose up to 2.5 % of their size in so many keys.
constexpr std::int64_t kKeptKeys = 2048;

/// `ScalesCall` of float8_attention.cu.
struct ScalesCall {
  CUdeviceptr q = 0, k = 0, v = 0;
  std::int64_t q_batch = 0, q_head = 0, k_batch = 0, k_head = 0, v_batch = 0, v_head = 0;
  float scores = 1, values = 1;
};

/// Whether a block keeps accumulators of more than `tiles` tiles: in shared memory if there is
/// room, else in `rows` rows of global memory.
struct KeptPlan {
  std::int32_t tiles = 0;
  bool keeps = false;
  std::int64_t rows = 0;
  int shared_bytes = 0;
  HopperAttentionRoom room{};  ///< for the rest
};

const Family& float8_family() {
  static const auto& family = *new Family("float8_attention.cu", text::float8_attention_cu);
  return family;
}

/// The address of one operand's scales, and how far batches and heads are apart.
CUdeviceptr take_scales(PreparedAttention& made, const std::optional<Array>& given,
                        const Stream& on, std::int64_t& batch, std::int64_t& head) {
  if (!given) return 0;
  const Array scales = contiguous(*given, on);
  head = scales.ndim() > 0 ? 1 : 0;
  batch = scales.ndim() > 1 ? scales.shape()[1] : 0;
  made.others.push_back(scales);
  return scales.address();
}

ScalesCall take_all_scales(PreparedAttention& made, const OperandScales& scales, const Stream& on) {
  ScalesCall call;
  call.q = take_scales(made, scales.query, on, call.q_batch, call.q_head);
  call.k = take_scales(made, scales.key, on, call.k_batch, call.k_head);
  call.v = take_scales(made, scales.value, on, call.v_batch, call.v_head);
  call.scores = static_cast<float>(scales.scores);
  call.values = static_cast<float>(scales.values);
  return call;
}

const char* float8_obstacle(const PreparedAttention& made, const AttentionOptions& options) {
  if (const char* obstacle = hopper_obstacle(made, options)) return obstacle;
  if (options.mask || options.slopes) return "it has no mask or ALiBi";
  if (std::max(made.call.kv_heads, made.call.batches) > kMostBlocks) {
    return "there are too many heads or batches";
  }
  return nullptr;
}

/// Whether the kernel takes the call. Throws ArgumentError where it is forced and does not.
bool takes_float8(const PreparedAttention& made, const AttentionOptions& options) {
  const AttentionKernel forced = current_attention_plan().kernel;
  if (forced == AttentionKernel::mma) return false;
  const char* const obstacle = float8_obstacle(made, options);
  if (forced == AttentionKernel::automatic) {
    const bool large = std::min(made.dim_class, made.value_class) > kSmallHead;
    const std::int64_t sequences = options.q_starts ? made.call.batches : 1;  // of all tokens
    const bool is_long =
        made.call.queries >= kFewQueries * sequences && made.call.keys >= kFewKeys * sequences;
    return obstacle == nullptr && large && is_long;
  }
  if (obstacle == nullptr) return true;
  throw ArgumentError(format("attention by the kernel for float8: {}; query is a {}, key a {}",
                             obstacle, made.q.identify(), made.k.identify()));
}

const LazyKernel& float8_kernel(const PreparedAttention& made, const HopperAttentionTile& tile,
                                const KeptPlan& kept) {
  const HopperAttentionRoom& room = kept.room;
  const bool capped = hopper_extras(made.call) > 0;
  const int uses = hopper_uses(made.call);
  const auto key = InstanceKey()
                       .add(1, 1)
                       .type(made.q.type())
                       .type(made.k.type())
                       .type(made.v.type())
                       .add(made.dim_class / 32, 4)
                       .add(made.value_class / 32, 4)
                       .add(tile.keys / 32, 4)
                       .add(tile.stages, 3)
                       .add(room.value_stages, 3)
                       .add(tile.groups, 2)
                       .add(room.places, 2)
                       .add(capped, 1)
                       .add(kept.keeps, 1)
                       .add(uses, 4);
  return float8_family().instance(key, [&] {
    return format(
        "float8_attention<Form<{}, {}, {}, {}>, ByteTile<{}, {}, {}, {}, {}, {}, {}, {}>, {}>",
        device_type(made.q.type()), device_type(made.k.type()), device_type(made.v.type()),
        kept.keeps, made.dim_class, made.value_class, tile.keys, tile.stages, room.value_stages,
        tile.groups, room.places, uses, capped ? "kCapped" : "kPlain");
  });
}

/// Values of each tile of keys with the tokens side by side; see turn_values().
Array turn_values(const PreparedAttention& made, const HopperAttentionTile& tile, bool packed,
                  const Stream& on) {
  const AttentionCall& call = made.call;
  const std::int64_t each = call.keys / tile.keys + 1;
  const std::int64_t tiles = packed ? each - 1 + call.batches : each * call.batches;
  Array turned = Array::empty(made.q.device(),
                              {call.kv_heads * tiles, std::int64_t{tile.keys} * made.value_class},
                              ScalarType::uint8, on);
  const auto key = InstanceKey().add(0, 1).add(tile.keys / 32, 4).add(made.value_class / 32, 4);
  const LazyKernel& kernel = float8_family().instance(
      key, [&] { return format("turn_values<{}, {}>", tile.keys, made.value_class); });
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(each), static_cast<std::uint32_t>(call.kv_heads),
               static_cast<std::uint32_t>(call.batches)},
      .block = {128},
      .stream = on};
  launch(kernel.on(made.q.device()), config, call, turned.address());
  return turned;
}

KeptPlan plan_kept(const PreparedAttention& made, const HopperAttentionTile& tile,
                   bool fast_accum) {
  KeptPlan plan;
  plan.tiles = static_cast<std::int32_t>(ceil_div(kKeptKeys, tile.keys));
  plan.room = choose_room(made, tile);
  plan.keeps =
      !fast_accum && ceil_div(ceil_div(made.call.keys, tile.keys), tile.splits) > plan.tiles;
  if (!plan.keeps) return plan;
  const std::int64_t rows = kHopperGroupRows * tile.groups;
  const int bytes = static_cast<int>(rows) * made.value_class * 4;
  const HopperAttentionRoom beside = choose_room(made, tile, bytes);
  if (hopper_shared_bytes(made, tile, beside) + bytes <= kHopperSharedBytes) {
    plan.shared_bytes = bytes;
    plan.room = beside;
  } else {
    plan.rows = rows;
  }
  return plan;
}

void launch_float8(PreparedAttention& made, const AttentionOptions& options,
                   const OperandScales& scales, bool fast_accum, const Stream& on) {
  const AttentionCall& call = made.call;
  const bool packed = options.q_starts.has_value();
  const std::int64_t batches = packed ? 1 : call.batches;
  const HopperAttentionTile tile = choose_hopper_tile(made, options);
  const ScalesCall factors = take_all_scales(made, scales, on);
  const Array partial = allocate_splits(made, tile.splits, on);
  const HopperPlan plan = plan_hopper(made, tile);
  const KeptPlan keeping = plan_kept(made, tile, fast_accum);
  const LazyKernel& kernel = float8_kernel(made, tile, keeping);
  KernelsAhead kernels;
  kernels.begin(kernel, made.q.device());
  const LazyKernel* const combine = begin_combine(kernels, made);
  const Array turned = turn_values(made, tile, packed, on);
  LaunchConfig config = hopper_config(made, tile, keeping.room, plan, on);
  config.most_blocks = 0;  // each block keeps rows of its own
  config.shared_bytes += static_cast<std::uint32_t>(keeping.shared_bytes);
  const Array kept = Array::empty(made.q.device(), {config.grid.x * keeping.rows, made.value_class},
                                  ScalarType::float32, on);
  const CUtensorMap q = head_map(made.q, call.q_at, batches, call.heads, call.queries,
                                 static_cast<int>(kHopperGroupRows));
  const CUtensorMap k = head_map(made.k, call.k_at, batches, call.kv_heads, call.keys, tile.keys);
  const CUtensorMap out = result_map(made.made.out, call, packed);
  launch(kernels.on(kernel, made.q.device()), config, q, k, out, call, plan, factors,
         turned.address(), keeping.rows > 0 ? kept.address() : 0, keeping.tiles);
  launch_combine(made, combine, kernels, on);
  partial.use_on(on);
  turned.use_on(on);
  kept.use_on(on);
}

}  // namespace

std::optional<Attended> float8_attention(const Array& query, const Array& key, const Array& value,
                                         const AttentionOptions& options,
                                         const OperandScales& scales, bool fast_accum,
                                         const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(query.device());
  if (!query.device().capabilities().wgmma) return std::nullopt;
  PreparedAttention made =
      prepare_attention(query, key, value, options, AttentionOperands::float8, on);
  if (made.has_rows() && !takes_float8(made, options)) return std::nullopt;
  allocate_result(made, options, on);
  if (made.has_rows()) launch_float8(made, options, scales, fast_accum, on);
  return deliver_result(made, on);
}

}  // namespace kernwright::kernels
