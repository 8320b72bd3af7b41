// Values as a kernel's parameters, signatures, grids.
#include "tune/judge/packing.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/errors.h"

using namespace kernwright;

namespace {

Parameter scalar(ScalarType type) {
  Parameter parameter;
  parameter.name = "n";
  parameter.type = "T";
  parameter.scalar = type;
  parameter.size = scalar_size(type);
  return parameter;
}

Parameter pointer(std::optional<ScalarType> type) {
  Parameter parameter;
  parameter.name = "x";
  parameter.type = "T*";
  parameter.kind = ParameterKind::pointer;
  parameter.scalar = type;
  return parameter;
}

template <typename T>
T packed(ScalarType type, const HostValue& value) {
  const std::vector<std::byte> bytes = pack(scalar(type), value);
  REQUIRE(bytes.size() == sizeof(T));
  T result;
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

}  // namespace

TEST_CASE("packing: integers fit or are refused") {
  CHECK(packed<std::int32_t>(ScalarType::int32, HostValue::make_integer(-5)) == -5);
  CHECK(packed<float>(ScalarType::float32, HostValue::make_integer(3)) == 3);
  CHECK(packed<std::int64_t>(ScalarType::int64,
                             HostValue::make_integer(std::numeric_limits<std::int64_t>::min())) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(packed<std::uint8_t>(ScalarType::uint8, HostValue::make_integer(255)) == 255);
  const auto refuses = [](ScalarType type, std::int64_t value) {
    CHECK_THROWS_AS(pack(scalar(type), HostValue::make_integer(value)), InvalidArgument);
  };
  refuses(ScalarType::uint8, 256);
  refuses(ScalarType::uint8, -1);
  refuses(ScalarType::int8, 128);
  refuses(ScalarType::int8, -129);
  refuses(ScalarType::int32, std::int64_t{1} << 31);
  refuses(ScalarType::boolean, 2);
  CHECK_THROWS_AS(pack(scalar(ScalarType::int32), HostValue::make_real(1.5)), InvalidArgument);
}

TEST_CASE("packing: 16-bit floats are rounded to the nearest, ties to even") {
  const auto half = [](double v) {
    return packed<std::uint16_t>(ScalarType::float16, HostValue::make_real(v));
  };
  CHECK(half(1) == 0x3c00);
  CHECK(half(-2) == 0xc000);
  CHECK(half(65504) == 0x7bff);
  CHECK(half(65519) == 0x7bff);
  CHECK(half(65520) == 0x7c00);
  CHECK(half(std::ldexp(1, -24)) == 1);
  CHECK(half(std::ldexp(1, -25)) == 0);
  CHECK(half(std::ldexp(1, -14)) == 0x0400);
  CHECK(half(1 + std::ldexp(1, -11)) == 0x3c00);
  CHECK(half(1 + 3 * std::ldexp(1, -11)) == 0x3c02);
  CHECK(half(std::numeric_limits<double>::infinity()) == 0x7c00);
  const auto bfloat = [](double v) {
    return packed<std::uint16_t>(ScalarType::bfloat16, HostValue::make_real(v));
  };
  CHECK(bfloat(1) == 0x3f80);
  CHECK(bfloat(-3) == 0xc040);
  CHECK(bfloat(1e39) == 0x7f80);
  // Every finite half comes back.
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const double value =
        element_as_double(ScalarType::float16, reinterpret_cast<const std::byte*>(&narrow));
    REQUIRE(half(value) == bits);
  }
}

TEST_CASE("packing: values must suit their parameters") {
  KernelSignature signature;
  signature.name = "k";
  signature.parameters = {pointer(ScalarType::float32), scalar(ScalarType::int32)};
  const HostValue floats = HostValue::from(ScalarType::float32, std::vector<float>{1});
  const HostValue ints = HostValue::from(ScalarType::int32, std::vector<int>{1});
  check_values(signature, {floats, HostValue::make_integer(1)});
  HostValue null;
  null.kind = HostValue::Kind::null;
  check_values(signature, {null, HostValue::make_integer(1)});
  CHECK_THROWS_AS(check_values(signature, {floats}), InvalidArgument);
  CHECK_THROWS_AS(check_values(signature, {ints, HostValue::make_integer(1)}), InvalidArgument);
  CHECK_THROWS_AS(check_values(signature, {floats, floats}), InvalidArgument);
  CHECK_THROWS_AS(check_values(signature, {HostValue::make_integer(1), HostValue::make_integer(1)}),
                  InvalidArgument);
  signature.parameters[0] = pointer(std::nullopt);
  check_values(signature, {ints, HostValue::make_integer(1)});
}

TEST_CASE("packing: the text of a signature is a list of parameters") {
  Task task;
  task.signature = "void k(const float* x, int n);";
  CHECK(signature_source(task).find("declared_by_task(const float* x, int n)") !=
        std::string::npos);
  task.signature = "const __half* x";
  CHECK(signature_source(task).starts_with("#include <cuda_fp16.h>"));
  for (const char* bad : {"int n) { } __global__ void other(int n", "int n; int m", "#include"}) {
    task.signature = bad;
    CHECK_THROWS_AS(signature_source(task), InvalidArgument);
  }
}

TEST_CASE("packing: one thread for each element of the largest written array") {
  const HostValue many = HostValue::from(ScalarType::float32, std::vector<float>(1000));
  const HostValue few = HostValue::from(ScalarType::float32, std::vector<float>(257));
  const HostValue none = HostValue::from(ScalarType::float32, std::vector<float>{});
  CHECK(default_grid({many, few}, {std::nullopt, few}, {256, 1, 1}) == Dim3{2, 1, 1});
  CHECK(default_grid({many, few}, {many, few}, {100, 1, 1}) == Dim3{10, 1, 1});
  CHECK(default_grid({none}, {none}, {256, 1, 1}) == Dim3{1, 1, 1});
}
