// The plan of a product: the table first, few rows, tiles, and the kernel of all types.
#include "kernels_src/products/product_planner.h"

#include "kernels_src/products/few_rows.h"
#include "kernels_src/products/product_choices.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <array>
#include <utility>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

Array operand(Shape shape, ScalarType type = ScalarType::float16) {
  return Array::empty(test::device(), std::move(shape), type);
}

/// Of x times the transposed weights.
ProductRequest layer(std::int64_t rows, std::int64_t n, std::int64_t k,
                     ScalarType type = ScalarType::float16) {
  ProductRequest request = product_request(
      operand({rows, k}, type), operand({n, k}, type).transpose(), type, ProductUse::layer);
  request.few = rows <= most_skinny_rows(type);
  return request;
}

template <typename Plan>
bool plans(const ProductRequest& request) {
  return std::holds_alternative<Plan>(plan_product(test::device(), request));
}

}  // namespace

TEST_CASE("product planner: the rules go by rows, types and size") {
  CHECK(plans<SkinnyPlan>(layer(4, 64, 64)));
  CHECK(plans<PlainPlan>(layer(65, 64, 64)));  // too few multiplications for tiles
  CHECK_FALSE(plans<PlainPlan>(layer(128, 128, 128)));
  CHECK(plans<SkinnyPlan>(layer(12, 64, 64, ScalarType::float32)));
  CHECK(plans<FmaPlan>(layer(13, 64, 64, ScalarType::float32)));
  ProductRequest wide = layer(40, 64, 64, ScalarType::float64);
  wide.few = false;  // as linear() asks
  CHECK(plans<FmaPlan>(wide));
  ProductRequest integers = product_request(operand({128, 128}, ScalarType::int32),
                                            operand({128, 128}, ScalarType::int32),
                                            ScalarType::int32, ProductUse::matrices);
  CHECK(plans<PlainPlan>(integers));
}

TEST_CASE("product planner: a request tells up to which rows lines are copied in parts") {
  const auto staged_rows = [](std::int64_t k) { return layer(9, 64, k).staged_rows; };
  CHECK(staged_rows(260) == 64);
  CHECK(staged_rows(258) == 32);
  CHECK(staged_rows(257) == 0);
  CHECK(staged_rows(256) == 0);  // whole packs need no parts
  const Array shifted = operand({9 * 260 + 1}).slice(0, 1, 9 * 260, 1).reshape({9, 260});
  CHECK(product_request(shifted, operand({64, 260}).transpose(), ScalarType::float16,
                        ProductUse::layer)
            .staged_rows == 0);
  // Rows with gaps end where no part does.
  const auto cut_rows = [](std::int64_t k) {
    const Array x = operand({9, 260}).slice(1, 0, k, 1);
    const Array weights = operand({64, 260}).slice(1, 0, k, 1);
    return product_request(x, weights.transpose(), ScalarType::float16, ProductUse::layer)
        .staged_rows;
  };
  CHECK(cut_rows(256) == 64);
  CHECK(cut_rows(258) == 32);
  CHECK(cut_rows(257) == 0);
}

TEST_CASE("product planner: a row of a table comes first where the operands suit its kernel") {
  ProductRequest request = layer(4, 64, 64);
  {
    const ForcedProduct tiles(ProductPlan{MmaPlan{MmaTile{64, 64, 3}, 1}});
    CHECK(plans<MmaPlan>(request));
    request.skinny_only = true;
    CHECK(plans<SkinnyPlan>(request));
  }
  const SkinnyPlan wanted{.kernel = SkinnyKernel::dot, .warps = 4};
  const ForcedProduct skinny(ProductPlan{wanted});
  CHECK(std::get<SkinnyPlan>(plan_product(test::device(), layer(4, 64, 64))) == wanted);
  CHECK_FALSE(plans<SkinnyPlan>(layer(65, 256, 256)));
}

TEST_CASE("product planner: one column is planned by its key, then by that of one row") {
  const Array a = operand({256, 128}), b = operand({128, 1});
  REQUIRE(few_rows_form(a, b) == FewRows::column);
  ProductRequest request = product_request(a, b, a.type(), ProductUse::matrices);
  request.exchanged = exchanged_key(a, b, FewRows::column);
  CHECK(request.exchanged->rows == 1);
  CHECK(request.exchanged->columns == 256);
  CHECK(request.exchanged->inner == 128);
  CHECK(std::get<SkinnyPlan>(plan_product(test::device(), request)) == SkinnyPlan{});
  const SkinnyPlan dot{.kernel = SkinnyKernel::dot, .warps = 4};
  const MmaPlan tile{MmaTile{64, 64, 3}, 1};
  {  // a tuner that measures plans of the product gets each of them
    const ForcedProduct tiles(ProductPlan{tile});
    CHECK(std::get<MmaPlan>(plan_product(test::device(), request)) == tile);
  }
  {
    const ForcedProduct skinny(ProductPlan{dot});
    CHECK(std::get<SkinnyPlan>(plan_product(test::device(), request)) == dot);
    request.use = ProductUse::layer;
    request.multiplications = 1;  // too few for tiles
    CHECK(std::get<SkinnyPlan>(plan_product(test::device(), request)) == dot);
  }
  request.multiplications = 1 << 22;
  CHECK_FALSE(plans<SkinnyPlan>(request));
  CHECK_FALSE(exchanged_key(a, operand({128, 128}), FewRows::rows));
}

TEST_CASE("product planner: a Gemm takes tiles at any size") {
  const Array a = operand({3, 5}), b = operand({5, 7});
  CHECK_FALSE(std::holds_alternative<PlainPlan>(plan_gemm({.a = a, .b = b})));
  const Array x = operand({3, 5}, ScalarType::float32), y = operand({5, 7}, ScalarType::float32);
  CHECK(std::holds_alternative<FmaPlan>(plan_gemm({.a = x, .b = y})));
  CHECK_FALSE(std::holds_alternative<FmaPlan>(plan_gemm({.a = x, .b = y, .tf32 = true})));
}

TEST_CASE("product plan: a row has the numbers of its plan") {
  const ProductRow rows[] = {
      SkinnyPlan{.kernel = SkinnyKernel::tiles, .warps = 4, .rows = 1, .splits = 2, .ahead = 3},
      WgmmaPlan{GemmTile{128, 256, 4, 2, true, 2, true}, 3},
      MmaPlan{MmaTile{64, 128, 3}, 5},
      FmaPlan{FmaTile{64, 32, 8, 4, 16, 3}, 2},
  };
  for (const ProductRow& row : rows) {
    const ProductNumbers numbers = product_numbers(row);
    CAPTURE(numbers.kernel);
    const auto again = product_row(numbers.kernel, numbers.numbers);
    REQUIRE(again);
    CHECK(*again == row);
  }
  CHECK(product_row("rule", {})->has_value() == false);
  CHECK_FALSE(product_row("newer", {}));
  CHECK_FALSE(product_row("fma", std::array<int, 9>{}));
}
