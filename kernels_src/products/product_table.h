// A table of the plans of matrix products, as it is read from JSON.
#pragma once

#include "core/device.h"
#include "kernels_src/products/product_plan.h"

#include <map>
#include <string>
#include <string_view>

namespace kernwright::kernels {

/// device -> types -> shape or bucket.
using ProductRows = std::map<std::string, ProductRow>;
using ProductTable = std::map<std::string, std::map<std::string, ProductRows>>;

/// The "products" of a text, see use_product_table(), without the entries that this release does
/// not know. Throws InvalidArgument that names `origin` where the text is no such table.
ProductTable parse_products(std::string_view text, const std::string& origin);

/// The row for a shape or bucket: first of the device by its name, then of its architecture
/// ("sm_90"). Null where the table has none.
const ProductRow* find_product(const ProductTable& table, const Device& device,
                               const ProductKey& key, const std::string& shape);

}  // namespace kernwright::kernels
