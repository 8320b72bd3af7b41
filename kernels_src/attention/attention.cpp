// Chooses the kernel of an attention over arrays or pages, plans its blocks.
#include "kernels_src/attention/attention.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/attention/attention.cu.h"
#include "kernels_src/attention/attention_call.h"
#include "kernels_src/attention/hopper_attention.h"
#include "kernels_src/family.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

constexpr std::uint32_t kForwardThreads = 128;
constexpr std::int64_t kForwardWarps = 4;
constexpr std::int64_t kFewRows = 16;  ///< rows of one head of keys in decode attention

/// Rows of 16 queries a warp, keys of a tile.
struct ForwardTile {
  int row_tiles = 2;
  int tokens = 64;
};

ForwardTile choose_tile(const PreparedAttention& made, bool extras) {
  const int largest = std::max(made.dim_class, made.value_class);
  if (largest > 128) return {1, 32};  // the results of more rows do not fit the registers
  return {made.most_queries > 64 && !extras ? 2 : 1, 64};
}

bool has_few_rows(const PreparedAttention& made) {
  return made.most_queries * (made.call.heads / made.call.kv_heads) <= kFewRows;
}

/// Whether few rows meet the keys: then blocks share these.
bool suits_decode(const PreparedAttention& made, const AttentionOptions& options) {
  const AttentionCall& call = made.call;
  return has_few_rows(made) && call.keys >= 64 && !options.q_starts && !options.q_lengths &&
         options.dropout == 0;
}

std::int64_t forward_bytes(const PreparedAttention& made, const ForwardTile& tile) {
  const std::int64_t rows = kForwardWarps * 16 * tile.row_tiles;
  return 2 * (rows * made.dim_class + 2 * tile.tokens * (made.dim_class + made.value_class));
}

void launch_forward(PreparedAttention& made, const Stream& on) {
  static const auto& family = *new Family("attention.cu", text::attention_cu);
  AttentionCall& call = made.call;
  const int extras = call.drop_below != 0 ? 2 : made.extras ? 1 : 0;
  const ForwardTile tile = choose_tile(made, extras > 0);
  const bool packs = made.moves_packs(true), token_scales = call.k_token_scales != 0;
  const auto key = InstanceKey()
                       .type(made.q.type())
                       .type(made.k.type())
                       .add(made.dim_class / 32, 5)
                       .add(made.value_class / 32, 4)
                       .add(tile.row_tiles, 2)
                       .add(tile.tokens, 7)
                       .add(packs, 1)
                       .add(extras, 2)
                       .add(token_scales, 1);
  const LazyKernel& kernel = family.instance(key, [&] {
    return format("attention<{}, {}, {}, {}, {}, {}, {}, {}{}>", device_type(made.q.type()),
                  device_type(made.k.type()), made.dim_class, made.value_class, tile.row_tiles,
                  tile.tokens, packs, extras, token_scales ? ", true" : "");
  });
  const std::int64_t rows = kForwardWarps * 16 * tile.row_tiles;
  const std::int64_t blocks = call.heads * made.share_rows(rows, 1);
  const std::int64_t bytes = forward_bytes(made, tile);
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                            .block = {kForwardThreads},
                            .shared_bytes = static_cast<std::uint32_t>(bytes),
                            .stream = on};
  launch(kernel.on(made.q.device()), config, call);
}

/// Whether a block has no shared memory for tiles of such keys: those of latent attention on
/// devices with less than Hopper's.
bool lacks_memory(const PreparedAttention& made) {
  const std::int64_t most =
      made.q.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  return forward_bytes(made, choose_tile(made, made.extras)) > most;
}

/// Sequences of few queries, as those that generate, go to the kernel that shares their contexts
/// among blocks (64 of 1024 tokens beside a chunk of 512 on an H200: 310 -> 96 us). The kernel of
/// tiles then leaves them out.
void launch_short_sequences(PreparedAttention& made, const Stream& on) {
  const std::int64_t few = kFewRows / (made.call.heads / made.call.kv_heads);
  if (few == 0) return;
  made.call.few_queries = static_cast<std::int32_t>(few);
  PreparedAttention short_ones = made;
  short_ones.most_queries = few;
  launch_decode(short_ones, 0, on);
}

}  // namespace

Attended attention(const Array& query, const Array& key, const Array& value,
                   const AttentionOptions& options, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(query.device());
  PreparedAttention made =
      prepare_attention(query, key, value, options, AttentionOperands::arrays, on);
  allocate_result(made, options, on);
  if (!made.has_rows()) return deliver_result(made, on);
  const bool few = suits_decode(made, options);
  if (query.type() == ScalarType::float32) {
    launch_plain_attention(made, options.q_starts || options.q_lengths ? 1 : options.splits, on);
  } else if (const auto tile = choose_hopper_attention(made, options, few)) {
    launch_hopper_attention(made, options, *tile, on);
  } else if (few) {
    launch_decode(made, options.splits, on);
  } else {
    launch_forward(made, on);
  }
  return deliver_result(made, on);
}

Attended paged_attention(const Array& query, const Array& key, const Array& value,
                         const AttentionOptions& options, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(query.device());
  AttentionOptions paged = options;
  paged.function = "paged_attention";
  paged.bottom = true;
  if (!paged.q_starts || !paged.k_lengths || !paged.page_table) {
    throw ArgumentError("paged_attention takes query_starts, lengths and page_table");
  }
  PreparedAttention made =
      prepare_attention(query, key, value, paged, AttentionOperands::caches, on);
  allocate_result(made, paged, on);
  if (made.call.heads == 0 || made.call.queries == 0) return deliver_result(made, on);
  if (query.type() == ScalarType::float32) {
    launch_plain_attention(made, 1, on);
  } else if (made.call.batches > 0 && (has_few_rows(made) || lacks_memory(made))) {
    launch_decode(made, 0, on);
  } else {
    if (made.call.batches > 1) launch_short_sequences(made, on);
    if (const auto tile = choose_hopper_attention(made, paged, false)) {
      launch_hopper_attention(made, paged, *tile, on);
    } else {
      launch_forward(made, on);
    }
  }
  return deliver_result(made, on);
}

}  // namespace kernwright::kernels
