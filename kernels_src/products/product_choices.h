// The tables of products in use, and the choices of a table.
#pragma once

#include "core/device.h"
#include "kernels_src/plans/plan_scope.h"
#include "kernels_src/products/product_plan.h"

#include <memory>
#include <optional>
#include <string_view>

namespace kernwright::kernels {

/// The choice of the table in use: first by the product's shape, then by its bucket if that suits.
/// Nothing: the rules decide. Decided once for each device and key; later calls look it up.
/// Thread-safe.
ProductRow tuned_product(const Device& device, const ProductKey& key) noexcept;
/// Whether the user's table has this very shape, be it with the rule.
bool has_product_plan(const Device& device, const ProductKey& key);

/// Uses the "products" of that text of a table, see use_launch_table(), before the
/// library's rows; nothing goes back to the file. Throws InvalidArgument for any other text.
///
/// {"format": 1, "devices": {}, "products": {"NVIDIA H100": {"float32.float32.float32.nn":
/// {"1024x1024x1024": ["fma", 128, 128, 8, 8, 8, 4, 1]}}}}; [] is the rule. Entries unknown to this
/// release count for nothing.
void use_product_table(std::optional<std::string_view> json);

/// The tables of products of a moment.
class PinnedProducts;
std::shared_ptr<PinnedProducts> pin_products();
/// From here on products of this thread are chosen by `pinned`, and by the tables in use if that is
/// null. Returns what was there. The caller keeps `pinned`.
PinnedProducts* set_pinned_products(PinnedProducts* pinned) noexcept;

/// While one lives, tuned_product() gives this row to products of the thread that it suits.
using ForcedProduct = PlanScope<ProductRow>;

}  // namespace kernwright::kernels
