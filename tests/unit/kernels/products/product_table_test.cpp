// Tables of products: what is read from a text, and what is found for a device.
#include "kernels_src/products/product_table.h"

#include "base/errors.h"
#include "base/format.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

const ProductKey kKey{.a = ScalarType::float32,
                      .b = ScalarType::float32,
                      .out = ScalarType::float32,
                      .rows = 1,
                      .columns = 2,
                      .inner = 3};

/// A table with rows of JSON for kKey's types.
ProductTable table_of(const std::string& device, const std::string& rows) {
  return parse_products(
      format(R"({{"products": {{"{}": {{"float32.float32.float32.nn": {{{}}}}}}}}})", device, rows),
      "the text");
}

const ProductRow* found(const ProductTable& table, const std::string& shape = "1x2x3") {
  return find_product(table, test::device(), kKey, shape);
}

}  // namespace

TEST_CASE("product table: a plan has the kernel and its numbers, zeros behind them") {
  const ProductTable table =
      table_of(test::device().name(), R"("1x2x3": ["fma", 64, 64, 8, -1, 4096], "~1x2x4": [])");
  REQUIRE(found(table) != nullptr);
  CHECK(*found(table) == ProductPlan{FmaPlan{FmaTile{64, 64, 8, -1, 4096, 0}, 0}});
  REQUIRE(found(table, "~1x2x4") != nullptr);
  CHECK_FALSE(found(table, "~1x2x4")->has_value());
  CHECK(found(table, "1x2x4") == nullptr);
}

TEST_CASE("product table: the device's name comes before its architecture") {
  const std::string arch = format("sm_{}", test::device().compute_capability().number());
  ProductTable table = table_of(arch, R"("1x2x3": ["mma", 64], "2x2x3": ["mma", 128])");
  table.merge(table_of(test::device().name(), R"("1x2x3": ["fma", 32])"));
  CHECK(std::holds_alternative<FmaPlan>(**found(table)));
  CHECK(std::holds_alternative<MmaPlan>(**found(table, "2x2x3")));
  CHECK(found(table_of("another device", R"("1x2x3": ["fma"])")) == nullptr);
}

TEST_CASE("product table: rows that this release does not know count for nothing") {
  for (const char* row :
       {R"(["newer", 64])", R"(["fma", 4097])", R"(["fma", -2])", R"(["fma", 1.5])",
        R"(["fma", 1, 2, 3, 4, 5, 6, 7, 8, 9])", R"([64])", R"("fma")", "{}"}) {
    CAPTURE(row);
    CHECK(found(table_of(test::device().name(), format(R"("1x2x3": {})", row))) == nullptr);
  }
  CHECK(parse_products(R"({"format": 1})", "the text").empty());
}

TEST_CASE("product table: a text that is no table is named") {
  for (const char* text : {R"({"products": [1]})", "{", ""}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_products(text, "choices.json"), doctest::Contains("choices.json"),
                         InvalidArgument);
  }
}
