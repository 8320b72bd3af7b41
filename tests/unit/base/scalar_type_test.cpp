// Names, sizes and classes of the element types.
#include "base/scalar_type.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace kernwright;

TEST_CASE("scalar type: names are unique and lead back to the type") {
  std::set<std::string_view> names;
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    CAPTURE(i);
    CHECK(names.insert(scalar_name(type)).second);
    REQUIRE(scalar_from_name(scalar_name(type)).has_value());
    CHECK(*scalar_from_name(scalar_name(type)) == type);
  }
  CHECK_FALSE(scalar_from_name("").has_value());
  CHECK_FALSE(scalar_from_name("float").has_value());
  CHECK_FALSE(scalar_from_name("Float32").has_value());
}

TEST_CASE("scalar type: the size agrees with the digits of the name") {
  CHECK(scalar_size(ScalarType::boolean) == 1);
  for (int i = 1; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    const std::string name(scalar_name(type));
    const std::size_t digits = name.find_first_of("0123456789");
    CAPTURE(name);
    CHECK(scalar_size(type) * 8 == std::stoul(name.substr(digits)));
  }
}

TEST_CASE("scalar type: every type has exactly one class") {
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    const int classes = int{is_signed_integer(type)} + int{is_unsigned_integer(type)} +
                        int{is_floating(type)} + int{is_complex(type)};
    CAPTURE(scalar_name(type));
    CHECK(classes == (type == ScalarType::boolean ? 0 : 1));
  }
  CHECK(is_floating(ScalarType::float8_e5m2));
  CHECK(is_unsigned_integer(ScalarType::uint64));
  CHECK(is_signed_integer(ScalarType::int8));
  CHECK(is_complex(ScalarType::complex64));
  CHECK(real_part_type(ScalarType::complex64) == ScalarType::float32);
  CHECK(real_part_type(ScalarType::complex128) == ScalarType::float64);
  CHECK(real_part_type(ScalarType::int8) == ScalarType::int8);
}

TEST_CASE("scalar type: halves and float8 types are the floats of 16 and 8 bits") {
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    CAPTURE(scalar_name(type));
    CHECK(is_half(type) == (is_floating(type) && scalar_size(type) == 2));
    CHECK((is_floating(type) || !is_float8(type)));
    CHECK((scalar_size(type) == 1 || !is_float8(type)));
  }
  CHECK(is_float8(ScalarType::float8_e4m3fn));
  CHECK(is_float8(ScalarType::float8_e5m2));
}

TEST_CASE("scalar type: a value that is none of the types is harmless") {
  const auto wrong = static_cast<ScalarType>(200);
  CHECK(scalar_size(wrong) == 0);
  CHECK(scalar_name(wrong) == "unknown");
  CHECK_FALSE(is_floating(wrong));
}
