// The one place that chooses the kernel of a matrix product.
#pragma once

#include "array/array.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/products/product_plan.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

struct PackedWeights;

/// The rules for a product: matmul(), linear(), or a Gemm, which takes tiles at any size.
enum class ProductUse : std::uint8_t { matrices, layer, tiles };

/// The facts about a product a @ b that decide the plan: no addresses.
struct ProductRequest {
  ProductKey key;
  /// The key of (a @ b)^T = b^T @ a^T where skinny kernels can take that product of one row, and
  /// its plan is asked for if the table has none for `key`. Layers prefer tiles.
  std::optional<ProductKey> exchanged{};
  const PackedWeights* packed = nullptr;  ///< the weights, in place of b; their shape matters
  SkinnyPlan packed_wanted{};             ///< points of their plan that are chosen already
  ProductUse use = ProductUse::tiles;
  bool few = false;          ///< skinny kernels take the operands
  bool skinny_only = false;  ///< no tiles for few rows: scaled weights
  bool adds = false;         ///< few rows of a layer get a residual
  /// Of a b of two dimensions: dense lines begin elsewhere than at multiples of 16 bytes.
  bool misaligned = false;
  bool columns_dense = false;    ///< of a b of two dimensions: each column lies in one piece
  std::int64_t staged_rows = 0;  ///< of a, up to which skinny_staged.cu reads a misaligned b
  double multiplications = 0;    ///< rows of a times the elements of b
};

/// The request of a @ b, whose dimensions fit, for a result of type `out`.
ProductRequest product_request(const Array& a, const Array& b, ScalarType out, ProductUse use);

/// The plan of a product: the choice of the table in use, else of the rules. Asks the table once a
/// key. A rule's plan leaves the tile to the model of the kernel. Packed weights get a PackedPlan;
/// a PlainPlan means by numbers of x's type. Throws InvalidArgument for `packed_wanted` that no
/// kernel has. Thread-safe.
ProductPlan plan_product(const Device& device, const ProductRequest& request);

/// The plan of a Gemm; never a skinny kernel.
GemmPlan plan_gemm(const Gemm& gemm);
/// A Gemm by the plan that plan_gemm() has for it. Throws as Gemm::run().
Array run_gemm(const Gemm& gemm, const Stream& stream = {});

/// The alternative of a plan that is not for a skinny kernel.
GemmPlan tile_plan(const ProductPlan& plan) noexcept;

/// Rows of x that a skinny kernel takes: of float32 fma_gemm.cu is faster with more (H100).
constexpr std::int64_t most_skinny_rows(ScalarType x) noexcept {
  return x == ScalarType::float32 ? 12 : kSkinnyRows;
}
constexpr bool is_skinny_type(ScalarType x) noexcept {
  return is_half(x) || x == ScalarType::float32;
}

}  // namespace kernwright::kernels
