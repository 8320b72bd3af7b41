// Typed arguments: conversion to the kernel's types, and every refusal with its message.
#include "core/arguments.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/runtime.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace kernwright;

namespace {

Device& sim_device() {
  testing::test_device();
  return Runtime::get().device("sim");
}

Parameter scalar(ScalarType type, const char* spelling) {
  return {.name = "p", .type = spelling, .scalar = type, .size = scalar_size(type)};
}

Parameter pointer(std::optional<ScalarType> type, bool is_const = false) {
  return {.name = "p",
          .type = is_const ? "const T*" : "T*",
          .kind = ParameterKind::pointer,
          .scalar = type,
          .pointee_const = is_const,
          .size = 8};
}

Parameter void_pointer() {
  Parameter parameter = pointer(std::nullopt);
  parameter.type = "void* __restrict__";
  return parameter;
}

/// Packs one argument for one parameter and returns its bytes.
template <typename To, typename From>
To pack(const Parameter& parameter, const From& value) {
  const KernelSignature signature{.name = "k", .lowered = "k", .parameters = {parameter}};
  const ArgumentView view = KernelArgument<From>::view(value);
  ArgumentSlot slot{};
  void* where = nullptr;
  pack_arguments(signature, sim_device(), {&view, 1}, {&slot, 1}, {&where, 1});
  To result;
  std::memcpy(&result, where, sizeof result);
  return result;
}

template <typename Exception, typename Call>
std::string message(Call call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("arguments: integers convert to any integer type that holds the value") {
  const auto i32 = scalar(ScalarType::int32, "int");
  CHECK(pack<std::int32_t>(i32, std::int64_t{-5}) == -5);
  CHECK(pack<std::int32_t>(i32, std::numeric_limits<std::int32_t>::min()) ==
        std::numeric_limits<std::int32_t>::min());
  CHECK(pack<std::int32_t>(i32, std::uint64_t{2147483647}) == 2147483647);
  CHECK_THROWS_AS(pack<std::int32_t>(i32, std::uint64_t{2147483648}), ArgumentRangeError);
  CHECK_THROWS_AS(pack<std::int32_t>(i32, std::int64_t{-2147483649}), ArgumentRangeError);
  const auto u64 = scalar(ScalarType::uint64, "unsigned long long");
  CHECK(pack<std::uint64_t>(u64, std::numeric_limits<std::uint64_t>::max()) ==
        std::numeric_limits<std::uint64_t>::max());
  CHECK_THROWS_AS(pack<std::uint64_t>(u64, -1), ArgumentRangeError);
  const auto u8 = scalar(ScalarType::uint8, "unsigned char");
  CHECK(pack<std::uint8_t>(u8, 255) == 255);
  CHECK(contains(message<ArgumentRangeError>([&] { pack<std::uint8_t>(u8, 256); }),
                 "got 256, outside 0 ... 255; p wants a smaller number"));
  CHECK(pack<std::int64_t>(scalar(ScalarType::int64, "long"),
                           std::numeric_limits<std::int64_t>::min()) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(pack<bool>(scalar(ScalarType::boolean, "bool"), 1));
  CHECK_THROWS_AS(pack<bool>(scalar(ScalarType::boolean, "bool"), 2), ArgumentRangeError);
}

TEST_CASE("arguments: floating parameters take any number, integers refuse floating values") {
  CHECK(pack<float>(scalar(ScalarType::float32, "float"), 3) == 3.0f);
  CHECK(pack<float>(scalar(ScalarType::float32, "float"), 0.1) == 0.1f);
  CHECK(pack<double>(scalar(ScalarType::float64, "double"), 0.5f) == 0.5);
  CHECK(std::isnan(pack<float>(scalar(ScalarType::float32, "float"), std::nan(""))));
  CHECK(contains(message<ArgumentError>([] { pack<int>(scalar(ScalarType::int32, "int"), 2.5); }),
                 "got a number of type float64 (2.5): p wants an integer"));
}

TEST_CASE("arguments: pointers are checked for type, constness and device") {
  const Pointer f32{4096, ScalarType::float32};
  CHECK(pack<std::uint64_t>(pointer(ScalarType::float32), f32) == 4096);
  CHECK(pack<std::uint64_t>(void_pointer(), f32) == 4096);
  CHECK(pack<std::uint64_t>(pointer(ScalarType::float32), Pointer{64, std::nullopt}) == 64);
  CHECK(pack<std::uint64_t>(pointer(ScalarType::float32), nullptr) == 0);
  CHECK(contains(
      message<ArgumentError>([&] { pack<std::uint64_t>(pointer(ScalarType::float64), f32); }),
      "k(T* p): parameter 1 (T*) got memory of float32: p wants float64"));
  CHECK_THROWS_AS(pack<std::uint64_t>(pointer(ScalarType::float32), 5), ArgumentError);
  CHECK_THROWS_AS(pack<int>(scalar(ScalarType::int32, "int"), f32), ArgumentError);
}

TEST_CASE("arguments: what a floating parameter cannot hold is refused") {
  const auto f32 = scalar(ScalarType::float32, "float");
  CHECK(contains(message<ArgumentRangeError>([&] { pack<float>(f32, 1e300); }),
                 "got 1e+300, outside -3.40e38 ... 3.40e38"));
  CHECK(pack<float>(f32, -std::numeric_limits<double>::infinity()) ==
        -std::numeric_limits<float>::infinity());
  CHECK(pack<std::uint16_t>(scalar(ScalarType::float16, "__half"), 1.5f) == 0x3e00);
  CHECK(pack<std::uint16_t>(scalar(ScalarType::bfloat16, "__nv_bfloat16"), -2) == 0xc000);
  CHECK_THROWS_AS(pack<std::uint16_t>(scalar(ScalarType::float16, "__half"), 65520),
                  ArgumentRangeError);
}

TEST_CASE("arguments: pointers to structs take bytes, those to pointers addresses") {
  const auto type_of = [](const char* type, ScalarType element) {
    Parameter parameter = pointer(std::nullopt);
    parameter.type = type;
    return [parameter, element] { return pack<std::uint64_t>(parameter, Pointer{4096, element}); };
  };
  CHECK(type_of("S<float*>*", ScalarType::uint8)() == 4096);
  CHECK(contains(message<ArgumentError>(type_of("const S<float*>*", ScalarType::uint64)),
                 "got memory of uint64: p wants uint8 (the bytes of structs)"));
  CHECK(type_of("float**", ScalarType::uint64)() == 4096);
  CHECK(contains(message<ArgumentError>(type_of("S<int>* const*", ScalarType::uint8)),
                 "got memory of uint8: p wants uint64 (addresses)"));
}

/// A pointer to vectors of float32.
static Parameter vector_pointer(int lanes) {
  Parameter parameter = pointer(ScalarType::float32);
  parameter.lanes = lanes;
  parameter.pointee_size = 4 * static_cast<std::size_t>(lanes);
  return parameter;
}

static std::string refusal_of(const Parameter& parameter, const ArgumentView& view) {
  return message<ArgumentError>([&] {
    const KernelSignature signature{.name = "k", .lowered = "k", .parameters = {parameter}};
    ArgumentSlot slot{};
    void* where = nullptr;
    pack_arguments(signature, sim_device(), {&view, 1}, {&slot, 1}, {&where, 1});
  });
}

TEST_CASE("arguments: memory for vectors holds whole ones at their alignment") {
  const std::string fine = "nothing was thrown";
  ArgumentView view = KernelArgument<Pointer>::view({4096, ScalarType::float32});
  view.memory_bytes = 32;
  CHECK(refusal_of(vector_pointer(4), view) == fine);
  view.memory_bytes = 24;
  CHECK(contains(refusal_of(vector_pointer(4), view),
                 "got memory of 24 bytes, no multiple of the 16 bytes of an element: pad p"));
  view.memory_bytes = 32;
  view.address = 4104;
  CHECK(contains(refusal_of(vector_pointer(4), view),
                 "got memory at address 0x1008, not aligned to 16 bytes"));
  view.memory_bytes = 36;
  CHECK(refusal_of(vector_pointer(3), view) == fine);
  view.read_only = true;
  CHECK(contains(refusal_of(vector_pointer(3), view), "the kernel may write to p"));
  Parameter constant = vector_pointer(3);
  constant.pointee_const = true;
  CHECK(refusal_of(constant, view) == fine);
  const auto complex64 = KernelArgument<Pointer>::view({4096, ScalarType::complex64});
  CHECK(refusal_of(vector_pointer(2), complex64) == fine);
  const auto complex128 = KernelArgument<Pointer>::view({4096, ScalarType::complex128});
  CHECK(contains(refusal_of(vector_pointer(2), complex128),
                 "got memory of complex128: p wants float32"));
}

TEST_CASE("arguments: structs go by value when the size is right") {
  struct Pair {
    float a;
    int b;
  };
  const Parameter aggregate{
      .name = "p", .type = "Pair", .kind = ParameterKind::aggregate, .size = sizeof(Pair)};
  const Pair back = pack<Pair>(aggregate, Pair{1.5f, 7});
  CHECK(back.a == 1.5f);
  CHECK(back.b == 7);
  CHECK_THROWS_AS(pack<double>(aggregate, std::array<int, 3>{}), ArgumentError);
}

TEST_CASE("arguments: the count is named with the whole signature") {
  const KernelSignature signature{
      .name = "k", .lowered = "k", .parameters = {scalar(ScalarType::int32, "int")}};
  CHECK(message<ArgumentError>([&] { pack_arguments(signature, sim_device(), {}, {}, {}); }) ==
        "k(int p): parameter 1 (int) is missing: 0 arguments given");
  std::array<ArgumentView, 2> two{KernelArgument<int>::view(1), KernelArgument<int>::view(2)};
  std::array<ArgumentSlot, 2> slots;
  std::array<void*, 2> where;
  CHECK(message<ArgumentError>([&] {
          pack_arguments(signature, sim_device(), two, slots, where);
        }) == "k(int p): takes 1 argument and got 2");
}

TEST_CASE("arguments: parameters without a type take bits") {
  const auto untyped = [](std::size_t size) {
    KernelSignature signature{.name = "k", .lowered = "k", .parameters = {}};
    signature.add_untyped(size);
    return signature.parameters[0];
  };
  CHECK(pack<std::int8_t>(untyped(1), -128) == -128);
  CHECK(pack<std::uint8_t>(untyped(1), 255) == 255);
  CHECK(pack<std::uint32_t>(untyped(4), 4294967295u) == 4294967295u);
  CHECK(pack<std::int64_t>(untyped(8), std::numeric_limits<std::int64_t>::min()) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(pack<CUdeviceptr>(untyped(8), Pointer{4096, ScalarType::float64}) == 4096);
  struct Bits {
    float value;
  };
  CHECK(pack<float>(untyped(4), Bits{1.5f}) == 1.5f);
  CHECK_THROWS_AS(pack<int>(untyped(1), 256), ArgumentRangeError);
  CHECK_THROWS_AS(pack<int>(untyped(1), -129), ArgumentRangeError);
  CHECK_THROWS_AS(pack<float>(untyped(4), 1.5f), ArgumentError);
  CHECK_THROWS_AS(pack<int>(untyped(4), Pointer{4096}), ArgumentError);
  CHECK_THROWS_AS(pack<int>(untyped(8), Bits{1.5f}), ArgumentError);
  CHECK(untyped(24).kind == ParameterKind::aggregate);
}
