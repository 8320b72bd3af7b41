// Plans how new tokens are written to caches.
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/attention/attention.h"
#include "kernels_src/attention/cache_append.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kAppendThreads = 256;

struct AppendStrides {
  std::int64_t batch = 0, head = 0, token = 0;
};
// As in cache_append.cu.
struct CacheSide {
  CUdeviceptr from = 0, to = 0;
  AppendStrides from_at{}, to_at{};
  CUdeviceptr scales = 0;
  std::int32_t dim = 0, packs = 0;
};
struct CacheAppend {
  CacheSide side[2]{};
  CUdeviceptr positions = 0, table = 0;
  std::int64_t table_row = 0;
  std::int32_t page_size = 0, pages = 0, page_limit = 0;
  std::int32_t batches = 0, heads = 0, tokens = 0, capacity = 0;
};

std::int64_t append_extent(const Array& array, int axis) {
  return array.shape()[static_cast<std::size_t>(axis)];
}

std::int64_t append_step(const Array& array, int axis) {
  if (append_extent(array, axis) <= 1 && axis != 0) return 0;
  return array.strides()[static_cast<std::size_t>(axis)] /
         static_cast<std::int64_t>(scalar_size(array.type()));
}

void require_append_vector(const std::optional<Array>& given, const Array& key, const char* name,
                           ScalarType type, std::int64_t count) {
  if (!given) return;
  require_one_device(key, "key", *given, name);
  if (given->type() == type && given->ndim() == 1 && given->size() == count) return;
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: {} is a {}, and must be {} of "
             "shape ({},)",
             name, given->identify(), scalar_name(type), count));
}

void require_append_cache(const Array& tokens, const char* name, const Array& cache,
                          const char* cache_name, bool paged) {
  require_floating(tokens, "append_cache", name);
  require_one_device(tokens, name, cache, cache_name);
  const ScalarType type = cache.type();
  const bool small = scalar_size(tokens.type()) <= 4 &&
                     (type == ScalarType::int8 || type == ScalarType::float8_e4m3fn ||
                      type == ScalarType::float8_e5m2);
  const bool fits = tokens.ndim() == 4 && cache.ndim() == 4 &&
                    (type == tokens.type() || (small && scalar_size(tokens.type()) > 1)) &&
                    append_extent(cache, 3) == append_extent(tokens, 3) &&
                    append_extent(cache, paged ? 2 : 1) == append_extent(tokens, 1) &&
                    (paged || append_extent(cache, 0) == append_extent(tokens, 0));
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

/// Elements that one access moves on both sides.
int append_width(const CacheSide& side, ScalarType from, ScalarType to) {
  const auto bits = [&](CUdeviceptr address, const AppendStrides& at, ScalarType type) {
    const std::int64_t steps = at.batch | at.head | at.token | side.dim;
    return address | static_cast<std::uint64_t>(steps) * scalar_size(type);
  };
  return std::min({pack_width(from, {bits(side.from, side.from_at, from)}),
                   pack_width(to, {bits(side.to, side.to_at, to)}), 8});
}

void launch_append(CacheAppend& call, ScalarType from, ScalarType to, Device& device,
                   const Stream& on) {
  static const auto& family = *new Family("cache_append.cu", text::cache_append_cu);
  const int width =
      std::min(append_width(call.side[0], from, to), append_width(call.side[1], from, to));
  std::int64_t packs = 0;
  for (CacheSide& side : call.side) {
    side.packs = std::max(side.dim / width, 1);
    packs = std::max<std::int64_t>(packs, side.packs);
  }
  const LazyKernel& kernel = family.instance(InstanceKey().type(from).type(to).add(width, 5), [&] {
    return format("append_cache<{}, {}, {}>", device_type(from), device_type(to), width);
  });
  const std::int64_t items = std::int64_t{call.batches} * call.tokens * call.heads * packs;
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>((items + kAppendThreads - 1) / kAppendThreads), 2},
      .block = {static_cast<std::uint32_t>(kAppendThreads)},
      .stream = on};
  launch(kernel.on(device), config, call);
}

}  // namespace

void append_cache(const Array& key, const Array& value, const Array& key_cache,
                  const Array& value_cache, const Array& positions, const CachePlaces& places,
                  const Stream& stream) {
  const bool paged = places.page_table.has_value();
  require_append_cache(key, "key", key_cache, "key_cache", paged);
  require_append_cache(value, "value", value_cache, "value_cache", paged);
  const int token_axis = paged ? 1 : 2;
  bool alike = key.type() == value.type() && key_cache.type() == value_cache.type() &&
               append_extent(key_cache, token_axis) == append_extent(value_cache, token_axis) &&
               append_extent(key_cache, 0) == append_extent(value_cache, 0);
  for (int axis = 0; axis < 3; ++axis)
    alike &= append_extent(key, axis) == append_extent(value, axis);
  if (!alike) {
    throw InvalidArgument(
        format("Incompatible dimensions or dtypes: key is a {}, value a {}, key_cache a {}, "
               "value_cache a {}; keys and values differ in head_dim alone",
               key.identify(), value.identify(), key_cache.identify(), value_cache.identify()));
  }
  const std::int64_t batches = append_extent(key, 0), heads = append_extent(key, 1),
                     tokens = append_extent(key, 2);
  require_append_vector(positions, key, "positions", ScalarType::int32, batches);
  require_append_vector(places.k_scales, key, "key_scale", ScalarType::float32, heads);
  require_append_vector(places.v_scales, key, "value_scale", ScalarType::float32, heads);
  const Stream on = stream ? stream : Stream::legacy(key.device());
  const Array from_k = contiguous(key, on), from_v = contiguous(value, on);
  const Array at = contiguous(positions, on);
  std::vector<Array> used = {from_k, from_v, at, key_cache, value_cache};
  std::optional<Array> k_scales, v_scales;
  if (places.k_scales) used.push_back(k_scales.emplace(contiguous(*places.k_scales, on)));
  if (places.v_scales) used.push_back(v_scales.emplace(contiguous(*places.v_scales, on)));
  CacheAppend call;
  call.side[0] = append_side(from_k, key_cache, k_scales, paged);
  call.side[1] = append_side(from_v, value_cache, v_scales, paged);
  call.positions = at.address();
  std::int64_t capacity = append_extent(key_cache, token_axis);
  if (paged) {
    const Array& table = *places.page_table;
    require_one_device(key, "key", table, "page_table");
    if (table.type() != ScalarType::int32 || table.ndim() != 2 ||
        append_extent(table, 0) != batches) {
      throw InvalidArgument(
          format("Incompatible dimensions or dtypes: page_table is a {}, and must "
                 "be int32 of shape ({}, pages)",
                 table.identify(), batches));
    }
    used.push_back(contiguous(table, on));
    call.table = used.back().address();
    call.table_row = append_extent(table, 1);
    call.page_size = static_cast<std::int32_t>(std::max<std::int64_t>(1, capacity));
    call.pages = static_cast<std::int32_t>(call.table_row);
    call.page_limit = static_cast<std::int32_t>(append_extent(key_cache, 0));
    capacity *= call.table_row;
  }
  if (key.size() + value.size() == 0 || capacity == 0) return;
  call.batches = static_cast<std::int32_t>(batches);
  call.heads = static_cast<std::int32_t>(heads);
  call.tokens = static_cast<std::int32_t>(tokens);
  call.capacity = static_cast<std::int32_t>(std::min(capacity, std::int64_t{1} << 30));
  launch_append(call, key.type(), key_cache.type(), key.device(), on);
  for (const Array& each : used) each.use_on(on);
}

}  // namespace kernwright::kernels
