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

TEST_CASE("cuda types: what no program can define otherwise has a known layout") {
  const auto size = [](const TypeNode& type) {
    const auto layout = known_layout(type);
    return layout ? layout->size * 100 + layout->alignment : 0;
  };
  CHECK(size(builtin("bool")) == 101);
  CHECK(size(builtin("unsigned long")) == 808);
  CHECK(size(named("float3")) == 1204);
  CHECK(size(named("uchar4")) == 404);
  CHECK(size(named("double2")) == 1616);
  CHECK(size(named("longlong3")) == 2408);
  CHECK(size({.kind = TypeNodeKind::pointer}) == 808);
  for (const char* name : {"double4", "double4_16a", "ulonglong4_32a", "__half", "__half2", "P",
                           "ns::float4", "float5", "float"}) {
    CAPTURE(name);
    CHECK_FALSE(known_layout(named(name)));
  }
  for (const char* name : {"long double", "__int128", "void"}) {
    CHECK_FALSE(known_layout(builtin(name)));
  }
  for (const char* spelling :
       {"const float * __restrict__", "unsigned", "unsigned long long", "void *",
        "float4 * const *", "size_t", "__grid_constant__ const int"}) {
    CAPTURE(spelling);
    CHECK(spells_known_layout(spelling));
  }
  for (const char* spelling : {"", "T", "const T *", "float [ ]", "float &", "__half *", "struct P",
                               "int ( * ) ( float )", "std :: size_t", "unsigned T"}) {
    CAPTURE(spelling);
    CHECK_FALSE(spells_known_layout(spelling));
  }
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
  CHECK(element_from_spelling("const unsigned").scalar == ScalarType::uint32);
  CHECK(element_from_spelling("unsigned long long").scalar == ScalarType::uint64);
  CHECK(element_from_spelling("size_t").scalar == ScalarType::uint64);
  CHECK(element_from_spelling("volatile float").scalar == ScalarType::float32);
  CHECK_FALSE(element_from_spelling("T").scalar);
  CHECK_FALSE(element_from_spelling("").scalar);
  CHECK_FALSE(element_from_spelling("float *").scalar);
}
