// Shape arithmetic, against brute force over element addresses.
#include "array/shape.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

using namespace kernwright;

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

/// Byte offsets of all elements, row-major.
std::vector<std::int64_t> offsets(const Shape& shape, const Shape& strides) {
  std::vector<std::int64_t> list{0};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t base : list) {
      for (std::int64_t i = 0; i < shape[axis]; ++i) next.push_back(base + i * strides[axis]);
    }
    list = std::move(next);
  }
  return list;
}

/// Whether the list of offsets, cut into `shape`, is an affine function of the indices: exactly
/// then strides exist, and no copy is needed.
bool has_strides(const std::vector<std::int64_t>& list, const Shape& shape) {
  Shape strides(shape.size(), 0);
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] > 1) strides[axis] = list[static_cast<std::size_t>(step)] - list[0];
    step *= shape[axis];
  }
  std::vector<std::int64_t> made = offsets(shape, strides);
  for (std::int64_t& offset : made) offset += list[0];
  return made == list;
}

/// All shapes of `count` elements with at most `rank` extents, as a random choice.
Shape random_shape_of(std::int64_t count, std::mt19937& random) {
  Shape shape;
  while (count > 1 && shape.size() < 4) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= count; ++d) {
      if (count % d == 0) divisors.push_back(d);
    }
    shape.push_back(divisors[random() % divisors.size()]);
    count /= shape.back();
  }
  shape.push_back(count);
  return shape;
}

}  // namespace

TEST_CASE("shape: element counts, and the bounds of 64 bits") {
  CHECK(element_count(Shape{}) == 1);
  CHECK(element_count(Shape{3, 4, 5}) == 60);
  CHECK(element_count(Shape{3, 0, 5}) == 0);
  CHECK(element_count(Shape{kHuge}) == kHuge);
  CHECK_THROWS_AS(element_count(Shape{-1}), InvalidArgument);
  CHECK_THROWS_AS(element_count(Shape{0, -1}), InvalidArgument);
  CHECK_THROWS_AS(element_count(Shape{kHuge, 2}), InvalidArgument);
  CHECK_THROWS_AS(element_count(Shape{kHuge, 2, 0}), InvalidArgument);
}

TEST_CASE("shape: row-major strides") {
  CHECK(contiguous_strides(Shape{}, 4) == Shape{});
  CHECK(contiguous_strides(Shape{2, 3, 4}, 8) == Shape{96, 32, 8});
  CHECK_THROWS_AS(contiguous_strides(Shape{2, kHuge / 4, 2}, 4), InvalidArgument);
  CHECK(strides_are_contiguous(Shape{2, 3}, Shape{12, 4}, 4));
  CHECK_FALSE(strides_are_contiguous(Shape{2, 3}, Shape{4, 8}, 4));
  CHECK_FALSE(strides_are_contiguous(Shape{3}, Shape{-4}, 4));
  CHECK(strides_are_contiguous(Shape{1, 3}, Shape{999, 4}, 4));
  CHECK(strides_are_contiguous(Shape{5, 0}, Shape{1, 7}, 4));
  CHECK(strides_are_contiguous(Shape{}, Shape{}, 4));
}

TEST_CASE("shape: spelled as Python does") {
  CHECK(shape_to_string(Shape{}) == "()");
  CHECK(shape_to_string(Shape{3}) == "(3,)");
  CHECK(shape_to_string(Shape{3, -4}) == "(3, -4)");
}

TEST_CASE("shape: -1 in reshape, as NumPy resolves or refuses it") {
  CHECK(resolve_reshape(Shape{2, 6}, {3, -1}) == Shape{3, 4});
  CHECK(resolve_reshape(Shape{2, 6}, {-1}) == Shape{12});
  CHECK(resolve_reshape(Shape{0, 3}, {-1, 3}) == Shape{0, 3});
  CHECK(resolve_reshape(Shape{}, {-1}) == Shape{1});
  CHECK(resolve_reshape(Shape{1}, {}) == Shape{});
  for (const Shape& wrong :
       {Shape{5, -1}, Shape{-1, -1}, Shape{-2}, Shape{13}, Shape{}, Shape{0, -1}}) {
    CHECK_THROWS_AS(resolve_reshape(Shape{2, 6}, wrong), InvalidArgument);
  }
  CHECK_THROWS_AS(resolve_reshape(Shape{0, 3}, {0, -1}), InvalidArgument);
  try {
    resolve_reshape(Shape{2, 6}, {5, -1});
    FAIL("nothing was thrown");
  } catch (const InvalidArgument& error) {
    CHECK(std::string(error.what()) ==
          "cannot reshape (2, 6) into (5, -1): the numbers of elements differ");
  }
}

TEST_CASE("shape: reshape makes a view exactly when one exists, with the same elements") {
  std::mt19937 random(1234);
  int views = 0;
  int copies = 0;
  for (int round = 0; round < 20000; ++round) {
    Shape shape;
    Shape strides;
    const auto rank = random() % 4;
    for (std::size_t i = 0; i < rank; ++i) shape.push_back(1 + random() % 6);
    // Start from a dense layout in a random order of axes, then step, reverse and broadcast.
    strides = contiguous_strides(shape, 4);
    std::vector<std::size_t> order(rank);
    for (std::size_t i = 0; i < rank; ++i) order[i] = i;
    if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    Shape mixed_shape;
    Shape mixed_strides;
    for (const std::size_t axis : order) {
      mixed_shape.push_back(shape[axis]);
      std::int64_t stride = strides[axis];
      if (random() % 8 == 0) stride *= 2;
      if (random() % 8 == 0) stride = -stride;
      if (random() % 16 == 0) stride = 0;
      mixed_strides.push_back(stride);
    }
    const Shape to = random_shape_of(element_count(mixed_shape), random);
    const auto before = offsets(mixed_shape, mixed_strides);
    const auto made = reshape_strides(mixed_shape, mixed_strides, to, 4);
    REQUIRE(made.has_value() == has_strides(before, to));
    if (made) {
      REQUIRE(offsets(to, *made) == before);
      ++views;
    } else {
      ++copies;
    }
  }
  CHECK(views > 1000);
  CHECK(copies > 1000);
}

TEST_CASE("shape: reshape of no elements always works") {
  const auto strides = reshape_strides(Shape{0, 3}, Shape{100, 7}, Shape{5, 0, 2}, 4);
  REQUIRE(strides.has_value());
  CHECK(strides->size() == 3);
}

TEST_CASE("shape: covered bytes") {
  CHECK(byte_range(Shape{}, Shape{}, 8).size() == 8);
  CHECK(byte_range(Shape{3, 4}, Shape{16, 4}, 4).size() == 48);
  const ByteRange reversed = byte_range(Shape{3}, Shape{-8}, 4);
  CHECK(reversed.low == -16);
  CHECK(reversed.high == 4);
  CHECK(byte_range(Shape{0, 5}, Shape{1, 1}, 4).size() == 0);
  CHECK(byte_range(Shape{1000}, Shape{0}, 4).size() == 4);
  CHECK_THROWS_AS(byte_range(Shape{3}, Shape{kHuge}, 4), InvalidArgument);
  CHECK_THROWS_AS(byte_range(Shape{2, 2}, Shape{kHuge - 2, kHuge - 2}, 4), InvalidArgument);
}

TEST_CASE("shape: axes count from both ends") {
  CHECK(normalize_axis(0, 3) == 0);
  CHECK(normalize_axis(-1, 3) == 2);
  CHECK(normalize_axis(-3, 3) == 0);
  CHECK_THROWS_AS(normalize_axis(3, 3), InvalidArgument);
  CHECK_THROWS_AS(normalize_axis(-4, 3), InvalidArgument);
  CHECK_THROWS_AS(normalize_axis(0, 0), InvalidArgument);
}
