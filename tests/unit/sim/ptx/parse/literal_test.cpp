// Number literals and their bits in a context.
#include "sim/ptx/parse/literal.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright::sim::ptx;

namespace {

std::uint64_t integer(std::string_view text) {
  const auto literal = parse_literal(text);
  REQUIRE(literal.has_value());
  CHECK_FALSE(literal->is_float());
  return literal->bits;
}

}  // namespace

TEST_CASE("literal: integers in four bases") {
  CHECK(integer("0") == 0);
  CHECK(integer("123") == 123);
  CHECK(integer("017") == 15);
  CHECK(integer("0x1F") == 31);
  CHECK(integer("0Xffffffffffffffff") == ~std::uint64_t{0});
  CHECK(integer("0b1101") == 13);
  CHECK(integer("7U") == 7);
  CHECK(parse_literal("7U")->type == Type::u64);
  CHECK(parse_literal("7")->type == Type::s64);
  CHECK(parse_literal("18446744073709551615")->type == Type::u64);
}

TEST_CASE("literal: floating point") {
  CHECK(parse_literal("0f3F800000")->bits == 0x3f800000);
  CHECK(parse_literal("0f3F800000")->type == Type::f32);
  CHECK(parse_literal("0d3FF0000000000000")->bits == 0x3ff0000000000000);
  CHECK(parse_literal("1.5")->bits == 0x3ff8000000000000);
  CHECK(parse_literal("1e2")->bits == 0x4059000000000000);
}

TEST_CASE("literal: what is no number") {
  for (const std::string_view text :
       {"", "0x", "0b", "0b2", "08", "1a", "0f3F80000", "0f3F8000000", "0dABC", "0fZZZZZZZZ",
        "18446744073709551616", "1e999", "1.2.3", "U", "0xU"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(parse_literal(text).has_value());
  }
}

TEST_CASE("literal: bits in a context") {
  const Literal one_f32{Type::f32, 0x3f800000}, half_f64{Type::f64, 0x3fe0000000000000};
  CHECK(literal_bits(one_f32, Type::f32) == 0x3f800000);
  CHECK(literal_bits(one_f32, Type::b32) == 0x3f800000);
  CHECK(literal_bits(one_f32, Type::f64) == 0x3ff0000000000000);
  CHECK(literal_bits(half_f64, Type::f32) == 0x3f000000);
  CHECK(literal_bits(half_f64, Type::b64) == 0x3fe0000000000000);
  CHECK_FALSE(literal_bits(half_f64, Type::b32).has_value());
  CHECK_FALSE(literal_bits(one_f32, Type::s32).has_value());
  CHECK_FALSE(literal_bits({Type::s64, 1}, Type::f32).has_value());
  CHECK(literal_bits(negate({Type::s64, 4}), Type::s32) == 0xfffffffffffffffc);
  CHECK(negate(one_f32).bits == 0xbf800000);
  CHECK(negate(half_f64).bits == 0xbfe0000000000000);
}
