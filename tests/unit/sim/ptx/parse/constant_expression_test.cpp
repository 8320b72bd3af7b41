// Constant expressions: strength of operators, signs, and what is no constant.
#include "sim/ptx/parse/constant_expression.h"

#include "unit/sim/ptx/ptx_fixture.h"

namespace kernwright::sim::ptx::testing {
namespace {

struct Expression {
  explicit Expression(std::string text) : reader((module.text = std::move(text), module)) {}
  std::int64_t value() { return static_cast<std::int64_t>(read_constant(reader).bits); }
  std::string error() {
    return error_of([&] { read_constant(reader); });
  }

  Module module;
  TokenReader reader;
};

std::int64_t value_of(const std::string& text) { return Expression(text).value(); }

TEST_CASE("constant expression: stronger operators first, equal ones from the left") {
  CHECK(value_of("1 + 2 * 3") == 7);
  CHECK(value_of("(1 + 2) * 3") == 9);
  CHECK(value_of("20 - 5 - 3") == 12);
  CHECK(value_of("100 / 7 / 2") == 7);
  CHECK(value_of("1 << 2 + 1 | 1") == 9);
  CHECK(value_of("6 & 3 ^ 1") == 3);
  CHECK(value_of("-WARP_SZ + ~0 + !5 + !0") == -32);
}

TEST_CASE("constant expression: signed numbers are shifted and divided as such") {
  CHECK(value_of("-8 >> 1") == -4);
  CHECK(value_of("-8 / 2") == -4);
  CHECK(value_of("~0U >> 60") == 15);
  CHECK(value_of("1 << 64") == 0);
  CHECK(value_of("-8 >> 70") == -1);
}

TEST_CASE("constant expression: ends where no operator follows") {
  Expression text("4 ; 5");
  CHECK(text.value() == 4);
  CHECK(text.reader.accept(';'));
  CHECK(text.value() == 5);
}

TEST_CASE("constant expression: an offset has any sign, or two") {
  const auto offset = [](const char* written) {
    Expression text(written);
    return read_offset(text.reader);
  };
  CHECK(offset("+8") == 8);
  CHECK(offset("-8") == -8);
  CHECK(offset("+-4") == -4);
  CHECK(contains(error_of([&] { offset("+1.5"); }), "an offset is a floating-point number"));
}

TEST_CASE("constant expression: what has no value is refused") {
  CHECK(contains(Expression("1 / 0").error(), "divides by zero"));
  CHECK(contains(Expression("1 < 2").error(), "a comparison in an expression is not simulated"));
  CHECK(contains(Expression("1.5 + 1").error(), "floating-point"));
  CHECK(contains(Expression("~1.5").error(), "a bit operation on a floating-point number"));
  CHECK(contains(Expression("(1").error(), "expected ')' in an expression"));
  CHECK(contains(Expression("name").error(), "expected a value but found 'name'"));
  CHECK(contains(Expression(std::string(2000, '(')).error(), "nested too deeply"));
}

}  // namespace
}  // namespace kernwright::sim::ptx::testing
