// Contents of outputs, and results that were put together with them.
#include "tune/judge/fill.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>

#include "unit/tune/judge/host_arrays.h"

using namespace kernwright;
using test::doubles;
using test::floats;

namespace {

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  const auto* const begin = reinterpret_cast<const float*>(bytes.data());
  return {begin, begin + bytes.size() / sizeof(float)};
}

const std::vector<double> kExpected{3, -1.5, 0.25, 7};
constexpr double kSize = 16;

/// Whether results made of expected value and step are put together in one way, whatever the sign.
template <typename Make>
bool adds(const Make& make, const std::vector<float>& given = {0, 0, 0, 0}) {
  std::uint32_t ways = ~0U;
  for (const double size : {kSize, -kSize}) {
    const std::vector<float> before = floats_of(steps(floats(given), size));
    std::vector<float> after;
    for (std::size_t i = 0; i < kExpected.size(); ++i) {
      after.push_back(static_cast<float>(make(kExpected[i], before[i])));
    }
    ways &= addition_ways(floats(after), doubles(kExpected), floats(given), size, 1e-6, 1e-6);
  }
  return ways != 0;
}

}  // namespace

TEST_CASE("fill: every kind of contents") {
  const HostValue given = floats({1, 2, 3});
  const std::vector<float> earlier{9, 8};
  const auto made = [&](Fill fill) {
    return floats_of(filled(fill, given, std::as_bytes(std::span(earlier)), 5));
  };
  CHECK(made(Fill::zeros) == std::vector<float>{0, 0, 0});
  CHECK(made(Fill::ones) == std::vector<float>{1, 1, 1});
  CHECK(made(Fill::given) == std::vector<float>{1, 2, 3});
  CHECK(made(Fill::earlier) == std::vector<float>{9, 8, 9});
  CHECK(std::isnan(made(Fill::all_bits)[0]));
  CHECK(filled(Fill::random, given, {}, 5) != filled(Fill::random, given, {}, 6));
  CHECK_MESSAGE(filled(Fill::earlier, given, {}, 5) == filled(Fill::random, given, {}, 5),
                "there were no results");
  CHECK(filled(Fill::random, given, {}, 5) == filled(Fill::random, given, {}, 5));
  CHECK(filled(Fill::zeros, floats({}), {}, 5).empty());
}

TEST_CASE("fill: mixed contents have numbers that kernels look for") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const HostValue given = floats(std::vector<float>(20000, 42));
  for (const Fill fill : {Fill::mixed, Fill::blocks}) {
    CAPTURE(static_cast<int>(fill));
    const auto numbers = floats_of(filled(fill, given, {}, 3));
    for (const float wanted : {0.0F, 1.0F, -1.0F, 2.0F, 0.5F, 42.0F, kInfinity, -kInfinity}) {
      CAPTURE(wanted);
      CHECK(std::count(numbers.begin(), numbers.end(), wanted) > 100);
      if (fill == Fill::mixed) continue;
      const auto end = numbers.begin() + 16 * 256;
      CHECK_MESSAGE(std::search_n(numbers.begin(), end, 256, wanted) != end, "a block of it");
    }
    const auto has = [&](auto test) { return std::any_of(numbers.begin(), numbers.end(), test); };
    CHECK(has([](float v) { return std::isnan(v); }));
    CHECK(has([](float v) { return v == 0 && std::signbit(v); }));
    CHECK(has([](float v) { return std::fpclassify(v) == FP_SUBNORMAL; }));
  }
}

TEST_CASE("fill: mixed contents have the bounds of their type") {
  const auto has = [](const auto& given, auto wanted) {
    const std::vector<std::byte> bytes = filled(Fill::mixed, given, {}, 3);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof wanted) {
      if (std::memcmp(&bytes[at], &wanted, sizeof wanted) == 0) return true;
    }
    return false;
  };
  using Floats = std::numeric_limits<float>;
  const HostValue single = floats(std::vector<float>(2000, 42));
  for (const float wanted : {Floats::max(), Floats::lowest(), Floats::min()}) {
    CAPTURE(wanted);
    CHECK(has(single, wanted));
  }
  const HostValue whole = HostValue::from(ScalarType::int32, std::vector<int>(2000, 42));
  CHECK(has(whole, std::numeric_limits<int>::max()));
  CHECK(has(whole, std::numeric_limits<int>::min()));
  const HostValue half = HostValue::from(ScalarType::float16, std::vector<std::uint16_t>(2000));
  CHECK(has(half, std::uint16_t{0x7bff}));
  CHECK(has(half, std::uint16_t{0xfbff}));
}

TEST_CASE("fill: steps are clear beside the expected values, and the type holds them") {
  CHECK(step_size(doubles({3, -5}), ScalarType::float32) == 16);
  CHECK(step_size(doubles({0.001}), ScalarType::float32) < 0.01);
  CHECK(step_size(doubles({0.001}), ScalarType::int32) == 1);
  CHECK(step_size(doubles({100}), ScalarType::int8) == 64);
  CHECK(step_size(doubles({1}), ScalarType::boolean) == 1);
  CHECK(step_size(doubles({0, 0}), ScalarType::float16) == 1);
  CHECK(step_size(doubles({1e-17}), ScalarType::float32, 1e-5) == 1);
  CHECK(step_size(doubles({1e-5, 2e-5}), ScalarType::float32, 1e-5) < 1e-4);
}

TEST_CASE("fill: results that are put together with contents") {
  CHECK(adds([](double e, double c) { return e + c; }));
  CHECK_MESSAGE(adds([](double e, double c) { return e + c - 2; }, {2, 2, 2, 2}), "onto twos");
  const std::vector<float> low(4, -99), high(4, 99);
  CHECK(adds([](double e, double c) { return std::max(e, c); }, low));
  CHECK(adds([](double e, double c) { return std::min(e, c); }, high));
  CHECK(adds([](double e, double c) { return e * c; }, {1, 1, 1, 1}));
  CHECK_MESSAGE(adds([](double e, double c) { return e == 0.25 ? c : e; }, {0, 0, 0.25F, 0}),
                "what stays was right already");
}

TEST_CASE("fill: results that depend on contents for no good reason") {
  CHECK_FALSE(adds([](double, double c) { return c; }));
  CHECK_FALSE(adds([](double e, double c) { return c < 0 ? c : e; }));
  CHECK_FALSE(adds([](double e, double c) { return std::max(e, c); }));
  CHECK_FALSE(adds([](double e, double c) { return e * c; }, {1, 1, 2, 1}));
  CHECK_FALSE(adds([](double e, double c) { return c > 0 ? e + c : e; }));
  CHECK_FALSE(adds([](double, double) { return 0; }));
}

TEST_CASE("fill: bits of integers") {
  const std::vector<int> expected{5, 6, 0, 9}, given(4);
  std::vector<int> after;
  for (std::size_t i = 0; i < 4; ++i) after.push_back(expected[i] | (i % 2 == 0 ? 32 : -32));
  const auto ints = [](const std::vector<int>& v) { return HostValue::from(ScalarType::int32, v); };
  CHECK(addition_ways(ints(after), ints(expected), ints(given), 32, 0, 0) != 0);
  after[3] = 0;
  CHECK(addition_ways(ints(after), ints(expected), ints(given), 32, 0, 0) == 0);
}
