// The choice of a matrix product's kernel and tiles: by tables for known devices, by the kernels'
// rules everywhere else.
#pragma once

#include "array/array.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemm/product_key.h"
#include "kernels_src/plans/skinny_plan.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::kernels {

enum class ProductKernel : std::uint8_t {
  rule,    ///< as without a table
  skinny,  ///< gemv/skinny.h: kernel, warps, rows, unroll, hint, splits, ahead, stages
  gemm,    ///< gemm.cu: rows, columns, stages, groups, ping_pong, cluster, splits, gathers
  mma,     ///< mma_gemm.cu: rows, columns, stages, splits
  fma      ///< fma_gemm.cu: rows, columns, of a thread, depth, stages, splits
};

/// The kernel of a product, and its template parameters: what a table holds for a key.
struct ProductPlan {
  ProductKernel kernel = ProductKernel::rule;
  std::array<std::int16_t, 8> numbers{};  ///< in the order above, zeros behind them
  bool operator==(const ProductPlan&) const = default;
};

/// The tile of a plan for gemm.cu.
GemmTile planned_tile(const ProductPlan& plan) noexcept;

/// Whether a plan of another shape in the bucket suits this product: a tile of wgmma only if its
/// modelled time is hardly longer than that of the rule's tile, as whole waves of tiles differ. No
/// plan suits whose numbers the kernel does not take.
bool suits_product(const Device& device, const ProductKey& key, const ProductPlan& plan);

/// The choice of the table in use: first by the product's shape, then by its bucket if that suits.
/// Nothing: the rules decide. Decided once for each device and key; later calls look it up.
/// Thread-safe.
std::optional<ProductPlan> product_plan(const Device& device, const ProductKey& key) noexcept;
/// Whether the user's table has this very shape, be it with the rule.
bool has_product_plan(const Device& device, const ProductKey& key);

/// Uses the "products" of that text of a table, see use_launch_table(), before those of the
/// library; nothing goes back to the file. Throws InvalidArgument for any other text.
///
/// {"format": 1, "devices": {}, "products": {"NVIDIA H100": {"float32.float32.float32.nn":
/// {"1024x1024x1024": ["fma", 128, 128, 8, 8, 8, 4, 1]}}}}; [] is the rule. Entries unknown to this
/// release count for nothing.
void use_product_table(std::optional<std::string_view> json);

/// The tables of products as they are in a moment.
class PinnedProducts;
std::shared_ptr<PinnedProducts> pin_products();
/// From here on products of this thread are chosen by `pinned`, and by the tables in use if that is
/// null. Returns what was there. The caller keeps `pinned`.
PinnedProducts* set_pinned_products(PinnedProducts* pinned) noexcept;

/// While one lives, products of this thread are made as the plan says, to measure it.
class ForcedProduct {
 public:
  explicit ForcedProduct(const ProductPlan& plan) noexcept;
  ~ForcedProduct();
  ForcedProduct(const ForcedProduct&) = delete;
  ForcedProduct& operator=(const ForcedProduct&) = delete;

 private:
  std::optional<ProductPlan> before_;
};

/// "fma", and a name's kernel.
const char* product_kernel_name(ProductKernel kernel) noexcept;
std::optional<ProductKernel> product_kernel_from_name(std::string_view name) noexcept;

/// Plans worth a measurement on the device, the best by the models in front.
std::vector<ProductPlan> product_candidates(const Device& device, const ProductKey& key);
/// Whether the plan's numbers are ones that its kernel takes for such a product.
bool is_product_plan(const ProductPlan& plan, const ProductKey& key) noexcept;

/// `of` with the tile and splits that the table has for it; nothing where the rules decide, or `of`
/// has its own.
std::optional<Gemm> planned_gemm(const Gemm& of, ScalarType out);
/// The plan of the table for skinny_product(x, weights); one to be chosen where it has none.
SkinnyPlan planned_skinny(const Array& x, const Array& weights);

}  // namespace kernwright::kernels
