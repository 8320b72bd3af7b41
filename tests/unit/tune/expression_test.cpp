// Expressions in C++: binding, evaluation, what fails and where. Python's tests compare with
// eval().
#include "tune/expression.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace kernwright;

namespace {

const std::vector<std::string> kSlotNames = {"a", "b"};

std::string result_of(const std::string& text, const std::vector<Value>& values) {
  std::vector<Scalar> slots;
  for (const Value& value : values) slots.push_back(Scalar::from(value));
  return value_text(Expression(text).bind(kSlotNames).evaluate(slots).to_value());
}

std::string message_of(const std::string& text, const std::vector<Value>& values) {
  try {
    return "no error, but " + result_of(text, values);
  } catch (const InvalidArgument& e) {
    return e.what();
  }
}

const std::int64_t kOne = 1;

}  // namespace

TEST_CASE("expression: values have Python's types and spelling") {
  CHECK(result_of("a // b", {std::int64_t{-7}, std::int64_t{2}}) == "-4");
  CHECK(result_of("a % b", {-7.0, std::int64_t{2}}) == "1.0");
  CHECK(result_of("a / b", {std::int64_t{1}, std::int64_t{8}}) == "0.125");
  CHECK(result_of("a == b", {true, 1.0}) == "True");
  CHECK(result_of("a if b else 'none'", {std::string("it's"), kOne}) == "\"it's\"");
  CHECK(result_of("-(-a // b)", {std::int64_t{1000}, std::int64_t{256}}) == "4");
}

TEST_CASE("expression: a failure names the text and the column") {
  const std::string message = message_of("a + a % b", {kOne, std::int64_t{0}});
  CHECK(message == "division by zero in \"a + a % b\" (column 7)");
  CHECK(message_of("a + 1", {std::string("x"), kOne}).find("strings") != std::string::npos);
  CHECK(message_of("a * 4", {std::int64_t{1} << 62, kOne}).find("64 bits") != std::string::npos);
  const Expression expression = Expression("a % b").bind(kSlotNames);
  const std::vector<Scalar> slots = {Scalar::from(kOne), Scalar::from(std::int64_t{0})};
  const Evaluation evaluation = expression.try_evaluate(slots);
  CHECK(std::string(evaluation.failure) == "division by zero");
  CHECK(evaluation.position == 2);
}

TEST_CASE("expression: what comes after the deciding operand is not evaluated") {
  CHECK(result_of("b and a // b", {kOne, std::int64_t{0}}) == "0");
  CHECK(result_of("a or a // b", {kOne, std::int64_t{0}}) == "1");
  CHECK(result_of("a > 1 > a // b", {kOne, std::int64_t{0}}) == "False");
  CHECK(result_of("a if a else a // b", {kOne, std::int64_t{0}}) == "1");
}

TEST_CASE("expression: names are slots, then values of the problem") {
  const Expression expression("a * n + m");
  CHECK(expression.names() == std::vector<std::string>{"a", "n", "m"});
  const ProblemValues problem = {{"n", std::int64_t{10}}, {"m", 0.5}, {"a", std::int64_t{99}}};
  const std::vector<Scalar> slots = {Scalar::from(std::int64_t{3}), Scalar::from(kOne)};
  CHECK(value_text(expression.bind(kSlotNames, problem).evaluate(slots).to_value()) == "30.5");
  CHECK_THROWS_AS(expression.bind(kSlotNames), NameNotFound);
}

TEST_CASE("expression: a copy outlives the original, with its strings") {
  std::optional<Expression> original(std::in_place, "a == 'a text of more than a few letters'");
  const Expression bound = original->bind(kSlotNames);
  const Expression copy = bound;
  original.reset();
  const std::string text = "a text of more than a few letters";
  const std::vector<Scalar> slots = {Scalar::from(text), Scalar::from(kOne)};
  CHECK(is_true(copy.evaluate(slots)));
}

TEST_CASE("expression: words of the language") {
  for (const char* word : {"and", "in", "if", "True", "min", "float"})
    CHECK(is_expression_word(word));
  for (const char* word : {"And", "n", "minimum", ""}) CHECK_FALSE(is_expression_word(word));
}
