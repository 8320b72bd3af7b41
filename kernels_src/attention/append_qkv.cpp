// Plans the pass over queries, keys and values of new tokens.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/attention/append_qkv.cu.h"
#include "kernels_src/attention/token_cache.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/row_plan.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {
namespace {

constexpr int kQkvThreads = 128;         ///< kThreads of append_qkv.cu
constexpr std::int64_t kQkvBlocks = 16;  ///< of a multiprocessor at a time
constexpr int kQkvValues = 16;           ///< of a head, held by a thread, as in norms
constexpr std::int64_t kMostQkvDim = 256;

// As in append_qkv.cu.
struct HeadWeights {
  CUdeviceptr values = 0;
  std::int32_t wide = 0;
};
struct QkvTables {
  CUdeviceptr cos = 0, sin = 0;
  std::int64_t rows = 0;
  std::int32_t half = 0;
};
struct AppendQkv {
  CacheAppend cache{};
  CUdeviceptr q = 0, out = 0;
  HeadStrides q_at{}, out_at{};
  HeadWeights q_norm{}, k_norm{};
  QkvTables tables{};
  CUdeviceptr positions = 0;
  std::int32_t heads = 0;
  float eps = 0;
};

/// (batch, heads, tokens, dim), any strides.
struct NewHeads {
  Array q, k, v;
};

Array heads_before_tokens(const Array& array) {
  static constexpr std::array kAxes = {0, 2, 1, 3};
  return array.transpose(kAxes);
}

[[noreturn]] void refuse_qkv(const Array& q, const Array& key_cache, const std::string& wanted) {
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes for append_qkv: the tokens are a {}, the key cache "
             "a {}; {}",
             q.identify(), key_cache.identify(), wanted));
}

/// One array of rows as its three parts.
NewHeads row_heads(const Array& rows, const Array& key_cache, const Array& value_cache, bool paged,
                   const Stream& on) {
  const std::int64_t dim = key_cache.shape().back(), kv_heads = key_cache.shape()[paged ? 2 : 1];
  const std::int64_t width = rows.ndim() == 3 ? rows.shape()[2] : -1;
  const std::int64_t heads = dim > 0 ? width / dim - 2 * kv_heads : -1;
  if (width < 0 || heads < 0 || width != (heads + 2 * kv_heads) * dim ||
      value_cache.shape().back() != dim) {
    refuse_qkv(rows, key_cache,
               "packed rows are (batch, tokens, (heads + 2 kv_heads) head_dim), with kv_heads and "
               "head_dim of both caches");
  }
  const Array whole = make_heads_whole(rows, on);
  const auto part = [&](std::int64_t first, std::int64_t count) {
    const Array columns = whole.slice(2, first * dim, count * dim, 1);
    return heads_before_tokens(columns.reshape({rows.shape()[0], rows.shape()[1], count, dim}));
  };
  return {part(0, heads), part(heads, kv_heads), part(heads + kv_heads, kv_heads)};
}

NewHeads token_heads(const NewTokens& tokens, const Array& key_cache, const Array& value_cache,
                     bool paged, const Stream& on) {
  const Array& q = tokens.q;
  const ScalarType type = q.type();
  if (type != ScalarType::float16 && type != ScalarType::bfloat16 && type != ScalarType::float32) {
    refuse_qkv(q, key_cache, "tokens are float16, bfloat16 or float32");
  }
  if (key_cache.ndim() != 4 || value_cache.ndim() != 4) {
    refuse_qkv(q, key_cache, "caches have four axes");
  }
  if (!tokens.k && !tokens.v) return row_heads(q, key_cache, value_cache, paged, on);
  const bool whole =
      tokens.k && tokens.v && q.ndim() == 4 && tokens.k->ndim() == 4 && tokens.v->ndim() == 4 &&
      tokens.k->type() == type &&
      std::equal(q.shape().begin(), q.shape().begin() + 2, tokens.k->shape().begin()) &&
      q.shape()[3] == tokens.k->shape()[3];
  if (!whole) {
    refuse_qkv(q, key_cache,
               "q, k and v are (batch, tokens, heads, head_dim) each; q and k differ in their "
               "heads alone");
  }
  require_one_device(q, "q", *tokens.k, "k");
  return {heads_before_tokens(make_heads_whole(q, on)),
          heads_before_tokens(make_heads_whole(*tokens.k, on)),
          heads_before_tokens(make_heads_whole(*tokens.v, on))};
}

HeadWeights head_weights(PlannedAppend& planned, const std::optional<Array>& given,
                         const char* name, const Array& q, const Stream& on) {
  if (!given) return {};
  const bool wide = given->type() == ScalarType::float32;
  require_append_vector(given, q, name, wide ? ScalarType::float32 : q.type(), {q.shape().back()});
  planned.used.push_back(contiguous(*given, on));
  return {planned.used.back().address(), wide ? 1 : 0};
}

QkvTables qkv_tables(PlannedAppend& planned, const AppendOptions& options, const Array& q,
                     const Stream& on) {
  if (!options.cos && !options.sin) return {};
  const bool pair = options.cos && options.sin;
  if (!pair || options.cos->type() != ScalarType::float32 || options.cos->ndim() != 2 ||
      2 * options.cos->shape()[1] > q.shape().back()) {
    const Array& one = options.cos ? *options.cos : *options.sin;
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: {} is a {}, queries are a {}; cos and sin come "
               "together, float32 of shape (positions, pairs that turn)",
               options.cos ? "cos" : "sin", one.identify(), q.identify()));
  }
  require_alike(*options.cos, "cos", *options.sin, "sin");
  require_one_device(q, "q", *options.cos, "cos");
  for (const Array* each : {&*options.cos, &*options.sin}) {
    const bool fits = each->is_contiguous() && each->address() % 16 == 0;
    planned.used.push_back(fits ? *each : copy(*each, on));
  }
  const std::size_t last = planned.used.size() - 1;
  return {planned.used[last - 1].address(), planned.used[last].address(), options.cos->shape()[0],
          static_cast<std::int32_t>(options.cos->shape()[1])};
}

/// Of (batch, heads, tokens, dim). An axis of one element has none: what a view says of it must not
/// narrow the packs.
HeadStrides query_strides(const Array& array) {
  HeadStrides at = like_queries(array, false);
  if (array.shape()[1] == 1) at.head = 0;
  if (array.shape()[2] == 1) at.token = 0;
  return at;
}

/// Elements of a thread's pack: no pack is partly turned, no pair of neighbours is cut unless all
/// are.
int qkv_width(const AppendQkv& call, ScalarType from, ScalarType to, bool interleaved) {
  int width = append_width(call.cache, from, to);
  const std::uint64_t size = scalar_size(from);
  const auto bits = [&](CUdeviceptr address, const HeadStrides& at) {
    return address | static_cast<std::uint64_t>(at.batch | at.head | at.token) * size;
  };
  width = std::min(width, pack_width(from, {bits(call.q, call.q_at), bits(call.out, call.out_at)}));
  for (const HeadWeights& weights : {call.q_norm, call.k_norm}) {
    const ScalarType type = weights.wide != 0 ? ScalarType::float32 : from;
    const std::uint64_t most = 16 / scalar_size(type);
    const auto weight_width = static_cast<std::uint64_t>(pack_width(type, {weights.values}));
    if (weight_width < most) width = std::min(width, static_cast<int>(weight_width));
  }
  const std::int32_t turning = interleaved ? 2 * call.tables.half : call.tables.half;
  while (width > 1 && turning % width != 0) width /= 2;
  return width;
}

void launch_qkv(PlannedAppend& planned, AppendQkv& call, ScalarType from, ScalarType to,
                bool interleaved, const Stream& on) {
  static const auto& family = *new Family("append_qkv.cu", text::append_qkv_cu);
  const int width = qkv_width(call, from, to, interleaved);
  planned.set_packs(width);
  call.cache = planned.call;
  const std::int64_t dim = std::max(call.cache.side[0].dim, call.cache.side[1].dim);
  const RowTile tile = tile_rows(dim, width, kQkvValues);
  const bool norms = call.q_norm.values != 0 || call.k_norm.values != 0;
  const bool token_scales = call.cache.side[0].token_scales != 0;
  const auto key = InstanceKey()
                       .type(from)
                       .type(to)
                       .add(width, 4)
                       .add(tile.items, 6)
                       .add(tile.width, 6)
                       .add(interleaved, 1)
                       .add(norms, 1)
                       .add(token_scales, 1);
  const LazyKernel& kernel = family.instance(key, [&] {
    return format("append_qkv<{}, {}, {}, {}, {}, {}, {}{}>", device_type(from), device_type(to),
                  width, tile.items, tile.width, interleaved, norms, token_scales ? ", true" : "");
  });
  const std::int64_t tokens = std::int64_t{call.cache.batches} * call.cache.tokens;
  const std::int64_t heads = call.heads + std::int64_t{2} * call.cache.heads;
  const std::int64_t each = kQkvThreads / tile.width;
  Device& device = planned.used.front().device();
  // The fewer blocks a token has, the more heads turn by angles that are loaded once.
  const std::int64_t wave = kQkvBlocks * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const std::int64_t shares = std::clamp<std::int64_t>(wave / tokens, 1, ceil_div(heads, each));
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(tokens), static_cast<std::uint32_t>(shares)},
      .block = {static_cast<std::uint32_t>(kQkvThreads)},
      .stream = on,
      .programmatic_dependent = overlaps_launches(device, tokens * shares)};
  launch(kernel.on(device), config, call);
}

}  // namespace

Array append_qkv(const NewTokens& tokens, const Array& key_cache, const Array& value_cache,
                 const Array& positions, const AppendOptions& options, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(tokens.q.device());
  const NewHeads heads =
      token_heads(tokens, key_cache, value_cache, options.places.page_table.has_value(), on);
  PlannedAppend planned =
      plan_append(heads.k, heads.v, key_cache, value_cache, positions, options.places, on);
  const Shape& shape = heads.q.shape();
  if (std::max(shape.back(), heads.v.shape().back()) > kMostQkvDim) {
    refuse_qkv(tokens.q, key_cache, format("heads have at most {} elements", kMostQkvDim));
  }
  AppendQkv call;
  call.q_norm = head_weights(planned, options.q_weight, "q_weight", heads.q, on);
  call.k_norm = head_weights(planned, options.k_weight, "k_weight", heads.q, on);
  call.tables = qkv_tables(planned, options, heads.q, on);
  require_append_vector(options.rope_positions, heads.q, "rope_positions", ScalarType::int32,
                        {shape[0], shape[2]});
  if (options.rope_positions) {
    planned.used.push_back(contiguous(*options.rope_positions, on));
    call.positions = planned.used.back().address();
  }
  Array out = Array::empty(heads.q.device(), shape, heads.q.type(), on);
  planned.used.push_back(heads.q);
  planned.used.push_back(out);
  if (out.size() + planned.elements == 0) return out;
  call.cache = planned.call;
  call.q = heads.q.address();
  call.q_at = query_strides(heads.q);
  call.out = out.address();
  call.out_at = query_strides(out);
  call.heads = static_cast<std::int32_t>(shape[1]);
  call.eps = static_cast<float>(options.eps);
  launch_qkv(planned, call, heads.q.type(), key_cache.type(), options.interleaved, on);
  for (const Array& each : planned.used) each.use_on(on);
  return out;
}

}  // namespace kernwright::kernels
