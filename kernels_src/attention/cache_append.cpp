// Plans how new tokens are written to caches.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/attention/cache_append.cu.h"
#include "kernels_src/attention/token_cache.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kAppendThreads = 256;

std::int64_t append_extent(const Array& array, int axis) {
  return array.shape()[static_cast<std::size_t>(axis)];
}

std::int64_t append_step(const Array& array, int axis) {
  if (append_extent(array, axis) <= 1 && axis != 0) return 0;
  return array.strides()[static_cast<std::size_t>(axis)] /
         static_cast<std::int64_t>(scalar_size(array.type()));
}

void require_append_cache(const Array& tokens, const char* name, const Array& cache,
                          const char* cache_name, const CachePlaces& places) {
  const bool paged = places.page_table.has_value();
  require_floating(tokens, "append_cache", name);
  require_one_device(tokens, name, cache, cache_name);
  const ScalarType type = cache.type();
  const bool small =
      scalar_size(tokens.type()) <= 4 && (type == ScalarType::int8 || is_float8(type));
  const bool fits = tokens.ndim() == 4 && cache.ndim() == 4 &&
                    (type == tokens.type() || (small && scalar_size(tokens.type()) > 1)) &&
                    append_extent(cache, 3) == append_extent(tokens, 3) &&
                    append_extent(cache, paged ? 2 : 1) == append_extent(tokens, 1) &&
                    (paged || places.rows || append_extent(cache, 0) == append_extent(tokens, 0));
  const auto size = static_cast<std::int64_t>(scalar_size(type));
  const bool side_by_side = fits &&
                            (append_extent(cache, 3) <= 1 || cache.strides().back() == size) &&
                            std::all_of(cache.strides().begin(), cache.strides().end(),
                                        [&](std::int64_t stride) { return stride % size == 0; });
  if (side_by_side && !cache.read_only()) return;
  throw InvalidArgument(format(
      "Incompatible dimensions or dtypes: {} is a {}, {} a {}; tokens are (batch, kv_heads, "
      "tokens, head_dim), a cache {}, writable, with the elements of a head side by side, of "
      "the tokens' dtype, int8 or an 8-bit float",
      name, tokens.identify(), cache_name, cache.identify(),
      paged ? "(pages, page_size, kv_heads, head_dim)" : "(batch, kv_heads, places, head_dim)"));
}

CacheSide append_side(const Array& tokens, const Array& cache, const std::optional<Array>& scales,
                      bool paged) {
  CacheSide side{.from = tokens.address(), .to = cache.address()};
  side.from_at = {append_step(tokens, 0), append_step(tokens, 1), append_step(tokens, 2)};
  side.to_at = {append_step(cache, 0), append_step(cache, paged ? 2 : 1),
                append_step(cache, paged ? 1 : 2)};
  side.scales = scales ? scales->address() : 0;
  side.dim = static_cast<std::int32_t>(append_extent(tokens, 3));
  return side;
}

void launch_append(PlannedAppend& planned, ScalarType from, ScalarType to, Device& device,
                   const Stream& on) {
  static const auto& family = *new Family("cache_append.cu", text::cache_append_cu);
  const CacheAppend& call = planned.call;
  const int width = append_width(call, from, to);
  planned.set_packs(width);
  const LazyKernel& kernel = family.instance(InstanceKey().type(from).type(to).add(width, 5), [&] {
    return format("append_cache<{}, {}, {}>", device_type(from), device_type(to), width);
  });
  const std::int64_t packs = std::max(call.side[0].packs, call.side[1].packs);
  const std::int64_t items = std::int64_t{call.batches} * call.tokens * call.heads * packs;
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(ceil_div(items, kAppendThreads)), 2},
      .block = {static_cast<std::uint32_t>(kAppendThreads)},
      .stream = on};
  launch(kernel.on(device), config, call);
  for (const Array& each : planned.used) each.use_on(on);
}

void require_append_pair(const Array& key, const Array& value, const Array& key_cache,
                         const Array& value_cache, const CachePlaces& places) {
  require_append_cache(key, "key", key_cache, "key_cache", places);
  require_append_cache(value, "value", value_cache, "value_cache", places);
  const int token_axis = places.page_table ? 1 : 2;
  bool alike = key.type() == value.type() && key_cache.type() == value_cache.type() &&
               append_extent(key_cache, token_axis) == append_extent(value_cache, token_axis) &&
               append_extent(key_cache, 0) == append_extent(value_cache, 0);
  for (int axis = 0; axis < 3; ++axis)
    alike &= append_extent(key, axis) == append_extent(value, axis);
  if (alike) return;
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: key is a {}, value a {}, key_cache a {}, "
             "value_cache a {}; keys and values differ in head_dim alone",
             key.identify(), value.identify(), key_cache.identify(), value_cache.identify()));
}

void require_append_rows(const Array& rows, const Array& key) {
  if (append_extent(key, 2) != 1) {
    throw InvalidArgument(
        format("Incompatible dimensions: with token_rows tokens are packed, (tokens, kv_heads, 1, "
               "head_dim) or without the axis of 1; key is a {}",
               key.identify()));
  }
  require_append_vector(rows, key, "token_rows", ScalarType::int32, {append_extent(key, 0)});
}

/// Pages of each batch; the places of a batch then.
std::int64_t add_append_pages(PlannedAppend& made, const Array& key, const Array& key_cache,
                              const Array& table, const Stream& on) {
  require_one_device(key, "key", table, "page_table");
  CacheAppend& call = made.call;
  if (table.type() != ScalarType::int32 || table.ndim() != 2 ||
      (call.rows == 0 && append_extent(table, 0) != append_extent(key, 0))) {
    throw InvalidArgument(format(
        "Incompatible dimensions or dtypes: page_table is a {}, and must "
        "be int32 of shape ({}, pages)",
        table.identify(), call.rows == 0 ? format("{}", append_extent(key, 0)) : "sequences"));
  }
  made.used.push_back(contiguous(table, on));
  call.table = made.used.back().address();
  call.table_row = append_extent(table, 1);
  call.page_size =
      static_cast<std::int32_t>(std::max<std::int64_t>(1, append_extent(key_cache, 1)));
  call.pages = static_cast<std::int32_t>(call.table_row);
  call.page_limit = static_cast<std::int32_t>(append_extent(key_cache, 0));
  return append_extent(key_cache, 1) * call.table_row;
}

/// Calls append_qkv() without queries: there one warp has all elements of a head.
void append_by_heads(const Array& key, const Array& value, const Array& key_cache,
                     const Array& value_cache, const Array& positions, const CachePlaces& places,
                     const Stream& on) {
  require_append_pair(key, value, key_cache, value_cache, places);
  constexpr std::array kAxes = {0, 2, 1, 3};
  const Array k = key.transpose(kAxes);
  const NewTokens tokens{.q = k.slice(2, 0, 0, 1), .k = k, .v = value.transpose(kAxes)};
  append_qkv(tokens, key_cache, value_cache, positions, {.places = places}, on);
}

}  // namespace

void PlannedAppend::set_packs(int width) {
  for (CacheSide& side : call.side) side.packs = std::max(side.dim / width, 1);
}

int append_width(const CacheAppend& call, ScalarType from, ScalarType to) {
  int width = 8;
  for (const CacheSide& side : call.side) {
    const auto bits = [&](CUdeviceptr address, const HeadStrides& at, ScalarType type) {
      const std::int64_t steps = at.batch | at.head | at.token | side.dim;
      return address | static_cast<std::uint64_t>(steps) * scalar_size(type);
    };
    width = std::min({width, pack_width(from, {bits(side.from, side.from_at, from)}),
                      pack_width(to, {bits(side.to, side.to_at, to)})});
  }
  return width;
}

void require_append_vector(const std::optional<Array>& given, const Array& key, const char* name,
                           ScalarType type, const Shape& shape) {
  if (!given) return;
  require_one_device(key, "key", *given, name);
  if (given->type() == type && given->shape() == shape) return;
  std::string extents;
  for (const std::int64_t extent : shape) extents += format("{}, ", extent);
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: {} is a {}, and must be {} of "
             "shape ({})",
             name, given->identify(), scalar_name(type), extents.substr(0, extents.size() - 1)));
}

PlannedAppend plan_append(const Array& key, const Array& value, const Array& key_cache,
                          const Array& value_cache, const Array& positions,
                          const CachePlaces& places, const Stream& on) {
  const bool paged = places.page_table.has_value();
  require_append_pair(key, value, key_cache, value_cache, places);
  const std::int64_t batches = append_extent(key, 0), heads = append_extent(key, 1);
  require_append_vector(positions, key, "positions", ScalarType::int32, {batches});
  const bool has_token_scales = have_token_scales(places.k_scales, places.v_scales);
  if (!has_token_scales) {
    require_append_vector(places.k_scales, key, "key_scale", ScalarType::float32, {heads});
    require_append_vector(places.v_scales, key, "value_scale", ScalarType::float32, {heads});
  }
  PlannedAppend made;
  std::vector<Array>& used = made.used;
  used = {make_heads_whole(key, on), make_heads_whole(value, on), contiguous(positions, on),
          key_cache, value_cache};
  std::optional<Array> scales[2];
  if (places.k_scales && !has_token_scales) {
    used.push_back(scales[0].emplace(contiguous(*places.k_scales, on)));
  }
  if (places.v_scales && !has_token_scales) {
    used.push_back(scales[1].emplace(contiguous(*places.v_scales, on)));
  }
  CacheAppend& call = made.call;
  call.side[0] = append_side(used[0], key_cache, scales[0], paged);
  call.side[1] = append_side(used[1], value_cache, scales[1], paged);
  if (has_token_scales) {
    const HeadStrides strides =
        token_scale_strides(key_cache, places.k_scales, places.v_scales, paged);
    const Array* const token_scales[] = {&*places.k_scales, &*places.v_scales};
    for (int side = 0; side < 2; ++side) {
      call.side[side].token_scales = token_scales[side]->address();
      call.side[side].scales_at = strides;
      used.push_back(*token_scales[side]);
    }
  }
  call.positions = used[2].address();
  std::int64_t capacity = append_extent(key_cache, 2), rows = append_extent(key_cache, 0);
  if (places.rows) {
    require_append_rows(*places.rows, key);
    used.push_back(contiguous(*places.rows, on));
    call.rows = used.back().address();
  }
  if (paged) capacity = add_append_pages(made, key, key_cache, *places.page_table, on);
  made.elements = key.size() + value.size();
  call.batches = static_cast<std::int32_t>(batches);
  call.heads = static_cast<std::int32_t>(heads);
  call.tokens = static_cast<std::int32_t>(append_extent(key, 2));
  call.row_count = static_cast<std::int32_t>(paged ? append_extent(*places.page_table, 0) : rows);
  call.capacity = static_cast<std::int32_t>(std::min(capacity, std::int64_t{1} << 30));
  return made;
}

void append_cache(const Array& key, const Array& value, const Array& key_cache,
                  const Array& value_cache, const Array& positions, const CachePlaces& places,
                  const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(key.device());
  if (have_token_scales(places.k_scales, places.v_scales)) {
    return append_by_heads(key, value, key_cache, value_cache, positions, places, on);
  }
  PlannedAppend planned = plan_append(key, value, key_cache, value_cache, positions, places, on);
  if (planned.elements == 0 || planned.call.capacity == 0) return;
  launch_append(planned, key.type(), key_cache.type(), key.device(), on);
}

}  // namespace kernwright::kernels
