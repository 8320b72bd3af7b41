// Checks of attention's arguments, strides, results.
#include "kernels_src/attention/attention_call.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/operands.h"
#include "kernels_src/result_target.h"

#include <algorithm>
#include <cmath>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostAttentionTokens = std::int64_t{1} << 29;
constexpr std::int64_t kMostDim = 256;
constexpr std::int64_t kMostLatentDim = 576;  // of queries and keys that share a latent vector

bool is_small_cache(ScalarType type) { return type == ScalarType::int8 || is_float8(type); }

/// Strides in elements by the places of batch, head and token; -1: no such axis.
HeadStrides attention_strides(const Array& array, int batch, int head, int token) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  const auto at = [&](int axis) {
    return axis < 0 ? 0 : array.strides()[static_cast<std::size_t>(axis)] / size;
  };
  return {at(batch), at(head), at(token)};
}

[[noreturn]] void refuse_attention(const Array& q, const Array& k, const Array& v,
                                   const std::string& wanted) {
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes for attention: query is a {}, key a {}, value a "
             "{}; {}",
             q.identify(), k.identify(), v.identify(), wanted));
}

void require_attention_types(const Array& q, const Array& k, const Array& v,
                             AttentionOperands operands) {
  require_one_device(q, "query", k, "key");
  require_one_device(q, "query", v, "value");
  const ScalarType type = q.type();
  if (operands == AttentionOperands::float8) {
    if (is_float8(type) && is_float8(k.type()) && is_float8(v.type())) return;
    refuse_attention(q, k, v, "all three are float8_e4m3fn or float8_e5m2");
  }
  const bool caches = operands == AttentionOperands::caches;
  if (type != ScalarType::float16 && type != ScalarType::bfloat16 && type != ScalarType::float32) {
    refuse_attention(q, k, v,
                     "queries are float16, bfloat16 or float32: convert them with .astype()");
  }
  if (type != ScalarType::float32 && q.device().compute_capability().major < 8) {
    refuse_attention(q, k, v, "16-bit elements need compute capability 8.0: use float32");
  }
  const bool small = caches && is_small_cache(k.type()) && type != ScalarType::float32;
  if (k.type() != v.type() || (k.type() != type && !small)) {
    refuse_attention(q, k, v,
                     caches ? "keys and values have the queries' dtype, or int8, float8_e4m3fn or "
                              "float8_e5m2 beside queries of 16 bits"
                            : "all three have the same dtype");
  }
}

std::int32_t window_side(std::int64_t keys) {
  return static_cast<std::int32_t>(keys < 0 ? -1 : std::min(keys, kMostAttentionTokens));
}

/// Shapes and strides of the operands.
void lay_out_attention(PreparedAttention& made, const AttentionOptions& options) {
  const Array &q = made.q, &k = made.k, &v = made.v;
  AttentionCall& call = made.call;
  const bool packed = options.q_starts.has_value(), paged = options.page_table.has_value();
  const bool packed_keys = packed && !paged;
  const int axes = packed ? 3 : 4, key_axes = packed_keys ? 3 : 4;
  if (q.ndim() != axes || k.ndim() != key_axes || v.ndim() != key_axes ||
      options.k_starts.has_value() != packed_keys) {
    refuse_attention(q, k, v,
                     packed && paged
                         ? "packed queries over pages have the axes (tokens, heads, head_dim), "
                           "pages (pages, page_size, kv_heads, head_dim)"
                     : packed ? "packed sequences have the axes (tokens, heads, head_dim), and "
                                "both starts of queries and of keys"
                              : "they have the axes (batch, heads, tokens, head_dim)");
  }
  const auto at = [](const Array& array, int axis) {
    return array.shape()[static_cast<std::size_t>(axis)];
  };
  const int q_head = 1, q_token = packed ? 0 : 2;
  const int k_head = paged ? 2 : 1, k_token = paged ? 1 : q_token;
  const std::int64_t batches = packed ? options.q_starts->size() - 1 : at(q, 0);
  const std::int64_t heads = at(q, q_head), kv_heads = at(k, k_head);
  const bool same = at(v, k_head) == kv_heads && at(k, k_token) == at(v, k_token) &&
                    (packed_keys || at(k, 0) == at(v, 0)) &&
                    (packed_keys || paged || at(k, 0) == batches);
  const bool grouped = heads == 0 || (kv_heads > 0 && heads % kv_heads == 0);
  if (!same || !grouped || q.shape().back() != k.shape().back() || batches < 0) {
    refuse_attention(q, k, v,
                     "batch and tokens of key and value agree, heads of the query are a multiple "
                     "of theirs, head_dim of the query is that of the key");
  }
  const bool latent = paged && scalar_size(q.type()) == 2 && k.type() == q.type();
  if (q.shape().back() > (latent ? kMostLatentDim : kMostDim) || v.shape().back() > kMostDim) {
    refuse_attention(q, k, v,
                     "head_dim is at most 256, that of queries and keys 576 over pages of 16 bits");
  }
  const std::int64_t keys = paged ? at(k, 1) * at(*options.page_table, 1) : at(k, k_token);
  if (at(q, q_token) > kMostAttentionTokens || keys > kMostAttentionTokens ||
      batches > kMostAttentionTokens) {
    refuse_attention(q, k, v, format("there are at most {} tokens", kMostAttentionTokens));
  }
  call.batches = static_cast<std::int32_t>(batches);
  call.heads = static_cast<std::int32_t>(heads);
  call.kv_heads = static_cast<std::int32_t>(kv_heads);
  call.queries = static_cast<std::int32_t>(at(q, q_token));
  call.keys = static_cast<std::int32_t>(keys);
  call.dim = static_cast<std::int32_t>(q.shape().back());
  call.value_dim = static_cast<std::int32_t>(v.shape().back());
  call.q_at = attention_strides(q, packed ? -1 : 0, q_head, q_token);
  call.k_at = attention_strides(k, packed_keys ? -1 : 0, k_head, k_token);
  call.v_at = attention_strides(v, packed_keys ? -1 : 0, k_head, k_token);
  const bool known = packed && options.most_queries > 0;
  made.most_queries =
      known ? std::min<std::int64_t>(call.queries, options.most_queries) : call.queries;
  call.q = q.address();
  call.k = k.address();
  call.v = v.address();
}

/// Adds a contiguous array of the kernels' own types, and gives its address.
CUdeviceptr add_attention_vector(PreparedAttention& made, const std::optional<Array>& given,
                                 const char* name, ScalarType type, const Shape& shape,
                                 const Stream& on) {
  if (!given) return 0;
  require_one_device(made.q, "query", *given, name);
  if (given->type() != type || given->shape() != shape) {
    std::string extents;
    for (const std::int64_t extent : shape) extents += format("{}, ", extent);
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: {} is a {}, and must be {} of shape ({})", name,
               given->identify(), type == ScalarType::int32 ? "int32" : "float32",
               extents.empty() ? extents : extents.substr(0, extents.size() - 1)));
  }
  made.others.push_back(contiguous(*given, on));
  return made.others.back().address();
}

void add_attention_mask(PreparedAttention& made, const AttentionOptions& options) {
  if (!options.mask) return;
  const Array& mask = *options.mask;
  AttentionCall& call = made.call;
  require_one_device(made.q, "query", mask, "attn_mask");
  const ScalarType type = mask.type();
  const Shape wanted = {call.batches, call.heads, call.queries, call.keys};
  bool fits = mask.ndim() <= 4 && !options.q_starts;
  std::int64_t strides[4] = {};
  const auto size = static_cast<std::int64_t>(scalar_size(type));
  for (int axis = 0; fits && axis < mask.ndim(); ++axis) {
    const auto mask_axis = static_cast<std::size_t>(axis);
    const std::size_t in = mask_axis + 4 - static_cast<std::size_t>(mask.ndim());
    const std::int64_t extent = mask.shape()[mask_axis];
    fits = extent == wanted[in] || extent == 1;
    strides[in] = extent == 1 ? 0 : mask.strides()[mask_axis] / size;
  }
  if (!fits ||
      (type != ScalarType::boolean && type != ScalarType::float32 && type != made.q.type())) {
    throw InvalidArgument(format(
        "Incompatible dimensions or dtypes: attn_mask is a {}, and must be bool, float32 or "
        "of the query's dtype, and broadcast to ({}, {}, {}, {}); packed sequences take none",
        mask.identify(), call.batches, call.heads, call.queries, call.keys));
  }
  call.mask = mask.address();
  call.mask_kind = type == ScalarType::boolean ? 1 : type == made.q.type() ? 2 : 3;
  call.mask_batch = strides[0];
  call.mask_head = strides[1];
  call.mask_query = strides[2];
  call.mask_key = strides[3];
  made.others.push_back(mask);
}

void add_attention_numbers(PreparedAttention& made, const AttentionOptions& options) {
  AttentionCall& call = made.call;
  const double natural = 1.0 / std::sqrt(static_cast<double>(std::max(call.dim, 1)));
  const double scale = options.scale.value_or(natural);
  if (!std::isfinite(scale) || !std::isfinite(options.soft_cap) || options.soft_cap < 0) {
    throw InvalidArgument(
        format("{}: scale is {}, soft_cap {}; both must be finite, "
               "soft_cap at least 0 (0: none)",
               options.function, scale, options.soft_cap));
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    throw InvalidArgument(
        format("attention: dropout_p is {}, and must be between 0 and 1", options.dropout));
  }
  call.scale = static_cast<float>(scale);
  call.soft_cap = static_cast<float>(options.soft_cap);
  call.left = window_side(options.left);
  call.right = window_side(options.right);
  call.bottom = options.bottom ? 1 : 0;
  call.seed = options.seed;
  call.offset = options.offset;
  if (options.dropout > 0) {
    call.drop_below = static_cast<std::uint32_t>(
        std::clamp(std::round(options.dropout * 4294967296.0), 1.0, 4294967295.0));
    // At 1 nothing is kept, also not the one word in 2^32 that is not below the bound.
    call.keep_scale =
        options.dropout < 1 ? static_cast<float>(1.0 / (1.0 - options.dropout)) : 0.0f;
  }
}

void add_attention_vectors(PreparedAttention& made, const AttentionOptions& options,
                           const Stream& on) {
  AttentionCall& call = made.call;
  constexpr ScalarType kInts = ScalarType::int32, kFloats = ScalarType::float32;
  const Shape batch = {call.batches}, starts = {call.batches + std::int64_t{1}};
  call.q_lengths = add_attention_vector(made, options.q_lengths, "query lengths", kInts, batch, on);
  call.k_lengths = add_attention_vector(made, options.k_lengths, "lengths", kInts, batch, on);
  call.q_starts = add_attention_vector(made, options.q_starts, "query starts", kInts, starts, on);
  call.k_starts = add_attention_vector(made, options.k_starts, "key starts", kInts, starts, on);
  call.sinks = add_attention_vector(made, options.sinks, "sinks", kFloats, {call.heads}, on);
  const bool each = options.slopes && options.slopes->ndim() == 2;
  const Shape slopes = each ? Shape{call.batches, call.heads} : Shape{call.heads};
  call.slopes = add_attention_vector(made, options.slopes, "alibi", kFloats, slopes, on);
  call.slopes_batch = each ? call.heads : 0;
  if (have_token_scales(options.k_scales, options.v_scales)) {
    call.scales_at = token_scale_strides(made.k, options.k_scales, options.v_scales,
                                         options.page_table.has_value());
    call.k_token_scales = options.k_scales->address();
    call.v_token_scales = options.v_scales->address();
    made.others.push_back(*options.k_scales);
    made.others.push_back(*options.v_scales);
  } else {
    call.k_scales =
        add_attention_vector(made, options.k_scales, "key_scale", kFloats, {call.kv_heads}, on);
    call.v_scales =
        add_attention_vector(made, options.v_scales, "value_scale", kFloats, {call.kv_heads}, on);
  }
  if (!options.page_table) return;
  const std::int64_t pages = options.page_table->shape()[1];
  call.table = add_attention_vector(made, options.page_table, "page_table", kInts,
                                    {call.batches, pages}, on);
  // The address tells kernels that there are pages. Nobody reads an empty table, which has none.
  if (call.table == 0) call.table = call.q_starts;
  call.table_row = pages;
  call.pages = static_cast<std::int32_t>(pages);
  call.page_size = static_cast<std::int32_t>(std::max<std::int64_t>(1, made.k.shape()[1]));
  call.page_limit =
      static_cast<std::int32_t>(std::min<std::int64_t>(made.k.shape()[0], std::int64_t{1} << 30));
}

/// `out` in the axes of the queries, of `shape`, where every kernel can store there.
std::optional<Array> attention_target(const Array& out, const Shape& shape) {
  constexpr std::int64_t kAlignment = 16;
  const std::size_t size = scalar_size(out.type());
  if (out.address() % kAlignment != 0) return std::nullopt;
  // By way of one axis, so that axes of extent 1 have the strides of a new array.
  if (out.is_contiguous()) return out.reshape({out.size()}).reshape(shape);
  if (!reshape_strides(out.shape(), out.strides(), shape, size)) return std::nullopt;
  Array target = out.reshape(shape);
  const Shape& strides = target.strides();
  const bool aligned = std::all_of(strides.begin(), strides.end() - 1, [](std::int64_t stride) {
    return stride > 0 && stride % kAlignment == 0;
  });
  const bool dense = strides.back() == static_cast<std::int64_t>(size);
  if (!aligned || !dense) return std::nullopt;
  return target;
}

/// Copies that the operands became lie apart anyway.
void require_apart_from_operands(const PreparedAttention& made, const AttentionOptions& options,
                                 const std::optional<Array>& out, const ResultForm& form) {
  require_apart(out, form,
                {{"query", &made.q},
                 {"key", &made.k},
                 {"value", &made.v},
                 {"attn_mask", pointer_or_null(options.mask)},
                 {"sinks", pointer_or_null(options.sinks)},
                 {"alibi", pointer_or_null(options.slopes)},
                 {"query lengths", pointer_or_null(options.q_lengths)},
                 {"lengths", pointer_or_null(options.k_lengths)},
                 {"query starts", pointer_or_null(options.q_starts)},
                 {"key starts", pointer_or_null(options.k_starts)},
                 {"page_table", pointer_or_null(options.page_table)},
                 {"key_scale", pointer_or_null(options.k_scales)},
                 {"value_scale", pointer_or_null(options.v_scales)}});
}

int head_class(std::int64_t dim, ScalarType type) {
  if (type == ScalarType::float32) return dim <= 64 ? 64 : dim <= 128 ? 128 : 256;
  for (const int extent : {64, 96, 128, 192, 256}) {
    if (dim <= extent) return extent;
  }
  return static_cast<int>(kMostLatentDim);
}

}  // namespace

Array make_heads_whole(const Array& array, const Stream& on) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  const bool even = std::all_of(array.strides().begin(), array.strides().end(),
                                [&](std::int64_t stride) { return stride % size == 0; });
  const bool side_by_side = array.shape().back() <= 1 || array.strides().back() == size;
  return even && side_by_side ? array : copy(array, on);
}

bool have_token_scales(const std::optional<Array>& k_scales, const std::optional<Array>& v_scales) {
  return (k_scales && k_scales->ndim() == 3) || (v_scales && v_scales->ndim() == 3);
}

HeadStrides token_scale_strides(const Array& key_cache, const std::optional<Array>& k_scales,
                                const std::optional<Array>& v_scales, bool paged) {
  Shape shape = key_cache.shape();
  shape.pop_back();
  const std::optional<Array>* const all[] = {&k_scales, &v_scales};
  for (const std::optional<Array>* const each : all) {
    const bool fits = *each && (*each)->type() == ScalarType::float32 &&
                      (*each)->shape() == shape && (*each)->is_contiguous() &&
                      is_small_cache(key_cache.type());
    if (fits) {
      require_one_device(key_cache, "key_cache", **each, "a scale");
      continue;
    }
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: {} is {}, the key cache a {}; scales of tokens "
               "come for keys and values together, contiguous float32 of the cache's shape without "
               "its last axis, beside caches of 8-bit elements",
               each == &k_scales ? "key_scale" : "value_scale",
               *each ? "a " + (*each)->identify() : std::string("None"), key_cache.identify()));
  }
  const std::int64_t inner = shape[1] * shape[2];
  return paged ? HeadStrides{inner, 1, shape[2]} : HeadStrides{inner, shape[2], 1};
}

HeadStrides like_queries(const Array& array, bool packed) {
  return attention_strides(array, packed ? -1 : 0, 1, packed ? 0 : 2);
}

std::uint64_t access_bits(const Array& array, const HeadStrides& at, std::int64_t dim) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  return array.address() | static_cast<std::uint64_t>((at.batch | at.head | at.token | dim) * size);
}

void set_result(PreparedAttention& made, Array out, std::optional<Array> lse, bool packed) {
  AttentionCall& call = made.call;
  made.made = {std::move(out), std::move(lse)};
  call.out = made.made.out.address();
  call.out_at = like_queries(made.made.out, packed);
  call.lse = made.made.lse ? made.made.lse->address() : 0;
  const std::int64_t tokens = call.queries;
  call.lse_at = {packed ? 0 : call.heads * tokens, tokens, 1};
}

void allocate_result(PreparedAttention& made, const AttentionOptions& options, const Stream& on) {
  const AttentionCall& call = made.call;
  Device& device = made.q.device();
  const bool packed = options.q_starts.has_value();
  Shape shape = made.q.shape();
  shape.back() = call.value_dim;
  const ScalarType type = is_float8(made.q.type()) ? ScalarType::bfloat16 : made.q.type();
  Shape target_shape = options.rows.value_or(Shape(shape.begin(), shape.end() - 1));
  target_shape.push_back(call.value_dim);
  const ResultForm form{options.function, device, target_shape, type};
  std::optional<Array> out;
  if (options.out) {
    made.out = result_array(options.out, form, on);
    out = attention_target(*made.out, shape);
  }
  std::optional<Array> lse;
  if (options.wants_lse) {
    Shape rows = {call.batches, call.heads, call.queries};
    if (packed) rows = {call.heads, call.queries};
    const ResultForm logarithms{options.function, device, options.rows ? *options.rows : rows,
                                ScalarType::float32, "the out of logarithms"};
    made.lse_out = options.lse_out;
    lse = direct_target(options.lse_out, logarithms, on);
    require_apart_from_operands(made, options, options.lse_out, logarithms);
    if (!lse) lse = Array::empty(device, rows, ScalarType::float32, on);
    lse = lse->reshape(std::move(rows));
    require_apart(options.out, form, {{logarithms.name, pointer_or_null(options.lse_out)}});
  }
  require_apart_from_operands(made, options, options.out, form);
  if (!out) out = Array::empty(device, std::move(shape), type, on);
  set_result(made, std::move(*out), std::move(lse), packed);
}

Attended deliver_result(const PreparedAttention& made, const Stream& on) {
  made.use_on(on);
  Attended result = made.made;
  if (made.out) result.out = deliver(made.out, result.out, on);
  if (made.lse_out && result.lse) result.lse = deliver(made.lse_out, *result.lse, on);
  return result;
}

std::int64_t PreparedAttention::count_tiles(std::int64_t rows, std::int64_t each) const {
  // As PackedTile of attention.cuh numbers them.
  if (shares_tiles()) return call.queries * each / rows + call.batches + 1;
  return (most_queries * each + rows - 1) / rows;
}

std::int64_t PreparedAttention::share_rows(std::int64_t rows, std::int64_t each) {
  call.row_tiles = static_cast<std::int32_t>(count_tiles(rows, each));
  return std::int64_t{call.row_tiles} * (shares_tiles() ? 1 : call.batches);
}

bool PreparedAttention::moves_packs(bool queries) const {
  const std::uint64_t bits = access_bits(k, call.k_at, call.dim) |
                             access_bits(v, call.v_at, call.value_dim) |
                             (queries ? access_bits(q, call.q_at, call.dim) : 0);
  return bits % 16 == 0;
}

void PreparedAttention::use_on(const Stream& on) const {
  for (const Array* each : {&q, &k, &v, &made.out}) each->use_on(on);
  for (const Array& each : others) each.use_on(on);
  if (made.lse) made.lse->use_on(on);
}

PreparedAttention prepare_attention(const Array& query, const Array& key, const Array& value,
                                    const AttentionOptions& options, AttentionOperands operands,
                                    const Stream& on) {
  require_attention_types(query, key, value, operands);
  if (options.page_table && options.page_table->ndim() != 2) {
    throw InvalidArgument(
        format("Incompatible dimensions: page_table is a {}, and must be int32 of "
               "shape (batch, pages)",
               options.page_table->identify()));
  }
  for (const auto* starts : {&options.q_starts, &options.k_starts}) {
    if (*starts && ((*starts)->ndim() != 1 || (*starts)->size() == 0)) {
      throw InvalidArgument(
          format("Incompatible dimensions: starts of sequences are a {}, and must "
                 "be int32 of shape (batch + 1,)",
                 (*starts)->identify()));
    }
  }
  PreparedAttention made;
  for (const auto& [from, to] : {std::pair{&query, &made.q}, {&key, &made.k}, {&value, &made.v}}) {
    *to = from->ndim() == 0 ? *from : make_heads_whole(*from, on);
  }
  lay_out_attention(made, options);
  add_attention_numbers(made, options);
  add_attention_vectors(made, options, on);
  add_attention_mask(made, options);
  made.extras = options.soft_cap > 0 || options.mask || options.slopes;
  made.dim_class = head_class(made.call.dim, made.q.type());
  made.value_class = head_class(made.call.value_dim, made.q.type());
  return made;
}

}  // namespace kernwright::kernels
