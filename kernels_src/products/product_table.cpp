// Reads tables of products, and finds a plan in one.
#include "kernels_src/products/product_table.h"

#include "base/errors.h"
#include "base/format.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace kernwright::kernels {
namespace {

/// Nothing for a row that this release does not know.
std::optional<ProductRow> row_from_json(const nlohmann::json& row) {
  if (!row.is_array()) return std::nullopt;
  if (row.empty()) return ProductRow{};
  if (!row[0].is_string()) return std::nullopt;
  std::vector<int> numbers;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (!row[i].is_number_integer()) return std::nullopt;
    const auto number = row[i].get<std::int64_t>();
    if (number < -1 || number > 4096) return std::nullopt;
    numbers.push_back(static_cast<int>(number));
  }
  return product_row(row[0].get<std::string>(), numbers);
}

}  // namespace

ProductTable parse_products(std::string_view text, const std::string& origin) {
  ProductTable table;
  try {
    const auto json = nlohmann::json::parse(text);
    const auto products = json.find("products");
    if (products == json.end()) return table;
    if (!products->is_object())
      throw InvalidArgument(
          format("\"products\" of {} is no object; `kernwright tune-kernels --products` writes "
                 "one: no table of kernels' choices",
                 origin));
    for (const auto& [device, families] : products->items()) {
      for (const auto& [types, rows] : families.items()) {
        for (const auto& [shape, row] : rows.items()) {
          if (const auto known = row_from_json(row)) table[device][types][shape] = *known;
        }
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(
        format("{} is no table of kernels' choices: {}; `kernwright tune-kernels` "
               "writes one",
               origin, error.what()));
  }
  return table;
}

const ProductRow* find_product(const ProductTable& table, const Device& device,
                               const ProductKey& key, const std::string& shape) {
  const std::string arch = format("sm_{}", device.compute_capability().number());
  for (const std::string& wanted : {device.name(), arch}) {
    const auto device_rows = table.find(wanted);
    if (device_rows == table.end()) continue;
    const auto rows = device_rows->second.find(product_types(key));
    if (rows == device_rows->second.end()) continue;
    if (const auto row = rows->second.find(shape); row != rows->second.end()) return &row->second;
  }
  return nullptr;
}

}  // namespace kernwright::kernels
