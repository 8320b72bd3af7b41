// Variables: state space, alignment, type, extent and initialiser.
#include "sim/ptx/parse/variable_parser.h"

#include "base/format.h"
#include "sim/ptx/isa.h"
#include "sim/ptx/parse/constant_expression.h"
#include "sim/ptx/parse/limits.h"

#include <bit>
#include <limits>
#include <optional>

namespace kernwright::sim::ptx {
namespace {

bool has_single_bit(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

bool is_storable(Type type) { return type != Type::none && type != Type::pred && bits(type) >= 8; }

/// `value * factor`, or nothing when it does not fit.
std::optional<std::uint64_t> multiply(std::uint64_t value, std::uint64_t factor) {
  if (factor != 0 && value > std::numeric_limits<std::uint64_t>::max() / factor)
    return std::nullopt;
  return value * factor;
}

}  // namespace

Variable VariableParser::declaration(Space space) {
  Variable variable;
  variable.space = space;
  variable.ptx_line = reader_.peek().line;
  type(variable);
  return variable;
}

Variable VariableParser::named(const Variable& like, std::uint64_t limit) {
  Variable variable = like;
  variable.ptx_line = reader_.peek().line;
  variable.name = reader_.take_word("the name of a variable");
  extent(variable);
  if (reader_.accept('=')) initialiser(variable);
  check_size(variable, limit);
  return variable;
}

std::vector<Variable> VariableParser::parameters() {
  std::vector<Variable> parameters;
  reader_.expect('(', "before the parameters");
  while (!reader_.accept(')')) {
    if (reader_.peek().is_dotted("reg")) reader_.fail("parameters in registers are not simulated");
    if (!reader_.accept_dotted("param")) reader_.fail("expected .param");
    Variable parameter = declaration(Space::param);
    parameter.ptx_line = reader_.peek().line;
    parameter.name = reader_.take_word("the name of a parameter");
    extent(parameter);
    check_size(parameter, kMaxBodyVariableBytes);
    parameters.push_back(std::move(parameter));
    if (!reader_.peek().is(')')) reader_.expect(',', "between parameters");
  }
  return parameters;
}

void VariableParser::type(Variable& variable) {
  while (reader_.peek().kind == TokenKind::dotted) {
    const Token word = reader_.take();
    if (word.text == "align") {
      const std::uint64_t alignment = reader_.take_count("the alignment", kMaxAlignment);
      if (!has_single_bit(alignment))
        reader_.fail_at(word.line, "the alignment is not a power of two");
      variable.alignment = static_cast<std::uint32_t>(alignment);
    } else if (word.text == "v2" || word.text == "v4" || word.text == "v8") {
      variable.vector = static_cast<std::uint8_t>(word.text[1] - '0');
    } else if (word.text == "ptr") {
      parameter_attributes(variable);
    } else if (word.text == "attribute") {
      reader_.skip_attribute();
    } else if (const Type type = type_from_name(word.text); is_storable(type)) {
      if (variable.type != Type::none) reader_.fail_at(word.line, "a variable has two types");
      variable.type = type;
    } else {
      reader_.fail_at(word.line, format(".{} is no type of a variable", word.text));
    }
  }
  if (variable.type == Type::none) reader_.fail("a variable has no type");
}

// `.ptr .space .align N` behind the type of a pointer parameter says something about the pointee.
void VariableParser::parameter_attributes(Variable& variable) {
  if (variable.space != Space::param) reader_.fail(".ptr is for parameters");
  for (const std::string_view space : {"global", "const", "shared", "local"}) {
    if (reader_.accept_dotted(space)) break;
  }
  if (reader_.accept_dotted("align")) reader_.take_count("the alignment", kMaxAlignment);
}

void VariableParser::extent(Variable& variable) {
  extents_.clear();
  std::uint64_t count = 1;
  bool open = false;
  while (reader_.accept('[')) {
    variable.is_array = true;
    if (extents_.size() == kMaxExtents) reader_.fail("an array has too many dimensions");
    std::uint64_t extent = 0;
    if (reader_.peek().is(']')) {
      if (!extents_.empty()) reader_.fail("only the first extent may be left out");
      open = true;
    } else {
      const Literal literal = read_constant(reader_);
      if (literal.is_float() || (literal.type == Type::s64 && (literal.bits >> 63) != 0)) {
        reader_.fail("an extent is not a positive number");
      }
      extent = literal.bits;
      const auto product = multiply(count, extent);
      if (!product) reader_.fail("an array is too large");
      count = *product;
    }
    extents_.push_back(extent);
    reader_.expect(']', "after the extent");
  }
  variable.count = open ? 0 : count;
}

void VariableParser::check_size(const Variable& variable, std::uint64_t limit) const {
  const auto size =
      multiply(variable.count, std::uint64_t{variable.vector} *
                                   static_cast<std::uint64_t>(bits(variable.type)) / 8);
  if (!size || *size > limit) {
    reader_.fail_at(variable.ptx_line,
                    format("{} has more than the limit of {} bytes", variable.name, limit));
  }
}

void VariableParser::initialiser(Variable& variable) {
  if (variable.space != Space::global && variable.space != Space::constant) {
    reader_.fail("only .global and .const variables have initial values");
  }
  const bool open = variable.is_array && variable.count == 0 && extents_.front() == 0;
  if (variable.vector > 1) extents_.push_back(variable.vector);
  if (reader_.peek().is('{')) {
    if (extents_.empty()) extents_.push_back(1);
    initial_list(variable, 0);
  } else {
    if (variable.is_array || variable.vector > 1)
      reader_.fail("an array needs a list of initial values");
    variable.init.push_back(initial_value(variable.type));
  }
  std::uint64_t inner = 1;
  for (std::size_t i = 1; i < extents_.size(); ++i) inner *= extents_[i];
  if (open && inner != 0) {
    variable.count = (variable.init.size() + inner - 1) / inner * inner / variable.vector;
  }
  if (variable.init.size() > variable.count * variable.vector) {
    reader_.fail(format("{} has {} elements but {} initial values", variable.name,
                        variable.count * variable.vector, variable.init.size()));
  }
}

// A nested list fills one row; a flat list runs through all of them.
void VariableParser::initial_list(Variable& variable, std::size_t dimension) {
  reader_.expect('{', "before initial values");
  const std::size_t start = variable.init.size();
  std::uint64_t row = 1;
  for (std::size_t i = dimension + 1; i < extents_.size(); ++i) {
    row = multiply(row, extents_[i]).value_or(std::numeric_limits<std::uint64_t>::max());
  }
  while (!reader_.accept('}')) {
    if (reader_.peek().is('{')) {
      if (dimension + 1 >= extents_.size()) reader_.fail("initial values are nested too deeply");
      const std::size_t before = variable.init.size();
      initial_list(variable, dimension + 1);
      const std::uint64_t filled = variable.init.size() - before;
      if (filled > row || row - filled > kMaxPaddedValues ||
          variable.init.size() + (row - filled) > kMaxPaddedValues + start + filled) {
        reader_.fail("a row of initial values does not fit");
      }
      variable.init.resize(before + row);
    } else {
      variable.init.push_back(initial_value(variable.type));
    }
    if (!reader_.peek().is('}')) reader_.expect(',', "between initial values");
  }
}

InitialValue VariableParser::initial_value(Type type) {
  InitialValue value;
  const Token token = reader_.peek();
  const bool is_mask = token.kind == TokenKind::number && reader_.peek_next().is('(');
  if (is_mask) {
    const std::uint64_t mask = reader_.take_count("a byte mask", ~std::uint64_t{0});
    const int shift = std::countr_zero(mask);
    const int width = std::popcount(mask);
    if (mask == 0 || shift + width + std::countl_zero(mask) != 64) {
      reader_.fail_at(token.line, format("{} is no mask of neighbouring bits", token.text));
    }
    value.mask_shift = static_cast<std::uint8_t>(shift);
    value.mask_bits = static_cast<std::uint8_t>(width);
    reader_.expect('(', "after the mask");
    initial_symbol(value);
    reader_.expect(')', "after the symbol");
    return value;
  }
  if (token.kind == TokenKind::word && token.text != "WARP_SZ") {
    initial_symbol(value);
    if (bits(type) != 64) reader_.fail_at(token.line, "an address needs an element of 64 bits");
    return value;
  }
  Literal literal = read_constant(reader_);
  if (bits(type) > 64 && literal.type == Type::s64 && (literal.bits >> 63) != 0)
    reader_.fail_at(token.line,
                    format("a negative initial value of .{} is not supported", name(type)));
  const bool float_target = type == Type::f32 || type == Type::f64;
  if (float_target && !literal.is_float()) {
    const bool negative = literal.type == Type::s64;
    const double number = negative ? static_cast<double>(static_cast<std::int64_t>(literal.bits))
                                   : static_cast<double>(literal.bits);
    literal = {Type::f64, std::bit_cast<std::uint64_t>(number)};
  }
  const auto pattern = literal_bits(literal, type);
  if (!pattern) reader_.fail_at(token.line, format("the initial value is no .{}", name(type)));
  const int width = bits(type);
  value.bits = width >= 64 ? *pattern : *pattern & ((std::uint64_t{1} << width) - 1);
  return value;
}

// symbol, generic(symbol), either followed by +offset.
void VariableParser::initial_symbol(InitialValue& value) {
  std::string_view symbol = reader_.take_word("a symbol");
  if (symbol == "generic" && reader_.accept('(')) {
    value.generic = true;
    symbol = reader_.take_word("a symbol");
    if (reader_.peek().is('+') || reader_.peek().is('-')) value.offset = read_offset(reader_);
    reader_.expect(')', "after the symbol");
  }
  value.symbol = symbol;
  if (reader_.peek().is('+') || reader_.peek().is('-')) {
    value.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(value.offset) +
                                             static_cast<std::uint64_t>(read_offset(reader_)));
  }
}

}  // namespace kernwright::sim::ptx
