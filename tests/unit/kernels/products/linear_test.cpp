// Layers of x with one, two and three dimensions: equal rows have equal bits.
#include "kernels_src/products/linear.h"

#include "base/errors.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemv/skinny.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <vector>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

Array counted(Shape shape, float step) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<float>(i % 13);
  return Array::from_host(test::device(), values.data(), std::move(shape), ScalarType::float32);
}

std::vector<float> floats(const Array& array) {
  std::vector<float> values(static_cast<std::size_t>(array.size()));
  array.to_host(values.data());
  return values;
}

}  // namespace

TEST_CASE("linear: rows in more dimensions, a residual and a target have the bits of a matrix") {
  for (const std::int64_t rows : {1, 6, 40}) {
    const Array x = counted({rows, 24}, 0.5F), weights = counted({8, 24}, 0.25F);
    const Array residual = counted({rows, 8}, 2);
    LinearCall plain{.x = x, .weights = weights};
    plain.epilogue.residual = residual;
    const std::vector<float> wanted = floats(linear(plain));
    LinearCall deep{.x = x.reshape({rows, 1, 24}), .weights = weights};
    deep.epilogue.residual = residual.reshape({rows, 1, 8});
    const Array made = linear(deep);
    CHECK(made.shape() == Shape{rows, 1, 8});
    CHECK(floats(made) == wanted);
    deep.out = counted({rows, 1, 8}, 1);
    CHECK(linear(deep).address() == deep.out->address());
    CHECK(floats(*deep.out) == wanted);
    if (rows > 1) continue;
    LinearCall row{.x = x.reshape({24}), .weights = weights};
    row.epilogue.residual = residual.reshape({8});
    CHECK(linear(row).shape() == Shape{8});
    CHECK(floats(linear(row)) == wanted);
  }
}

TEST_CASE("epilogues: what a product would not apply is refused") {
  const Array x = counted({4, 24}, 0.5F), weights = counted({8, 24}, 0.25F), c = counted({4, 8}, 2);
  const Array scales = counted({4}, 1);
  for (const ProductEpilogue& more :
       {ProductEpilogue{.alpha = 2}, ProductEpilogue{.c = c}, ProductEpilogue{.row_scales = scales},
        ProductEpilogue{.expression = "x"},
        ProductEpilogue{.residual = c, .gate = ActivationCall{}}}) {
    CHECK_THROWS_AS(linear({.x = x, .weights = weights, .epilogue = more}), ArgumentError);
  }
  for (const ProductEpilogue& more :
       {ProductEpilogue{.c = c}, ProductEpilogue{.row_scales = scales},
        ProductEpilogue{.gate = ActivationCall{}}}) {
    CHECK_THROWS_AS(skinny_product({.x = x, .weights = weights, .epilogue = more}, {}), Error);
  }
  Gemm gemm{.a = x, .b = weights.transpose()};
  gemm.epilogue.residual = c;
  CHECK_THROWS_AS(gemm.run(), ArgumentError);
}

TEST_CASE("linear: kernels behind a product leave a target to its last step") {
  // No kernel of the product reads a norm from there: the norm and the gate are kernels apart.
  const Array x = counted({1, 64}, 0.5F), weights = counted({6, 64}, 0.01F);
  LinearCall call{.x = x, .weights = weights};
  call.norm = RowNorm{counted({65}, 0.1F).slice(0, 1, 64, 1), 1e-5};
  call.epilogue.gate = ActivationCall{.kind = Activation::silu};
  const std::vector<float> wanted = floats(linear(call));
  const Array memory = counted({8}, 1);
  const std::vector<float> before = floats(memory);
  call.out = memory.slice(0, 0, 3, 1).reshape({1, 3});
  CHECK(linear(call).address() == call.out->address());
  CHECK(floats(*call.out) == wanted);
  CHECK(floats(memory.slice(0, 3, 5, 1)) == std::vector(before.begin() + 3, before.end()));
}
