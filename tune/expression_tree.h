// The tree of an expression, as the parser makes it and the evaluator walks it.
#pragma once

#include "tune/value.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

enum class Operation : std::uint8_t {
  constant,  ///< constants[first]
  name,      ///< names[first], or the slot that it is bound to
  list,      ///< operands[first, first + count)
  negate,    ///< of node `first`, as the next three
  plus,
  invert,
  logical_not,
  add,  ///< of nodes `first` and `second`, as all up to logical_or
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  logical_and,
  logical_or,
  conditional,  ///< operands[first]: condition, value if true, value if false
  compare,      ///< operands[first, first + count), comparisons[second, second + count - 1)
  minimum,      ///< operands[first, first + count), as maximum
  maximum,
  absolute,  ///< of node `first`, as the rest
  to_integer,
  to_real,
  to_boolean,
};

enum class Comparison : std::uint8_t {
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  unequal,
  contained,
  not_contained,
};

struct ExpressionNode {
  Operation operation = Operation::constant;
  std::uint32_t position = 0;  ///< in the text, from 0
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::uint32_t count = 0;
};

struct ExpressionTree {
  std::vector<ExpressionNode> nodes;
  std::vector<std::uint32_t> operands;
  std::vector<Comparison> comparisons;
  std::vector<Scalar> constants;
  std::vector<std::string> names;   ///< each once, in order of appearance
  std::deque<std::string> strings;  ///< what text constants refer to
  std::uint32_t root = 0;
};

/// Longest text, and most levels of a tree: evaluation recurses once for each.
inline constexpr std::size_t kMaxExpressionLength = 16384;
inline constexpr std::uint32_t kMaxExpressionDepth = 400;

/// Throws InvalidArgument with text and column for anything outside the language.
ExpressionTree parse_expression(std::string_view text);

/// Whether `word` has a meaning of its own in expressions ("and", "min") and so cannot name a
/// parameter.
bool is_expression_word(std::string_view word);

}  // namespace kernwright
