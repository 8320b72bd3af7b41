// Positions in attention: rotary embedding, its tables, ALiBi, PoPE, scales by position, and the
// split of fused queries, keys and values.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/rope/token_views.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernwright::kernels {

enum class RopeScaling : std::uint8_t { none, linear, ntk, dynamic, yarn, llama3, longrope };
/// By the names of transformers' rope_type ("default", "linear", "ntk", ...); ArgumentError for
/// others, with the list.
RopeScaling rope_scaling_from_name(std::string_view name);

/// How frequencies follow from the dimension: 1 / base^(2 i / dim), then by `scaling` as in
/// transformers' modeling_rope_utils.py and its sources: linear (kaiokendev), ntk and dynamic
/// (bloc97, emozilla), yarn (B. Peng et al., 2023), llama3 (A. Dubey et al., 2024), longrope
/// (Y. Ding et al., 2024).
struct RopeRule {
  std::int64_t dim = 0;
  double base = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  double original = 0;       ///< positions before scaling: dynamic, yarn, llama3, longrope
  double length = 0;         ///< dynamic: positions in use; below `original` nothing changes
  double low = 1, high = 4;  ///< llama3: low_freq_factor, high_freq_factor
  double beta_fast = 32, beta_slow = 1;            ///< yarn
  bool truncate = true;                            ///< yarn: bounds to whole pairs
  std::optional<double> attention = std::nullopt;  ///< yarn, longrope: attention_factor
  double mscale = 0, mscale_all_dim = 0;           ///< yarn, of DeepSeek; 0: not there
  /// longrope: what each frequency is divided by, (dim / 2,) of float64; the caller chooses
  /// between those of short and of long contexts.
  std::optional<Array> divisors = std::nullopt;
};

/// The factor of cosines and sines: 1, for yarn 0.1 log(factor) + 1 and for longrope
/// sqrt(1 + log(factor) / log(original)), unless the rule has another one.
double rope_attention_factor(const RopeRule& rule);
/// (dim / 2,) frequencies of float32, computed in double on the device.
Array rope_frequencies(Device& device, const RopeRule& rule, const Stream& stream = {});

struct CosSin {
  Array cos, sin;
};
/// (rows, dim / 2) cosines and sines of float32 for positions from `first` on, times the attention
/// factor. Angles are products in double, rounded nowhere.
CosSin rope_tables(Device& device, const RopeRule& rule, std::int64_t rows, std::int64_t first,
                   const Stream& stream = {});

struct RopeOptions {
  PositionArgument positions{};
  bool interleaved = false;  ///< pairs are neighbours (GPT-J), else half of the rotary part apart
  bool heads_first = false;  ///< (batch, heads, tokens, dim), else (batch, tokens, heads, dim)
  bool in_place = false;
  /// The targets of q and k, not with `in_place`: of their shapes and types, any strides with the
  /// elements of a head side by side. Each may be its argument itself; else it lies apart from all
  /// arguments and the other target.
  std::optional<Array> q_out = std::nullopt, k_out = std::nullopt;
  bool inverse = false;  ///< the gradient of the forward
};
struct Rotated {
  Array q;
  std::optional<Array> k;
};
/// q and k with each pair (a, b) turned: (a cos - b sin, b cos + a sin), in one launch. Tables of
/// shape (positions, r / 2): the first r elements of each head turn, the rest stays. q and k share
/// batch, tokens and dim. A position outside of the tables gives NaN; positions without ids are
/// checked. Real floats, any strides. Throws ArgumentError, InvalidArgument.
Rotated rope(const Array& q, const std::optional<Array>& k, const CosSin& tables,
             const RopeOptions& options, const Stream& stream = {});

/// (heads,) slopes of float32.
Array alibi_slopes(Device& device, std::int64_t heads, const Stream& stream = {});
/// (heads, queries, keys): -slope * |query - key|, the last query at the last key.
Array alibi_bias(Device& device, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                 ScalarType type, const Stream& stream = {});

/// PoPE (A. Gopalakrishnan et al., "Decoupling the what and where with polar coordinate positional
/// embeddings", 2025): softplus(x) cos(angle) and softplus(x) sin(angle) after each other, twice as
/// many elements; angle = position * frequency + shift. Tables of shape (positions, dim); `shifts`
/// of float32, (dim,) or (heads, dim), for keys. With `grad`, of the result, the gradient of x.
Array pope(const Array& x, const CosSin& tables, const std::optional<Array>& shifts,
           const std::optional<Array>& grad, const RopeOptions& options, const Stream& stream = {});
/// The gradient of `shifts`, float32 of their shape: sums over batch and tokens, for (dim,) over
/// heads too, in a fixed order. `grad` is that of pope()'s result.
Array pope_shifts(const Array& x, const CosSin& tables, const Array& shifts, const Array& grad,
                  const RopeOptions& options, const Stream& stream = {});

/// Heads times log(floor((position + 1) / floor_scale) + 1) * slope + 1: the temperature of layers
/// without positions in Llama 4 (iRoPE).
Array scale_tokens(const Array& x, double floor_scale, double slope, const RopeOptions& options,
                   const Stream& stream = {});

struct SplitHeads {
  Array q, k, v;
};
/// (..., tokens, (q + 2 k heads) * dim) as three arrays (..., tokens, heads, dim), or with
/// `heads_first` (..., heads, tokens, dim), in one launch; two or three dimensions.
SplitHeads split_qkv(const Array& qkv, std::int64_t heads, std::int64_t kv_heads, bool heads_first,
                     const Stream& stream = {});
/// The inverse: also the gradient of split_qkv().
Array merge_qkv(const Array& q, const Array& k, const Array& v, bool heads_first,
                const Stream& stream = {});

}  // namespace kernwright::kernels
