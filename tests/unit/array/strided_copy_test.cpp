// Strided copies to the host: dense, sparse, reversed, broadcast, and larger than the staging
// limit.
#include "array/strided_copy.h"

#include "array/array.h"
#include "core/device.h"
#include "memory/buffer.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

using namespace kernwright;

namespace {

/// The same copy, one element at a time, on host memory.
std::vector<unsigned char> reference(const unsigned char* base, const Shape& shape,
                                     const Shape& strides, std::size_t element) {
  std::vector<unsigned char> result;
  const std::int64_t count = element_count(shape);
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n;
    std::int64_t at = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      at += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
    result.insert(result.end(), base + at, base + at + element);
  }
  return result;
}

struct Memory {
  explicit Memory(std::size_t bytes)
      : device(testing::fresh_device()), host(bytes), buffer(default_resource(device), bytes, {}) {
    std::mt19937 random(11);
    for (auto& byte : host) byte = static_cast<unsigned char>(random());
    copy_to_device(device, buffer.address(), host.data(), bytes);
  }

  void check(std::size_t start, const Shape& shape, const Shape& strides, std::size_t element) {
    const auto expected = reference(host.data() + start, shape, strides, element);
    std::vector<unsigned char> result(expected.size(), 0x77);
    copy_strided_to_host(device, result.data(), buffer.address() + start, shape, strides, element);
    REQUIRE(result == expected);
  }

  Device& device;
  std::vector<unsigned char> host;
  Buffer buffer;
};

int copies() { return testing::FakeDriver::get().calls("cuMemcpyDtoH"); }

}  // namespace

TEST_CASE("strided copy: random views of small memory") {
  Memory memory(4096);
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t element = std::size_t{1} << random() % 5;
    Shape shape;
    Shape strides;
    std::int64_t low = 0;
    std::int64_t high = static_cast<std::int64_t>(element);
    for (std::size_t i = 0, rank = random() % 4; i < rank; ++i) {
      shape.push_back(random() % 6);
      strides.push_back((static_cast<std::int64_t>(random() % 41) - 20) *
                        static_cast<std::int64_t>(element));
      const std::int64_t reach = std::max<std::int64_t>(shape.back() - 1, 0) * strides.back();
      (reach < 0 ? low : high) += reach;
    }
    if (high - low > 4096) continue;
    memory.check(static_cast<std::size_t>(-low), shape, strides, element);
  }
}

TEST_CASE("strided copy: one copy for what is contiguous or dense") {
  Memory memory(1 << 20);
  const int before = copies();
  memory.check(0, {512, 512}, {2048, 4}, 4);
  CHECK(copies() == before + 1);
  memory.check(0, {512, 512}, {4, 2048}, 4);  // a transpose
  CHECK(copies() == before + 2);
  memory.check((1 << 20) - 4, {1 << 18}, {-4}, 4);  // reversed
  CHECK(copies() == before + 3);
  memory.check(0, {1000, 10}, {0, 4}, 4);  // broadcast
  CHECK(copies() == before + 4);
}

TEST_CASE("strided copy: a sparse column travels in pieces, not as the whole range") {
  Memory memory(16 << 20);
  const int before = copies();
  memory.check(8, {256}, {65536}, 4);
  CHECK(copies() > before + 50);
  memory.check(8, {16, 4}, {1 << 20, 4}, 4);  // short rows far apart: one copy each
  memory.check((15 << 20) + 8, {16, 4}, {-(1 << 20), 4}, 4);
}

TEST_CASE("strided copy: dense ranges above the staging limit are halved") {
  Memory memory(80 << 20);
  const int before = copies();
  memory.check(0, {2, 20 << 20}, {40 << 20, 2}, 1);
  CHECK(copies() > before + 1);
  memory.check(0, {3, 1000, 2}, {1, 80000, 20000}, 1);
}
