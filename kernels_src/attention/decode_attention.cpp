// Plans decode attention: stages of the warps' rings, blocks with a shared context.
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/attention/attention_call.h"
#include "kernels_src/attention/decode_attention.cu.h"
#include "kernels_src/family.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

// As in decode_attention.cu.
constexpr std::int64_t kDecodeWarps = 4;
constexpr std::int64_t kDecodeRows = 16;
constexpr std::int64_t kWarpTokens = 16;
constexpr std::int64_t kDecodeStep = kDecodeWarps * kWarpTokens;
constexpr std::uint32_t kDecodeThreads = 128;

constexpr std::int64_t kMostContextSplits = 512;
constexpr std::int64_t kDecodeSystemShared = 1024;  // cost of a block beside its own

const Family& decode_family() {
  static const auto& family = *new Family("decode_attention.cu", text::decode_attention_cu);
  return family;
}

struct DecodeMemory {
  int stages = 1;
  std::uint32_t bytes = 0;
};

/// Two blocks a multiprocessor with at least two stages where they fit, else one with as many as
/// fit, one at least.
DecodeMemory plan_decode_memory(const Device& device, const PreparedAttention& made) {
  const std::int64_t most = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  const std::int64_t whole =
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  const auto size = static_cast<std::int64_t>(scalar_size(made.k.type()));
  const std::int64_t elements = kDecodeStep * (made.dim_class + made.value_class);
  const std::int64_t fixed = kDecodeRows * made.dim_class * 2 + (size == 1 ? elements * 2 : 0);
  const std::int64_t merge = kDecodeStep * (made.value_class + 4) * 4 + kDecodeStep * 8;
  const auto bytes = [&](int stages) { return std::max(merge, fixed + stages * elements * size); };
  for (int stages = 4; stages > 1; --stages) {
    if (bytes(stages) <= most && 2 * (bytes(stages) + kDecodeSystemShared) <= whole) {
      return {stages, static_cast<std::uint32_t>(bytes(stages))};
    }
  }
  int stages = 3;
  while (stages > 1 && bytes(stages) > most) --stages;
  return {stages, static_cast<std::uint32_t>(bytes(stages))};
}

const LazyKernel& decode_kernel(const PreparedAttention& made, int stages) {
  const bool packs = made.moves_packs(false);
  const auto key = InstanceKey()
                       .type(made.q.type())
                       .type(made.k.type())
                       .add(made.dim_class / 32, 4)
                       .add(made.value_class / 32, 4)
                       .add(stages, 3)
                       .add(packs, 1)
                       .add(made.extras, 1);
  return decode_family().instance(key, [&] {
    return format("decode_attention<{}, {}, {}, {}, {}, {}, {}>", device_type(made.q.type()),
                  device_type(made.k.type()), made.dim_class, made.value_class, stages, packs,
                  made.extras);
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
    // the second kernel two.
    const std::int64_t waves = (blocks * splits + processors - 1) / processors;
    const std::int64_t each = (steps + splits - 1) / splits;
    double cost = static_cast<double>(waves * each + 1);
    if (blocks * splits < 2 * processors) cost *= 1.1;  // one block alone hides less
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
  const std::int64_t rows =
      splits > 1 ? std::int64_t{call.batches} * call.heads * call.queries * splits : 0;
  Array partial = Array::empty(made.q.device(), {rows, made.value_class + std::int64_t{2}},
                               ScalarType::float32, on);
  call.partial = partial.address();
  call.peaks = partial.address() + static_cast<std::uint64_t>(rows * made.value_class) * 4;
  return partial;
}

void launch_combine(const PreparedAttention& made, const Stream& on) {
  const AttentionCall& call = made.call;
  const std::int64_t rows = std::int64_t{call.batches} * call.heads * call.queries;
  const auto key = InstanceKey().add(1, 1).type(made.q.type()).add(made.value_class / 32, 4);
  const LazyKernel& kernel = decode_family().instance(std::uint64_t{1} << 40 | key, [&] {
    return format("combine_splits<{}, {}>", device_type(made.q.type()), made.value_class);
  });
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>((rows + kDecodeWarps - 1) / kDecodeWarps)},
      .block = {kDecodeThreads},
      .stream = on};
  launch(kernel.on(made.q.device()), config, call);
}

void launch_decode(PreparedAttention& made, std::int64_t splits, const Stream& on) {
  Device& device = made.q.device();
  AttentionCall& call = made.call;
  const std::int64_t rows = std::int64_t{call.queries} * (call.heads / call.kv_heads);
  call.row_tiles = static_cast<std::int32_t>((rows + kDecodeRows - 1) / kDecodeRows);
  const std::int64_t blocks = std::int64_t{call.batches} * call.kv_heads * call.row_tiles;
  const std::int64_t steps = (std::int64_t{call.keys} + kDecodeStep - 1) / kDecodeStep;
  if (splits == 0) splits = choose_splits(device, blocks, steps);
  const Array partial = allocate_splits(made, splits, on);
  const DecodeMemory memory = plan_decode_memory(device, made);
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks * call.splits)},
                            .block = {kDecodeThreads},
                            .shared_bytes = memory.bytes,
                            .stream = on};
  launch(decode_kernel(made, memory.stages).on(device), config, call);
  if (call.splits > 1) launch_combine(made, on);
  partial.use_on(on);
}

Attended decode_attention(const Array& query, const Array& key, const Array& value,
                          const AttentionOptions& options, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(query.device());
  AttentionOptions decode = options;
  decode.bottom = true;
  decode.right = 0;
  PreparedAttention made = prepare_attention(query, key, value, decode, true, on);
  allocate_result(made, decode, on);
  if (!made.has_rows()) return std::move(made.made);
  if (query.type() == ScalarType::float32) {
    launch_plain_attention(made, options.splits, on);
  } else {
    launch_decode(made, options.splits, on);
  }
  made.use_on(on);
  return std::move(made.made);
}

}  // namespace kernwright::kernels
