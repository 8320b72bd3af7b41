// The spelling of signatures, and the parameter layout against offsetof of the same C++ structs.
#include "core/kernel_signature.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

using namespace kernwright;

namespace {

Parameter scalar(ScalarType type, std::string name = "a") {
  return {.name = std::move(name), .type = std::string(scalar_name(type)), .scalar = type};
}

Parameter pointer(std::string type, std::string name) {
  return {.name = std::move(name), .type = std::move(type), .kind = ParameterKind::pointer};
}

Parameter vector(ScalarType type, int lanes) {
  return {
      .name = "v", .type = "vector", .kind = ParameterKind::vector, .scalar = type, .lanes = lanes};
}

Parameter aggregate(std::size_t size, std::size_t alignment = 0) {
  return {.name = "s",
          .type = "S",
          .kind = ParameterKind::aggregate,
          .size = size,
          .alignment = alignment};
}

}  // namespace

TEST_CASE("signature: reads as the user wrote it") {
  KernelSignature signature{.name = "saxpy", .lowered = "_Z5saxpyfPKfPfi", .parameters = {}};
  CHECK(signature.to_string() == "saxpy()");
  signature.parameters = {{.name = "a", .type = "float"},
                          pointer("const float*", "x"),
                          pointer("float*", "y"),
                          {.name = "", .type = "int"}};
  CHECK(signature.to_string() == "saxpy(float a, const float* x, float* y, int)");
}

TEST_CASE("layout: agrees with the C++ compiler's own layout of a struct") {
  struct Reference {
    char c;
    double d;
    std::int16_t h;
    void* p;
    float f;
    std::int64_t l;
    bool b;
  };
  KernelSignature signature;
  signature.parameters = {scalar(ScalarType::int8),    scalar(ScalarType::float64),
                          scalar(ScalarType::int16),   pointer("void*", "p"),
                          scalar(ScalarType::float32), scalar(ScalarType::int64),
                          scalar(ScalarType::boolean)};
  signature.lay_out();
  CHECK(signature.parameters[0].offset == offsetof(Reference, c));
  CHECK(signature.parameters[1].offset == offsetof(Reference, d));
  CHECK(signature.parameters[2].offset == offsetof(Reference, h));
  CHECK(signature.parameters[3].offset == offsetof(Reference, p));
  CHECK(signature.parameters[4].offset == offsetof(Reference, f));
  CHECK(signature.parameters[5].offset == offsetof(Reference, l));
  CHECK(signature.parameters[6].offset == offsetof(Reference, b));
  CHECK(signature.parameters[6].size == 1);
}

TEST_CASE("layout: vectors of three lanes are aligned as their lane, others as a whole up to 16") {
  CHECK(parameter_alignment(vector(ScalarType::float32, 2)) == 8);
  CHECK(parameter_alignment(vector(ScalarType::float32, 3)) == 4);
  CHECK(parameter_alignment(vector(ScalarType::float32, 4)) == 16);
  CHECK(parameter_alignment(vector(ScalarType::float64, 2)) == 16);
  CHECK(parameter_alignment(vector(ScalarType::float64, 4)) == 16);
  CHECK(parameter_alignment(vector(ScalarType::int8, 4)) == 4);
  CHECK(parameter_alignment(vector(ScalarType::int16, 3)) == 2);
  CHECK(parameter_alignment(vector(ScalarType::float16, 2)) == 4);

  KernelSignature signature;
  signature.parameters = {scalar(ScalarType::int8), vector(ScalarType::float32, 3),
                          vector(ScalarType::float32, 4), vector(ScalarType::float32, 2)};
  signature.lay_out();
  CHECK(signature.parameters[1].offset == 4);
  CHECK(signature.parameters[1].size == 12);
  CHECK(signature.parameters[2].offset == 16);
  CHECK(signature.parameters[3].offset == 32);
  CHECK(signature.parameters[3].size == 8);
}

TEST_CASE("layout: aggregates use the alignment given, else one that divides their size") {
  CHECK(parameter_alignment(aggregate(12)) == 4);
  CHECK(parameter_alignment(aggregate(1)) == 1);
  CHECK(parameter_alignment(aggregate(64)) == 8);
  CHECK(parameter_alignment(aggregate(64, 32)) == 32);
  CHECK(parameter_alignment(aggregate(0)) == 1);

  KernelSignature signature;
  signature.parameters = {scalar(ScalarType::int32), aggregate(48, 16), scalar(ScalarType::int8),
                          aggregate(6)};
  signature.lay_out();
  CHECK(signature.parameters[1].offset == 16);
  CHECK(signature.parameters[2].offset == 64);
  CHECK(signature.parameters[3].offset == 66);
  CHECK(signature.parameters[3].size == 6);
}

TEST_CASE("layout: no parameters take no bytes, and laying out twice changes nothing") {
  KernelSignature signature;
  signature.lay_out();
  CHECK(signature.parameters.empty());
  signature.parameters = {scalar(ScalarType::int8), scalar(ScalarType::complex128)};
  signature.lay_out();
  const std::size_t offset = signature.parameters[1].offset;
  signature.lay_out();
  CHECK(signature.parameters[1].offset == offset);
  CHECK(signature.parameters[1].size == 16);
}
