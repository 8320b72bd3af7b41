// Copies of strided arrays against a walk over the bytes on the host.
#include "kernels_src/copy/copy.h"

#include "base/errors.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;
using namespace kernwright::test;

namespace {

void check_copy(const Array& base, const Array& view) {
  CAPTURE(view.identify());
  const auto expected = gathered(view, base.address(), bytes_of(base));
  const Array made = kernels::copy(view);
  CHECK(made.is_contiguous());
  CHECK(made.shape() == view.shape());
  CHECK(made.type() == view.type());
  const bool same = bytes_of(made) == expected;
  CHECK(same);
}

/// Copies into a view and checks its elements and all bytes beside them.
void check_copy_into(const Array& base, const Array& target, const Array& source) {
  CAPTURE(target.identify());
  auto expected = bytes_of(base);
  const auto elements = gathered(source, source.address(), bytes_of(source));
  const std::size_t size = scalar_size(target.type());
  std::size_t next = 0;
  for_each_offset(target.shape(), target.strides(), [&](std::int64_t offset) {
    const std::size_t at = static_cast<std::size_t>(target.address() - base.address()) +
                           static_cast<std::size_t>(offset);
    std::copy_n(elements.begin() + static_cast<std::ptrdiff_t>(next), size,
                expected.begin() + static_cast<std::ptrdiff_t>(at));
    next += size;
  });
  kernels::copy_elements(target, source);
  const bool same = bytes_of(base) == expected;
  CHECK(same);
}

template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr ScalarType kTypes[] = {ScalarType::uint8, ScalarType::float16, ScalarType::float32,
                                 ScalarType::complex64, ScalarType::complex128};

}  // namespace

TEST_CASE("copy: random views of every element size") {
  std::mt19937 random(7);
  for (const ScalarType type : kTypes) {
    for (const Shape& shape :
         {Shape{257}, Shape{16, 33}, Shape{5, 1, 8, 6}, Shape{3, 4, 2, 3, 5}}) {
      const Array base = patterned(shape, type);
      for (int i = 0; i < 6; ++i) check_copy(base, random_view(base, random));
    }
  }
}

TEST_CASE("copy: empty, one element, no dimensions") {
  const Array base = patterned({4, 4}, ScalarType::int32);
  check_copy(base, base.slice(0, 0, 0, 1));
  CHECK(kernels::copy(base.slice(0, 0, 0, 1)).shape() == Shape{0, 4});
  check_copy(base, base.slice(0, 2, 1, 1).slice(1, 3, 1, 1));
  check_copy(base, base.drop_axis(0, 1).drop_axis(0, 2));
  check_copy(base, base);
}

TEST_CASE("copy: eight dimensions that cannot be merged, and more than the kernel takes") {
  const Array base = patterned(Shape(10, 3), ScalarType::uint8);
  Array eight = base.drop_axis(0, 1).drop_axis(0, 1);
  Array ten = base;
  for (int axis = 0; axis < 8; ++axis) eight = eight.slice(axis, 2, 2, -2);
  for (int axis = 0; axis < 10; ++axis) ten = ten.slice(axis, 0, 2, axis % 2 == 0 ? 2 : 1);
  check_copy(base, eight);
  check_copy(base, ten);
}

TEST_CASE("copy: repeated and reversed elements") {
  const Array base = patterned({6}, ScalarType::float32);
  const Array repeated = Array::adopt(device(), base.address(), {5, 6}, {0, 4}, ScalarType::float32,
                                      base.owner(), true);
  check_copy(base, repeated);
  check_copy(base, base.slice(0, 5, 6, -1));
}

TEST_CASE("copy: a large array crosses many blocks") {
  const Array base = patterned({700, 501}, ScalarType::uint8);
  check_copy(base, base.transpose());
  check_copy(base, base.slice(1, 1, 499, 1));
}

TEST_CASE("copy: a long piece between addresses of any distance") {
  constexpr std::int64_t kSize = (1 << 20) + 5;
  const Array base = patterned({kSize + 16}, ScalarType::uint8);
  check_copy(base, base.slice(0, 1, kSize, 1));
  const Array target = patterned({kSize + 16}, ScalarType::uint8);
  check_copy_into(target, target.slice(0, 3, kSize, 1), base.slice(0, 8, kSize, 1));
}

TEST_CASE("copy: on a stream of its own") {
  const Stream stream = Stream::create(device());
  const Array base = patterned({40, 50}, ScalarType::int16);
  const Array view = base.transpose();
  const Array made = kernels::copy(view, stream);
  stream.synchronize();
  const bool same = bytes_of(made) == gathered(view, base.address(), bytes_of(base));
  CHECK(same);
}

TEST_CASE("copy_elements: random targets, and nothing beside them changes") {
  std::mt19937 random(11);
  for (const ScalarType type : kTypes) {
    for (int i = 0; i < 8; ++i) {
      const Array base = patterned({9, 8, 7}, type);
      const Array target = random_view(base, random);
      check_copy_into(base, target, patterned(target.shape(), type));
    }
  }
}

TEST_CASE("copy_elements: overlapping views act as if the source was copied away first") {
  const Array base = patterned({100}, ScalarType::int32);
  const auto before = bytes_of(base);
  kernels::copy_elements(base.slice(0, 1, 99, 1), base.slice(0, 0, 99, 1));
  auto expected = before;
  std::copy(before.begin(), before.end() - 4, expected.begin() + 4);
  CHECK(bytes_of(base) == expected);
  const Array whole = patterned({100}, ScalarType::int32);
  kernels::copy_elements(whole, whole.slice(0, 99, 100, -1));
  for (std::size_t i = 0; i < 100; ++i) {
    std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(4 * (99 - i)), 4,
                expected.begin() + static_cast<std::ptrdiff_t>(4 * i));
  }
  CHECK(bytes_of(whole) == expected);
  kernels::copy_elements(whole, whole);
  CHECK(bytes_of(whole) == expected);
}

TEST_CASE("copy_elements: what does not fit is refused with both arrays") {
  const Array a = patterned({4, 3}, ScalarType::float32);
  const std::string shapes = refusal([&] {
    kernels::copy_elements(a, patterned({3, 4}, ScalarType::float32));
  });
  CHECK(contains(shapes, "(4, 3)"));
  CHECK(contains(shapes, "(3, 4)"));
  CHECK(contains(refusal([&] {
                   kernels::copy_elements(a, patterned({4, 3}, ScalarType::int32));
                 }),
                 "int32"));
  const Array locked =
      Array::adopt(device(), a.address(), a.shape(), a.strides(), a.type(), a.owner(), true);
  CHECK(contains(refusal([&] { kernels::copy_elements(locked, kernels::copy(a)); }), "read-only"));
  const Array repeated =
      Array::adopt(device(), a.address(), {4, 3}, {0, 4}, ScalarType::float32, a.owner());
  CHECK(contains(refusal([&] { kernels::copy_elements(repeated, kernels::copy(a)); }),
                 "stride of 0"));
}
