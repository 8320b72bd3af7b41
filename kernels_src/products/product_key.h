// The facts about a matrix product by which tables tell products apart.
#pragma once

#include "array/array.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright::kernels {

/// How a product accumulates, where the types leave a choice.
enum class ProductAccumulation : std::uint8_t {
  plain,     ///< as the kernel of the types does
  promoted,  ///< of float8: parts of the inner dimension apart
  blocks,    ///< of float8: parts of the inner dimension apart, times scales of blocks
  tf32       ///< of float32: by tensor cores
};
/// "plain", and a name's.
const char* product_accumulation_name(ProductAccumulation accumulation) noexcept;
std::optional<ProductAccumulation> product_accumulation_from_name(std::string_view name) noexcept;

/// The facts about a product a @ b for a table.
struct ProductKey {
  ScalarType a{}, b{}, out{};
  ProductAccumulation accumulation = ProductAccumulation::plain;
  bool a_turned = false, b_turned = false;  ///< rows have no neighbours in memory
  bool gated = false;
  std::int64_t rows = 0, columns = 0, inner = 0, batches = 1;
  bool operator==(const ProductKey&) const = default;
};
/// The key of fitting operands with two or more dimensions. Dimensions of a alone count as rows.
ProductKey product_key(const Array& a, const Array& b, ScalarType out);
/// "bfloat16.bfloat16.bfloat16.nt": the types, and n for operands whose rows have neighbours.
/// Suffixes follow for a gate (".gated") and for accumulation that is not plain (".promoted").
std::string product_types(const ProductKey& key);
/// "128x4096x14336", rows, columns and the inner dimension; "8*128x64x128" of a batch of 8.
std::string product_shape(const ProductKey& key);
/// "~128x4096x16384": each extent as the power of two that is not below it.
std::string product_bucket(const ProductKey& key);

}  // namespace kernwright::kernels
