// Elementwise operations from C++: numbers as operands, results in place, refusals.
#include "kernels_src/elementwise/elementwise.h"

#include "base/errors.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::test;
using kernels::Operand;
using kernels::Operation;
using kernels::ScalarOperand;

namespace {

std::vector<float> floats_of(const Array& array) {
  std::vector<float> values(static_cast<std::size_t>(array.size()));
  array.to_host(values.data());
  return values;
}

Array floats(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Array::from_host(device(), values.data(), {count}, ScalarType::float32);
}

}  // namespace

TEST_CASE("elementwise: arrays and numbers") {
  const Array x = floats({1, 2, 3});
  const Operand sum[] = {{&x, {}}, {nullptr, ScalarOperand::make(0.5)}};
  CHECK(floats_of(elementwise(Operation::add, sum)) == std::vector<float>{1.5, 2.5, 3.5});
  const Operand integer[] = {{&x, {}}, {nullptr, ScalarOperand::make(std::int64_t{2})}};
  CHECK(floats_of(elementwise(Operation::multiply, integer)) == std::vector<float>{2, 4, 6});
  const Operand choice[] = {{nullptr, ScalarOperand::make(true)}, {&x, {}}, {&x, {}}};
  CHECK(floats_of(elementwise(Operation::where, choice)) == std::vector<float>{1, 2, 3});
  CHECK(elementwise_type(Operation::equal, sum) == ScalarType::boolean);
}

TEST_CASE("elementwise: a result in memory that is there") {
  const Array x = floats({1, 2, 3, 4});
  const Operand self[] = {{&x, {}}, {&x, {}}};
  write_elementwise(x, Operation::multiply, self);
  CHECK(floats_of(x) == std::vector<float>{1, 4, 9, 16});
  const Array front = x.slice(0, 0, 3, 1), back = x.slice(0, 1, 3, 1);
  const Operand shifted[] = {{&front, {}}, {&back, {}}};
  write_elementwise(back, Operation::add, shifted);
  CHECK(floats_of(x) == std::vector<float>{1, 5, 13, 25});
}

TEST_CASE("elementwise: refusals create nothing") {
  const Array x = floats({1, 2, 3}), y = floats({1, 2});
  const Operand shapes[] = {{&x, {}}, {&y, {}}};
  CHECK_THROWS_AS(elementwise(Operation::add, shapes), InvalidArgument);
  CHECK_THROWS_AS(elementwise(Operation::add, std::span(shapes).first(1)), InvalidArgument);
  CHECK_THROWS_AS(elementwise(Operation::bitwise_and, {}), InvalidArgument);
  const Operand bits[] = {{&x, {}}, {&x, {}}};
  CHECK_THROWS_AS(elementwise(Operation::bitwise_and, bits), ArgumentError);
  const Array read_only =
      Array::adopt(device(), x.address(), x.shape(), x.strides(), x.type(), x.owner(), true);
  CHECK_THROWS_AS(write_elementwise(read_only, Operation::add, bits), InvalidArgument);
}

TEST_CASE("promotion: symmetric, and never narrower than either") {
  for (int a = 0; a < kScalarTypeCount; ++a) {
    for (int b = 0; b < kScalarTypeCount; ++b) {
      const auto one = static_cast<ScalarType>(a), other = static_cast<ScalarType>(b);
      const ScalarType both = kernels::promote(one, other);
      CHECK(both == kernels::promote(other, one));
      CHECK(kernels::can_cast(one, both));
    }
  }
}
