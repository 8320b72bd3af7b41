// The parameter of kernels for writing new tokens to caches, made of checked arrays.
#pragma once

#include "kernels_src/attention/attention_call.h"

#include <cstdint>
#include <vector>

namespace kernwright::kernels {

/// CacheSide of token_cache.cuh.
struct CacheSide {
  CUdeviceptr from = 0, to = 0;
  HeadStrides from_at{}, to_at{};
  CUdeviceptr scales = 0, token_scales = 0;
  HeadStrides scales_at{};
  std::int32_t dim = 0, packs = 0;
};
/// CacheAppend of token_cache.cuh.
struct CacheAppend {
  CacheSide side[2]{};
  CUdeviceptr positions = 0, rows = 0, table = 0;
  std::int64_t table_row = 0;
  std::int32_t page_size = 0, pages = 0, page_limit = 0;
  std::int32_t batches = 0, heads = 0, tokens = 0, capacity = 0, row_count = 0;
};

/// A checked append: the kernels' parameter and the arrays behind it.
struct PlannedAppend {
  CacheAppend call{};
  std::vector<Array> used;
  std::int64_t elements = 0;  ///< of keys and values

  /// Sets how many packs of `width` elements a head has.
  void set_packs(int width);
};
/// key and value (batch, kv_heads, tokens, dim), any strides. Throws ArgumentError and
/// InvalidArgument as append_cache() does.
PlannedAppend plan_append(const Array& key, const Array& value, const Array& key_cache,
                          const Array& value_cache, const Array& positions,
                          const CachePlaces& places, const Stream& on);
/// Elements moved by one access on both sides of keys and of values.
int append_width(const CacheAppend& call, ScalarType from, ScalarType to);
/// Throws InvalidArgument unless `given` is absent, or of that type and shape, on the device of
/// `key`.
void require_append_vector(const std::optional<Array>& given, const Array& key, const char* name,
                           ScalarType type, const Shape& shape);

}  // namespace kernwright::kernels
