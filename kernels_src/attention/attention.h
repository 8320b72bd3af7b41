// Scaled dot product attention, forward, over arrays and over caches.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// The arguments of both functions. Arrays are on the device of the queries.
struct AttentionOptions {
  std::optional<double> scale = std::nullopt;  ///< 1 / sqrt(head_dim) without one
  double soft_cap = 0;                         ///< scores become cap * tanh(score / cap); 0: none
  std::int64_t left = -1, right = -1;          ///< keys seen around the own position; -1: all
  bool bottom = false;                         ///< the last query stands at the last key
  bool wants_lse = false;
  std::optional<Array> mask = std::nullopt;    ///< bool, of the queries' type, or float32
  std::optional<Array> sinks = std::nullopt;   ///< float32 (heads,)
  std::optional<Array> slopes = std::nullopt;  ///< float32 (heads,) or (batch, heads)
  std::optional<Array> q_lengths = std::nullopt, k_lengths = std::nullopt;  ///< int32 (batch,)
  std::optional<Array> q_starts = std::nullopt, k_starts = std::nullopt;    ///< int32 (batch + 1,)
  std::optional<Array> page_table = std::nullopt;                         ///< int32 (batch, pages)
  std::optional<Array> k_scales = std::nullopt, v_scales = std::nullopt;  ///< float32 (kv_heads,)
  double dropout = 0;
  std::uint64_t seed = 0, offset = 0;
  std::int64_t splits = 0;        ///< of the context; 0: as many as the device needs
  std::int64_t most_queries = 0;  ///< of the longest packed sequence, 0: not known
  /// Take the result and its logarithms: any strides, apart from all arguments and each other. The
  /// result is written there if it is contiguous or has the elements of a head side by side, from
  /// multiples of 16 bytes on; logarithms if they are contiguous. Others are copied there.
  std::optional<Array> out = std::nullopt, lse_out = std::nullopt;
  /// The axes in front of a result's elements where `out` has others than (batch, heads, queries).
  std::optional<Shape> rows = std::nullopt;
  const char* function = "attention";  ///< named by errors about numbers and targets
};

struct Attended {
  Array out;
  std::optional<Array> lse =
      std::nullopt;  ///< natural logarithms, float32, (batch, heads, queries)
};

/// softmax(scale * query key^T + ...) value for query (batch, heads, queries, dim), key and value
/// (batch, kv_heads, keys, dim): float16, bfloat16 or float32, any strides, head dimensions up to
/// 256, kv_heads a divisor of heads. With q_starts and k_starts packed sequences: (tokens, heads,
/// dim). Memory grows with queries + keys: T. Dao, "FlashAttention-2", 2023. A row that sees no key
/// is 0, and so are rows behind q_lengths. Products of 16-bit elements are summed in float32,
/// weights are rounded to the elements' type before they meet values. Results do not depend on
/// timing. Queued on `stream`. Throws ArgumentError, InvalidArgument, CompileError, OutOfMemory.
Attended attention(const Array& query, const Array& key, const Array& value,
                   const AttentionOptions& options, const Stream& stream = {});

/// The same for a few queries over long caches. The queries are the last queries.shape[2] of the
/// k_lengths tokens (of all tokens without lengths). Each sees itself and everything before it.
/// Caches are (batch, kv_heads, keys, dim), or with page_table (pages, page_size, kv_heads, dim).
/// Queries and keys of 16 bits over pages have up to 576 elements, values up to 256.
/// Their elements have the queries' type, or are int8, float8_e4m3fn or float8_e5m2 times k_scales
/// and v_scales, one scale for each head or, as append_cache() writes them, for each token and
/// head. Blocks share the context (T. Dao et al., "Flash-Decoding", 2023); their parts are summed
/// in a fixed order. A batch gives NaN if its table names a page outside the cache; nothing is read
/// for it.
Attended decode_attention(const Array& query, const Array& key, const Array& value,
                          const AttentionOptions& options, const Stream& stream = {});

/// decode_attention() of chunks of new tokens, sequences of any mixed lengths in one call. Packed
/// queries (tokens, heads, dim): sequence i has those from q_starts[i] to q_starts[i + 1], the last
/// ones of its k_lengths[i] tokens. Caches are pages, with page_table. Tokens behind the last start
/// give 0, as do those that see no key. Options: q_starts, k_lengths, page_table (all three),
/// most_queries, scale, soft_cap, left, right (0 under a causal mask, -1 without one), sinks,
/// k_scales, v_scales, wants_lse.
Attended paged_attention(const Array& query, const Array& key, const Array& value,
                         const AttentionOptions& options, const Stream& stream = {});

/// The targets of append_cache(): pages, and the unit of 8-bit elements.
struct CachePlaces {
  std::optional<Array> page_table = std::nullopt;  ///< int32 (batch, pages)
  /// float32 (kv_heads,), or with the cache's axes but the last: scales of each token and head,
  /// which are written with the tokens. Such a scale is the head's largest magnitude divided by the
  /// format's largest number.
  std::optional<Array> k_scales = std::nullopt, v_scales = std::nullopt;
  /// int32 (batch,), for batches of one token: the row of the page table, or of the cache, that a
  /// token belongs to. The token is left out where there is no such row.
  std::optional<Array> rows = std::nullopt;
};

/// Writes token t of batch b of key and value (batch, kv_heads, tokens, dim) to place positions[b]
/// + t of the caches; their layouts are those of decode_attention(). Tokens without a valid place
/// or page are left out. 8-bit elements are x / scale, rounded and kept inside of their range.
/// Queued on `stream`. Throws ArgumentError, InvalidArgument.
void append_cache(const Array& key, const Array& value, const Array& key_cache,
                  const Array& value_cache, const Array& positions, const CachePlaces& places,
                  const Stream& stream = {});

/// Queries, keys and values of new tokens: (batch, tokens, heads, dim) each, any strides; without
/// `k` and `v`, `q` is (batch, tokens, (heads + 2 kv_heads) dim).
struct NewTokens {
  Array q;
  std::optional<Array> k = std::nullopt, v = std::nullopt;
};
struct AppendOptions {
  /// Weights of the tokens' dtype or float32, (dim,): heads become x / sqrt(mean(x^2) + eps) *
  /// weight.
  std::optional<Array> q_weight = std::nullopt, k_weight = std::nullopt;
  double eps = 1e-6;
  /// As rope() takes them: (positions, pairs), float32, both or none.
  std::optional<Array> cos = std::nullopt, sin = std::nullopt;
  bool interleaved = false;
  /// int32 (batch, tokens): rows of the tables; without them those of the places in the cache.
  std::optional<Array> rope_positions = std::nullopt;
  CachePlaces places{};
};

/// The steps between the projection of new tokens and decode_attention(), in one launch: queries
/// and keys are normalised and turned as by norm() and rope(), keys and values are written as by
/// append_cache(). Each step's result is rounded to the tokens' dtype. Returns the queries, (batch,
/// heads, tokens, dim). Tokens are float16, bfloat16 or float32, of heads up to 256 elements.
/// Queued on `stream`. Throws ArgumentError, InvalidArgument.
Array append_qkv(const NewTokens& tokens, const Array& key_cache, const Array& value_cache,
                 const Array& positions, const AppendOptions& options, const Stream& stream = {});

}  // namespace kernwright::kernels
