// Plans decode attention: stages of the warps' rings, blocks with a shared context.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/attention/attention_call.h"
#include "kernels_src/attention/decode_attention.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/plans/planned_rows.h"
#include "kernels_src/zeroed_words.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace kernwright::kernels {
namespace {

// As in decode_attention.cu.
constexpr std::int64_t kDecodeRows = 16;
constexpr std::int64_t kTileTokens = 16;  // of a warp's tile of 16-bit elements; of 8 bits: twice
constexpr std::int64_t kCombineWarps = 4;

constexpr std::int64_t kMostContextSplits = 512;
constexpr std::int64_t kMostClusterBlocks = 8;      // of any device with clusters
constexpr std::int64_t kMostClusterSteps = 6;       // a longer share is read sooner by more blocks
constexpr std::int64_t kMostPdlSteps = 3;           // the same with PDL
constexpr std::int64_t kDecodeSystemShared = 1024;  // cost of a block beside its own

const Family& decode_family() {
  static const auto& family = *new Family("decode_attention.cu", text::decode_attention_cu);
  return family;
}

constexpr std::int64_t kMostGridHeight = 65535;  // blocks along y, and along z

/// `DecodePlan` of decode_block.cuh.
struct DecodePlan {
  CUdeviceptr arrived = 0;
  std::int32_t group = 1, flat = 0, each = 0, more = 0, received = 0;
};

/// Warps of a block, and tiles of each in flight.
struct DecodeBlock {
  int warps = 4, stages = 1;
  bool cluster = false;  ///< the splits are blocks of a cluster
};

/// Tokens of a block's tiles.
std::int64_t decode_step(const PreparedAttention& made, const DecodeBlock& block) {
  return block.warps * kTileTokens * 2 / static_cast<std::int64_t>(scalar_size(made.k.type()));
}

/// Shared memory of such a block without a cluster's parts.
std::int64_t decode_bytes(const PreparedAttention& made, const DecodeBlock& block) {
  const std::int64_t rows = block.warps * kDecodeRows;
  const std::int64_t tiles =
      block.warps * block.stages * kTileTokens * 2 * (made.dim_class + made.value_class);
  return std::max(rows * (made.value_class + 4) * 4 + rows * 8,
                  kDecodeRows * made.dim_class * 2 + tiles);
}

/// The same with the stages that a share of so many steps fills.
std::int64_t used_bytes(const PreparedAttention& made, DecodeBlock block, std::int64_t share) {
  block.stages = static_cast<int>(std::clamp<std::int64_t>(share, 1, block.stages));
  return decode_bytes(made, block);
}

/// The shared memory for a cluster's parts.
std::int64_t received_bytes(const PreparedAttention& made, std::int64_t splits) {
  const AttentionCall& call = made.call;
  const std::int64_t rows = made.most_queries * (call.heads / call.kv_heads);
  return 16 * (std::min(rows, kDecodeRows) * (made.value_class / 2) + splits);
}

std::int64_t most_shared(const Device& device) {
  return device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

/// Two blocks a multiprocessor with at least two stages where they fit, else one with as many as
/// fit, one at least. On Hopper heads of 128 have one block of twice the warps instead of two: it
/// reads longer pieces of memory. But where `blocks` blocks of caches in pages come in several
/// waves, one of two begins while the other ends (H200, 1024 tokens in pages of 16, 8 heads of
/// keys: 64 sequences 75.7 -> 70.3 us, 256 274 -> 256 us; 32 40.7 -> 43.8 us).
DecodeBlock plan_decode_block(const Device& device, const PreparedAttention& made,
                              std::int64_t blocks) {
  const std::int64_t most = most_shared(device);
  const std::int64_t whole =
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  const std::int64_t processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  for (int stages = 4; stages > 1; --stages) {
    const DecodeBlock block{.stages = stages}, large{.warps = 8, .stages = stages};
    const std::int64_t bytes = decode_bytes(made, block);
    if (bytes > most || 2 * (bytes + kDecodeSystemShared) > whole) continue;
    const bool in_waves = made.call.table != 0 && blocks >= 3 * processors;
    const bool joins = device.compute_capability().major >= 9 && made.dim_class == 128 &&
                       made.value_class == 128 && !in_waves;
    return joins && decode_bytes(made, large) <= most ? large : block;
  }
  int stages = 3;
  while (stages > 1 && decode_bytes(made, {.stages = stages}) > most) --stages;
  const bool fits = decode_bytes(made, {.stages = stages}) <= most;
  return {.warps = fits ? 4 : 2, .stages = stages};
}

/// Whether all blocks run at once as clusters of `splits`. The parts of the device that a cluster
/// lies in have different sizes: more clusters than half of the device may have to wait. Pairs fit
/// everywhere.
bool run_at_once(const Device& device, std::int64_t blocks, std::int64_t splits) {
  const std::int64_t processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return blocks * splits <= (splits == 2 ? processors : processors / 2);
}

/// Eight splits as blocks of a cluster where these are faster than more splits without one, else 0.
/// With short shares it counts more how soon the parts meet than how many multiprocessors read, if
/// a third of them does. Blocks of clusters gain nothing by PDL.
std::int64_t choose_cluster(const Device& device, std::int64_t blocks, std::int64_t steps,
                            bool has_pdl) {
  constexpr std::int64_t kSplits = kMostClusterBlocks;
  const std::int64_t most = has_pdl ? kMostPdlSteps : kMostClusterSteps;
  const std::int64_t processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const bool short_shares = steps >= kSplits && steps <= most * kSplits;
  const bool reads_fast = 3 * blocks * kSplits >= processors;
  return device.compute_capability().major >= 9 && short_shares && reads_fast &&
                 run_at_once(device, blocks, kSplits)
             ? kSplits
             : 0;
}

/// The splits become blocks of a cluster where all of these run at once: they put their parts
/// together sooner than blocks without one.
void make_cluster(const Device& device, const PreparedAttention& made, std::int64_t blocks,
                  std::int64_t splits, DecodeBlock& block) {
  const std::int64_t bytes = decode_bytes(made, block) + received_bytes(made, splits);
  block.cluster = device.compute_capability().major >= 9 && splits > 1 &&
                  splits <= kMostClusterBlocks && run_at_once(device, blocks, splits) &&
                  bytes <= most_shared(device);
}

// Microseconds on an H200, and bytes.
constexpr double kMemoryShare = 31'000;  // that memory brings to a multiprocessor in one of them
constexpr double kMostShare = 1.1;       // of that, to one of few multiprocessors that read
constexpr double kStepTime = 1.15;       // of a block's step at least
constexpr double kWaveTime = 1.0;        // until a block's first step
constexpr double kPartsTime = 1.5;       // of putting parts together, and for each of them:
constexpr double kPartTime = 0.06;
constexpr std::int64_t kMostWarps = 12;  // of a multiprocessor, whose registers suffice

/// The time of all blocks: whole waves of resident blocks, then the blocks left.
double decode_time(const Device& device, const PreparedAttention& made, const DecodeBlock& block,
                   std::int64_t blocks, std::int64_t steps, std::int64_t splits) {
  const std::int64_t processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const std::int64_t whole =
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  const std::int64_t share = ceil_div(steps, splits);
  const std::int64_t bytes = used_bytes(made, block, share) + kDecodeSystemShared;
  const std::int64_t resident = std::clamp<std::int64_t>(
      whole / bytes, 1, std::max<std::int64_t>(1, kMostWarps / block.warps));
  const std::int64_t at_once = resident * processors, left = blocks * splits % at_once;
  const auto whole_waves = static_cast<double>(blocks * splits / at_once);
  const AttentionCall& call = made.call;
  const auto step_bytes =
      static_cast<double>(decode_step(made, block) * (call.dim + call.value_dim) *
                          static_cast<std::int64_t>(scalar_size(made.k.type())));
  const double step = step_bytes / kMemoryShare;
  const double all = std::max(kStepTime, step * static_cast<double>(resident));
  const double few = step * std::max(static_cast<double>(left) / static_cast<double>(processors),
                                     static_cast<double>(ceil_div(left, processors)) / kMostShare);
  double time = whole_waves * (static_cast<double>(share) * all + kWaveTime);
  if (left > 0) time += static_cast<double>(share) * std::max(kStepTime, few) + kWaveTime;
  if (splits > 1) time += kPartsTime + kPartTime * static_cast<double>(splits);
  return time;
}

std::int64_t choose_decode_splits(const Device& device, const PreparedAttention& made,
                                  const DecodeBlock& block, std::int64_t blocks,
                                  std::int64_t steps) {
  const std::int64_t processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const std::int64_t most = std::min({kMostContextSplits, steps, 4 * processors / blocks + 1});
  std::int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  // Where several numbers of splits give equal shares, the smallest number takes the least time.
  for (std::int64_t splits = 1; splits <= most;) {
    const double time = decode_time(device, made, block, blocks, steps, splits);
    if (time < least) {
      least = time;
      best = splits;
    }
    const std::int64_t share = ceil_div(steps, splits);
    if (share == 1) break;
    splits = ceil_div(steps, share - 1);
  }
  return best;
}

const LazyKernel& decode_kernel(const PreparedAttention& made, const DecodeBlock& block,
                                bool whole) {
  const bool packs = made.moves_packs(false), token_scales = made.call.k_token_scales != 0;
  const auto key = InstanceKey()
                       .type(made.q.type())
                       .type(made.k.type())
                       .add(made.dim_class / 32, 5)
                       .add(made.value_class / 32, 4)
                       .add(block.warps, 4)
                       .add(block.stages, 3)
                       .add(packs, 1)
                       .add(made.extras, 1)
                       .add(whole, 1)
                       .add(block.cluster, 1)
                       .add(token_scales, 1);
  return decode_family().instance(key, [&] {
    return format("decode_attention<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}{}>",
                  device_type(made.q.type()), device_type(made.k.type()), made.dim_class,
                  made.value_class, block.warps, block.stages, packs, made.extras, whole,
                  block.cluster, token_scales ? ", true" : "");
  });
}

/// Whether all blocks of a head see all keys of the caches.
bool sees_all_keys(const AttentionCall& call) {
  const bool lengths =
      call.k_starts != 0 || call.k_lengths != 0 || call.q_starts != 0 || call.q_lengths != 0;
  return !lengths && call.row_tiles == 1 && call.left < 0 && (call.right < 0 || call.bottom != 0);
}

bool is_flat(const AttentionCall& call) {
  return call.row_tiles > 1 || call.kv_heads > kMostGridHeight || call.batches > kMostGridHeight;
}

DecodePlan plan_decode(const AttentionCall& call, std::int64_t steps) {
  DecodePlan plan{.group = call.heads / call.kv_heads};
  plan.flat = is_flat(call) ? 1 : 0;
  if (sees_all_keys(call)) {
    plan.each = static_cast<std::int32_t>(steps / call.splits);
    plan.more = static_cast<std::int32_t>(steps % call.splits);
  }
  return plan;
}

const LazyKernel& combine_kernel(const PreparedAttention& made) {
  const ScalarType type = made.made.out.type();
  const auto key = InstanceKey().add(1, 1).type(type).add(made.value_class / 32, 4);
  return decode_family().instance(std::uint64_t{1} << 40 | key, [&] {
    return format("combine_splits<{}, {}>", device_type(type), made.value_class);
  });
}

}  // namespace

std::int64_t choose_splits(const Device& device, std::int64_t blocks, std::int64_t steps) {
  const std::int64_t processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  std::int64_t best = 1;
  double least = 0;
  const std::int64_t most = std::min({kMostContextSplits, steps, 4 * processors / blocks + 1});
  for (std::int64_t splits = 1; splits <= std::max<std::int64_t>(most, 1); ++splits) {
    // In steps that a multiprocessor works through; a block's beginning and end cost about one,
    // putting parts together two and more for many of them.
    const std::int64_t waves = (blocks * splits + processors - 1) / processors;
    const std::int64_t each = ceil_div(steps, splits);
    double cost = static_cast<double>(waves * each + 1);
    if (blocks * splits < 2 * processors) cost *= 1.1;  // one of two hides less
    if (splits > 1) cost += 2.0 + static_cast<double>(splits) / 32;
    if (splits > 1 && cost >= least) continue;
    least = cost;
    best = splits;
  }
  return best;
}

Array allocate_splits(PreparedAttention& made, std::int64_t splits, const Stream& on) {
  AttentionCall& call = made.call;
  if (splits < 1 || splits > kMostContextSplits) {
    throw InvalidArgument(format("decode_attention: splits is {}, and must be from 1 to {}", splits,
                                 kMostContextSplits));
  }
  call.splits = static_cast<std::int32_t>(splits);
  const std::int64_t batches = call.q_starts != 0 ? 1 : call.batches;
  const std::int64_t rows = splits > 1 ? batches * call.heads * call.queries * splits : 0;
  Array partial = Array::empty(made.q.device(), {rows, made.value_class + std::int64_t{2}},
                               ScalarType::float32, on);
  call.partial = partial.address();
  call.peaks = partial.address() + static_cast<std::uint64_t>(rows * made.value_class) * 4;
  return partial;
}

const LazyKernel* begin_combine(KernelsAhead& kernels, const PreparedAttention& made) {
  if (made.call.splits <= 1) return nullptr;
  const LazyKernel& kernel = combine_kernel(made);
  kernels.begin(kernel, made.q.device());
  return &kernel;
}

void launch_combine(const PreparedAttention& made, const LazyKernel* kernel, KernelsAhead& kernels,
                    const Stream& on) {
  if (kernel == nullptr) return;
  const AttentionCall& call = made.call;
  const std::int64_t rows = std::int64_t{call.batches} * call.heads * call.queries;
  const std::int64_t blocks = ceil_div(rows, kCombineWarps);
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                            .block = {32 * kCombineWarps},
                            .stream = on,
                            .programmatic_dependent = overlaps_launches(made.q.device(), blocks)};
  launch(kernels.on(*kernel, made.q.device()), config, call);
}

void launch_decode(PreparedAttention& made, std::int64_t splits, const Stream& on) {
  Device& device = made.q.device();
  AttentionCall& call = made.call;
  const std::int64_t rows = made.most_queries * (call.heads / call.kv_heads);
  call.row_tiles = static_cast<std::int32_t>(ceil_div(rows, kDecodeRows));
  const std::int64_t each = std::int64_t{call.kv_heads} * call.row_tiles;
  const std::int64_t blocks = call.batches * each;
  const std::int64_t planned = planned_sequences(call.batches) * each;
  const bool whole = sees_all_keys(call) && !is_flat(call) && call.table == 0;
  DecodeBlock block = plan_decode_block(device, made, planned);
  const std::int64_t steps = (call.keys + decode_step(made, block) - 1) / decode_step(made, block);
  if (splits == 0) {
    splits = choose_cluster(device, planned, steps, whole);
    make_cluster(device, made, planned, splits, block);
    if (!block.cluster) splits = choose_decode_splits(device, made, block, planned, steps);
  }
  if (!block.cluster) make_cluster(device, made, planned, splits, block);
  Array partial;
  if (block.cluster) {
    call.splits = static_cast<std::int32_t>(splits);
  } else {
    partial = allocate_splits(made, splits, on);
  }
  DecodePlan plan = plan_decode(call, steps);
  plan.received = static_cast<std::int32_t>(used_bytes(made, block, ceil_div(steps, splits)));
  const std::int64_t bytes = plan.received + (block.cluster ? received_bytes(made, splits) : 0);
  std::optional<Array> words;
  if (call.splits > 1 && !block.cluster) {
    words = zeroed_words(static_cast<std::size_t>(blocks), on);
    plan.arrived = words->address();
  }
  Dim3 grid{static_cast<std::uint32_t>(blocks * call.splits)};
  const auto width = static_cast<std::uint32_t>(call.splits);
  if (plan.flat == 0) {
    grid = {width, static_cast<std::uint32_t>(call.kv_heads),
            static_cast<std::uint32_t>(call.batches)};
  }
  LaunchConfig config{
      .grid = grid,
      .block = {static_cast<std::uint32_t>(32 * block.warps)},
      .shared_bytes = static_cast<std::uint32_t>(bytes),
      .stream = on,
      .programmatic_dependent = whole && !block.cluster
                                    ? overlaps_launches(device)
                                    : overlaps_launches(device, blocks * call.splits)};
  if (block.cluster) config.cluster = {width};
  launch(decode_kernel(made, block, whole).on(device), config, call, plan);
  if (!block.cluster) partial.use_on(on);
  if (words) words->use_on(on);
}

Attended decode_attention(const Array& query, const Array& key, const Array& value,
                          const AttentionOptions& options, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(query.device());
  AttentionOptions decode = options;
  decode.function = "decode_attention";
  decode.bottom = true;
  decode.right = 0;
  PreparedAttention made =
      prepare_attention(query, key, value, decode, AttentionOperands::caches, on);
  allocate_result(made, decode, on);
  if (!made.has_rows()) return deliver_result(made, on);
  if (query.type() == ScalarType::float32) {
    launch_plain_attention(made, options.splits, on);
  } else {
    launch_decode(made, options.splits, on);
  }
  return deliver_result(made, on);
}

}  // namespace kernwright::kernels
