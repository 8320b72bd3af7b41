// Keys of matrix products from their operands, and the texts of keys.
#include "kernels_src/products/product_key.h"

#include "base/format.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::array<const char*, 4> kProductAccumulations = {"plain", "promoted", "blocks",
                                                              "tf32"};

std::int64_t power_not_below(std::int64_t extent) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
}

}  // namespace

const char* product_accumulation_name(ProductAccumulation accumulation) noexcept {
  return kProductAccumulations[static_cast<std::size_t>(accumulation)];
}

std::optional<ProductAccumulation> product_accumulation_from_name(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kProductAccumulations, name);
  if (found == kProductAccumulations.end()) return std::nullopt;
  return static_cast<ProductAccumulation>(found - kProductAccumulations.begin());
}

ProductKey product_key(const Array& a, const Array& b, ScalarType out) {
  ProductKey key{.a = a.type(),
                 .b = b.type(),
                 .out = out,
                 .rows = extent_from_end(a, 2),
                 .columns = b.shape().back(),
                 .inner = a.shape().back()};
  for (int d = 3; d <= std::max(a.ndim(), b.ndim()); ++d) {
    key.batches *= std::max(extent_from_end(a, d), extent_from_end(b, d));
  }
  if (b.ndim() == 2) key.rows *= std::exchange(key.batches, 1);
  const std::array<const Array*, 2> operands = {&a, &b};
  const std::array<bool*, 2> turned = {&key.a_turned, &key.b_turned};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto size = static_cast<std::int64_t>(scalar_size(operands[i]->type()));
    *turned[i] = operands[i]->shape().back() > 1 && operands[i]->strides().back() != size;
  }
  return key;
}

std::string product_types(const ProductKey& key) {
  std::string types =
      format("{}.{}.{}.{}{}{}", scalar_name(key.a), scalar_name(key.b), scalar_name(key.out),
             key.a_turned ? "t" : "n", key.b_turned ? "t" : "n", key.gated ? ".gated" : "");
  if (key.accumulation != ProductAccumulation::plain)
    types += format(".{}", product_accumulation_name(key.accumulation));
  return types;
}

std::string product_shape(const ProductKey& key) {
  const std::string one = format("{}x{}x{}", key.rows, key.columns, key.inner);
  return key.batches == 1 ? one : format("{}*{}", key.batches, one);
}

std::string product_bucket(const ProductKey& key) {
  ProductKey whole = key;
  for (std::int64_t* extent : {&whole.rows, &whole.columns, &whole.inner, &whole.batches}) {
    *extent = power_not_below(*extent);
  }
  return "~" + product_shape(whole);
}

}  // namespace kernwright::kernels
