// Element types of C++ types.
#include "jit/signature/cuda_types.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;

namespace {

TypeNode named(std::string name) { return {.kind = TypeNodeKind::named, .text = std::move(name)}; }
TypeNode builtin(std::string name) {
  return {.kind = TypeNodeKind::builtin, .text = std::move(name)};
}

}  // namespace

TEST_CASE("cuda types: numbers") {
  CHECK(element_type(builtin("float")).scalar == ScalarType::float32);
  CHECK(element_type(builtin("float")).lanes == 0);
  CHECK(element_type(builtin("unsigned long")).scalar == ScalarType::uint64);
  CHECK(element_type(named("__half")).scalar == ScalarType::float16);
  CHECK(element_type(named("__nv_bfloat16")).scalar == ScalarType::bfloat16);
  CHECK(element_type(named("__nv_fp8_e4m3")).scalar == ScalarType::float8_e4m3fn);
  CHECK(element_type(named("__nv_fp8_e5m2")).scalar == ScalarType::float8_e5m2);
  CHECK_FALSE(element_type(builtin("__int128")).scalar);
  CHECK_FALSE(element_type(builtin("void")).scalar);
}

TEST_CASE("cuda types: each vector type, scalar and lanes") {
  const struct {
    const char* base;
    ScalarType scalar;
  } bases[] = {{"char", ScalarType::int8},      {"uchar", ScalarType::uint8},
               {"short", ScalarType::int16},    {"ushort", ScalarType::uint16},
               {"int", ScalarType::int32},      {"uint", ScalarType::uint32},
               {"longlong", ScalarType::int64}, {"ulonglong", ScalarType::uint64},
               {"float", ScalarType::float32},  {"double", ScalarType::float64}};
  for (const auto& base : bases) {
    for (int lanes = 1; lanes <= 4; ++lanes) {
      const ElementType type = element_type(named(base.base + std::to_string(lanes)));
      CHECK(type.scalar == base.scalar);
      CHECK(type.lanes == lanes);
    }
  }
  CHECK(element_type(named("__half2")).lanes == 2);
  CHECK(element_type(named("__nv_fp8x4_e5m2")).lanes == 4);
  CHECK(element_type(named("double4_16a")).lanes == 4);
}

TEST_CASE("cuda types: what only looks like one") {
  for (const char* name :
       {"float5", "float0", "float", "4", "myfloat4", "ns::float4", "dim3", "P"}) {
    CHECK_FALSE(element_type(named(name)).scalar);
  }
}

TEST_CASE("cuda types: complex numbers by their part") {
  TypeNode complex = named("cuda::std::__4::complex");
  complex.has_arguments = true;
  complex.children = {std::make_shared<const TypeNode>(builtin("double"))};
  CHECK(element_type(complex).scalar == ScalarType::complex128);
  complex.children = {std::make_shared<const TypeNode>(builtin("int"))};
  CHECK_FALSE(element_type(complex).scalar);
}

TEST_CASE("cuda types: spellings of declarations") {
  CHECK(scalar_from_spelling("const unsigned") == ScalarType::uint32);
  CHECK(scalar_from_spelling("unsigned long long") == ScalarType::uint64);
  CHECK(scalar_from_spelling("size_t") == ScalarType::uint64);
  CHECK(scalar_from_spelling("volatile float") == ScalarType::float32);
  CHECK_FALSE(scalar_from_spelling("T"));
  CHECK_FALSE(scalar_from_spelling(""));
  CHECK_FALSE(scalar_from_spelling("float *"));
}
