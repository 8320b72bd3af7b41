// What tables know of a matrix product: its types, its shape, its bucket.
#include "kernels_src/products/product_key.h"

#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <utility>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

Array zeros(Shape shape, ScalarType type = ScalarType::float16) {
  return Array::empty(test::device(), std::move(shape), type);
}

Array transposed(const Array& matrix) { return matrix.transpose(std::array{1, 0}); }

}  // namespace

TEST_CASE("product key: batches count as rows where all have the same b") {
  const ProductKey one = product_key(zeros({4, 3, 5}), zeros({5, 7}), ScalarType::float16);
  CHECK(product_shape(one) == "12x7x5");
  const ProductKey apart = product_key(zeros({4, 3, 5}), zeros({4, 5, 7}), ScalarType::float16);
  CHECK(product_shape(apart) == "4*3x7x5");
  const ProductKey outer = product_key(zeros({2, 1, 3, 5}), zeros({6, 5, 7}), ScalarType::float16);
  CHECK(product_shape(outer) == "12*3x7x5");
}

TEST_CASE("product key: a bucket has the powers of two that are not below the extents") {
  const ProductKey key{.rows = 129, .columns = 4096, .inner = 1, .batches = 3};
  CHECK(product_bucket(key) == "~4*256x4096x1");
}

TEST_CASE("product key: an operand is turned if its rows have no neighbours") {
  const Array a = zeros({3, 5}), b = transposed(zeros({7, 5}));
  ProductKey key = product_key(a, b, ScalarType::float32);
  key.gated = true;
  CHECK(product_types(key) == "float16.float16.float32.nt.gated");
  key.accumulation = ProductAccumulation::promoted;
  CHECK(product_types(key) == "float16.float16.float32.nt.gated.promoted");
  const Array column = transposed(zeros({1, 5}));
  CHECK_FALSE(product_key(column, zeros({1, 7}), ScalarType::float16).a_turned);
}

TEST_CASE("product key: ways of accumulation have names") {
  for (const char* name : {"plain", "promoted", "blocks", "tf32"}) {
    const auto accumulation = product_accumulation_from_name(name);
    REQUIRE(accumulation);
    CHECK(std::string(product_accumulation_name(*accumulation)) == name);
  }
  CHECK_FALSE(product_accumulation_from_name("Plain"));
}
