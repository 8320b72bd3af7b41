// From the text of an expression to its tree: Python's grammar, as far as the language goes.
#include "base/format.h"
#include "tune/expression_lexer.h"
#include "tune/expression_tree.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace kernwright {
namespace {

struct BinaryOperator {
  std::string_view symbol;
  Operation operation;
  int strength;
};
constexpr std::array kBinary = {
    BinaryOperator{"|", Operation::bit_or, 1},
    BinaryOperator{"^", Operation::bit_xor, 2},
    BinaryOperator{"&", Operation::bit_and, 3},
    BinaryOperator{"<<", Operation::shift_left, 4},
    BinaryOperator{">>", Operation::shift_right, 4},
    BinaryOperator{"+", Operation::add, 5},
    BinaryOperator{"-", Operation::subtract, 5},
    BinaryOperator{"*", Operation::multiply, 6},
    BinaryOperator{"/", Operation::divide, 6},
    BinaryOperator{"//", Operation::floor_divide, 6},
    BinaryOperator{"%", Operation::modulo, 6},
};

struct ComparisonSymbol {
  std::string_view symbol;
  Comparison comparison;
};
constexpr std::array kComparisons = {
    ComparisonSymbol{"<", Comparison::less},    ComparisonSymbol{"<=", Comparison::less_equal},
    ComparisonSymbol{">", Comparison::greater}, ComparisonSymbol{">=", Comparison::greater_equal},
    ComparisonSymbol{"==", Comparison::equal},  ComparisonSymbol{"!=", Comparison::unequal},
};

struct FunctionName {
  std::string_view name;
  Operation operation;
};
constexpr std::array kFunctions = {
    FunctionName{"min", Operation::minimum},   FunctionName{"max", Operation::maximum},
    FunctionName{"abs", Operation::absolute},  FunctionName{"int", Operation::to_integer},
    FunctionName{"float", Operation::to_real}, FunctionName{"bool", Operation::to_boolean},
};
constexpr std::array<std::string_view, 8> kWords = {"and", "or",   "not",  "in",
                                                    "if",  "else", "True", "False"};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  ExpressionTree parse() {
    tree_.root = scalar(conditional());
    if (lexer_.token().kind != ExpressionToken::Kind::end) {
      fail(lexer_.token().position,
           lexer_.token().spelling == "if" ? "'if' wants an 'else'" : "an operator is missing");
    }
    return std::move(tree_);
  }

 private:
  using Kind = ExpressionToken::Kind;
  using Node = std::uint32_t;

  [[noreturn]] void fail(std::size_t position, const std::string& what) const {
    fail_in_expression(lexer_.text(), position, what);
  }
  bool at(std::string_view spelling) const {
    const ExpressionToken& token = lexer_.token();
    return (token.kind == Kind::symbol || token.kind == Kind::word) && token.spelling == spelling;
  }
  bool take(std::string_view spelling) {
    if (!at(spelling)) return false;
    lexer_.advance();
    return true;
  }
  void expect(std::string_view spelling) {
    if (!take(spelling)) fail(lexer_.token().position, format("'{}' is missing", spelling));
  }

  Node make(ExpressionNode node, std::span<const Node> children) {
    std::uint32_t depth = 0;
    for (const Node child : children) depth = std::max(depth, depths_[child]);
    return push(node, depth + 1);
  }
  Node push(ExpressionNode node, std::uint32_t depth) {
    if (depth > kMaxExpressionDepth)
      fail(node.position, format("more than {} levels of operations", kMaxExpressionDepth));
    tree_.nodes.push_back(node);
    depths_.push_back(depth);
    return static_cast<Node>(tree_.nodes.size() - 1);
  }
  Node unary(Operation operation, std::size_t position, Node operand) {
    const std::array children = {operand};
    return make({.operation = operation,
                 .position = static_cast<std::uint32_t>(position),
                 .first = operand},
                children);
  }
  Node binary(Operation operation, std::size_t position, Node left, Node right) {
    const std::array children = {scalar(left), scalar(right)};
    return make({.operation = operation,
                 .position = static_cast<std::uint32_t>(position),
                 .first = left,
                 .second = right},
                children);
  }
  Node add_operands(Operation operation, std::size_t position, std::span<const Node> children) {
    const auto first = static_cast<std::uint32_t>(tree_.operands.size());
    tree_.operands.insert(tree_.operands.end(), children.begin(), children.end());
    return make({.operation = operation,
                 .position = static_cast<std::uint32_t>(position),
                 .first = first,
                 .count = static_cast<std::uint32_t>(children.size())},
                children);
  }
  Node constant(Scalar value, std::size_t position) {
    tree_.constants.push_back(value);
    return push({.operation = Operation::constant,
                 .position = static_cast<std::uint32_t>(position),
                 .first = static_cast<std::uint32_t>(tree_.constants.size() - 1)},
                1);
  }

  bool is_list(Node node) const { return tree_.nodes[node].operation == Operation::list; }
  /// Refuses a list where one value is wanted.
  Node scalar(Node node) const {
    if (is_list(node))
      fail(tree_.nodes[node].position,
           "a tuple or list is allowed only after 'in', or alone in min() and max()");
    return node;
  }

  /// Counts how deep the parser is in itself.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser.nesting_ > kMaxExpressionDepth)
        parser.fail(parser.lexer_.token().position,
                    format("more than {} levels of operations", kMaxExpressionDepth));
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  Node conditional() {
    const Nesting nesting(*this);
    const Node value = disjunction();
    const std::size_t position = lexer_.token().position;
    if (!take("if")) return value;
    const Node condition = scalar(disjunction());
    expect("else");
    const std::array children = {condition, scalar(value), scalar(conditional())};
    return add_operands(Operation::conditional, position, children);
  }

  Node disjunction() {
    Node left = conjunction();
    for (std::size_t position = lexer_.token().position; take("or");
         position = lexer_.token().position)
      left = binary(Operation::logical_or, position, left, conjunction());
    return left;
  }

  Node conjunction() {
    Node left = inversion();
    for (std::size_t position = lexer_.token().position; take("and");
         position = lexer_.token().position)
      left = binary(Operation::logical_and, position, left, inversion());
    return left;
  }

  Node inversion() {
    const Nesting nesting(*this);
    const std::size_t position = lexer_.token().position;
    if (take("not")) return unary(Operation::logical_not, position, scalar(inversion()));
    return comparison();
  }

  std::optional<Comparison> take_comparison() {
    for (const ComparisonSymbol& known : kComparisons)
      if (take(known.symbol)) return known.comparison;
    if (take("in")) return Comparison::contained;
    if (!at("not")) return std::nullopt;
    lexer_.advance();
    expect("in");
    return Comparison::not_contained;
  }

  Node comparison() {
    const Node left = bitwise(1);
    const std::size_t position = lexer_.token().position;
    std::vector<Node> children = {left};
    std::vector<Comparison> comparisons;
    while (const std::optional<Comparison> found = take_comparison()) {
      scalar(children.back());
      children.push_back(bitwise(1));
      comparisons.push_back(*found);
      const bool wants_list =
          *found == Comparison::contained || *found == Comparison::not_contained;
      if (!wants_list) scalar(children.back());
    }
    if (comparisons.empty()) return left;
    const Node node = add_operands(Operation::compare, position, children);
    tree_.nodes[node].second = static_cast<std::uint32_t>(tree_.comparisons.size());
    tree_.comparisons.insert(tree_.comparisons.end(), comparisons.begin(), comparisons.end());
    return node;
  }

  const BinaryOperator* operator_here() const {
    for (const BinaryOperator& known : kBinary)
      if (at(known.symbol)) return &known;
    return nullptr;
  }

  /// Operators of at least this strength, from left to right.
  Node bitwise(int strength) {
    Node left = factor();
    for (const BinaryOperator* found = operator_here();
         found != nullptr && found->strength >= strength; found = operator_here()) {
      const std::size_t position = lexer_.token().position;
      lexer_.advance();
      left = binary(found->operation, position, left, bitwise(found->strength + 1));
    }
    return left;
  }

  Node factor() {
    const Nesting nesting(*this);
    const std::size_t position = lexer_.token().position;
    if (take("-")) return unary(Operation::negate, position, scalar(factor()));
    if (take("+")) return unary(Operation::plus, position, scalar(factor()));
    if (take("~")) return unary(Operation::invert, position, scalar(factor()));
    const Node base = atom();
    const std::size_t power_position = lexer_.token().position;
    if (!take("**")) return base;
    return binary(Operation::power, power_position, base, factor());
  }

  Node atom() {
    const ExpressionToken token = lexer_.token();
    if (token.kind == Kind::number || token.kind == Kind::text) {
      lexer_.advance();
      if (lexer_.token().kind == Kind::text && token.kind == Kind::text)
        fail(lexer_.token().position, "an operator is missing");
      return constant(literal(token.value), token.position);
    }
    if (take("(")) return parenthesis(token.position, ")");
    if (take("[")) return list(token.position, "]", {});
    if (take("{")) return list(token.position, "}", {});
    if (token.kind == Kind::word) return word(token);
    if (token.kind == Kind::end) fail(token.position, "a value is missing at the end");
    fail(token.position, format("a value is missing in front of '{}'", token.spelling));
  }

  Scalar literal(const Value& value) {
    if (!std::holds_alternative<std::string>(value)) return Scalar::from(value);
    return Scalar::from(tree_.strings.emplace_back(std::get<std::string>(value)));
  }

  Node word(const ExpressionToken& token) {
    lexer_.advance();
    if (token.spelling == "True" || token.spelling == "False")
      return constant(Scalar::from(token.spelling == "True"), token.position);
    for (const FunctionName& function : kFunctions)
      if (function.name == token.spelling) return call(function, token.position);
    if (is_expression_word(token.spelling))
      fail(token.position, format("a value is missing in front of '{}'", token.spelling));
    if (at("(")) {
      std::string known;
      for (const FunctionName& function : kFunctions)
        known += (known.empty() ? "" : ", ") + std::string(function.name);
      fail(token.position, format("there is no function {}; there is: {}", token.spelling, known));
    }
    const auto found = std::find(tree_.names.begin(), tree_.names.end(), token.spelling);
    const auto index = static_cast<std::uint32_t>(found - tree_.names.begin());
    if (found == tree_.names.end()) tree_.names.emplace_back(token.spelling);
    return push({.operation = Operation::name,
                 .position = static_cast<std::uint32_t>(token.position),
                 .first = index},
                1);
  }

  Node call(const FunctionName& function, std::size_t position) {
    expect("(");
    std::vector<Node> arguments;
    while (!at(")")) {
      arguments.push_back(conditional());
      if (!take(",")) break;
    }
    expect(")");
    const bool extreme =
        function.operation == Operation::minimum || function.operation == Operation::maximum;
    if (!extreme) {
      if (arguments.size() != 1) fail(position, format("{}() takes one value", function.name));
      return unary(function.operation, position, scalar(arguments[0]));
    }
    if (arguments.size() == 1 && is_list(arguments[0])) {
      const ExpressionNode items = tree_.nodes[arguments[0]];
      arguments.assign(tree_.operands.begin() + items.first,
                       tree_.operands.begin() + items.first + items.count);
    } else if (arguments.size() == 1) {
      fail(position, format("{}() takes two values or more, or a list", function.name));
    }
    if (arguments.empty()) fail(position, format("{}() wants values", function.name));
    for (const Node argument : arguments) scalar(argument);
    return add_operands(function.operation, position, arguments);
  }

  /// Behind "(": a value in parentheses, or a tuple.
  Node parenthesis(std::size_t position, std::string_view end) {
    if (take(end)) return add_operands(Operation::list, position, {});
    const Node first = conditional();
    if (take(end)) return first;
    expect(",");
    return list(position, end, {first});
  }

  Node list(std::size_t position, std::string_view end, std::vector<Node> items) {
    while (!at(end)) {
      items.push_back(conditional());
      if (!take(",")) break;
    }
    expect(end);
    for (const Node item : items) scalar(item);
    return add_operands(Operation::list, position, items);
  }

  ExpressionLexer lexer_;
  ExpressionTree tree_;
  std::vector<std::uint32_t> depths_;  ///< of the nodes
  std::uint32_t nesting_ = 0;
};

}  // namespace

bool is_expression_word(std::string_view word) {
  const auto is_function = [&](const FunctionName& function) { return function.name == word; };
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() ||
         std::any_of(kFunctions.begin(), kFunctions.end(), is_function);
}

ExpressionTree parse_expression(std::string_view text) {
  if (text.size() > kMaxExpressionLength)
    fail_in_expression(text, kMaxExpressionLength,
                       format("longer than {} characters", kMaxExpressionLength));
  return Parser(text).parse();
}

}  // namespace kernwright
