// ptx::parse and the module level of the parser.
#include "sim/ptx/parse/parser.h"

#include "sim/ptx/parse/parser_state.h"

#include <algorithm>

namespace kernwright::sim::ptx {

std::unique_ptr<Module> parse(std::string text) {
  if (text.size() > kMaxTextBytes) {
    throw PtxError(
        format("the PTX text has {} bytes, more than the limit of {}", text.size(), kMaxTextBytes),
        0);
  }
  // Compilers hand their text over with the terminating NUL counted in.
  while (!text.empty() && text.back() == '\0') text.pop_back();
  auto module = std::make_unique<Module>();
  module->text = std::move(text);
  collect_files(*module);
  return Parser(std::move(module)).run();
}

Parser::Parser(std::unique_ptr<Module> module)
    : module_(std::move(module)), lexer_(module_->text), lines_(*module_) {}

std::unique_ptr<Module> Parser::run() {
  parse_header();
  while (lexer_.peek().kind != TokenKind::end) parse_module_item();
  resolve_symbols();
  return std::move(module_);
}

void Parser::fail(const std::string& what) const { fail_at(lexer_.peek().line, what); }

void Parser::fail_at(std::int32_t line, const std::string& what) const {
  fail_in(line, in_function_ ? lines_.current() : SourceLine{}, {}, what);
}

void Parser::fail_opcode(const Instruction& instruction, const std::string& what) const {
  fail_in(instruction.ptx_line, instruction.source, std::string(instruction.opcode), what);
}

void Parser::fail_in(std::int32_t line, SourceLine source, std::string opcode,
                     const std::string& what) const {
  const auto index = static_cast<std::size_t>(source.file);
  const std::string file = index < module_->files.size() ? module_->files[index] : std::string();
  const std::string place = source.line > 0 ? format(" ({}:{})", file, source.line) : std::string();
  throw PtxError(format("PTX line {}{}: {}", line, place, what), line, source, std::move(opcode),
                 file);
}

namespace {

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  return format("'{}{}'", token.kind == TokenKind::dotted ? "." : "", token.text.substr(0, 60));
}

/// 0 .. 99, or -1.
int small_number(std::string_view text) {
  if (text.empty() || text.size() > 2) return -1;
  int value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return -1;
    value = value * 10 + (digit - '0');
  }
  return value;
}

}  // namespace

void Parser::expect(char punct, std::string_view after) {
  if (accept(punct)) return;
  fail(format("expected '{}' {} but found {}", punct, after, describe(lexer_.peek())));
}

bool Parser::accept(char punct) {
  if (!lexer_.peek().is(punct)) return false;
  lexer_.take();
  return true;
}

bool Parser::accept_dotted(std::string_view word) {
  if (!lexer_.peek().is_dotted(word)) return false;
  lexer_.take();
  return true;
}

void Parser::skip_to_parenthesis() {
  expect('(', "after .attribute");
  while (!accept(')')) {
    if (lexer_.peek().kind == TokenKind::end) fail("the attribute is not closed");
    lexer_.take();
  }
}

std::string_view Parser::take_word(std::string_view what) {
  if (lexer_.peek().kind != TokenKind::word) {
    fail(format("expected {} but found {}", what, describe(lexer_.peek())));
  }
  return lexer_.take().text;
}

std::uint64_t Parser::take_count(std::string_view what, std::uint64_t limit) {
  if (lexer_.peek().kind != TokenKind::number) {
    fail(format("expected {} but found {}", what, describe(lexer_.peek())));
  }
  const std::optional<Literal> literal = parse_literal(lexer_.peek().text);
  if (!literal || literal->is_float() || literal->bits > limit) {
    fail(format("{} is {}, which is not a number up to {}", what, lexer_.peek().text, limit));
  }
  lexer_.take();
  return literal->bits;
}

void Parser::parse_header() {
  if (!accept_dotted("version")) fail("the text does not start with .version");
  const Token version = lexer_.take();
  const std::size_t dot = std::min(version.text.size(), version.text.find('.'));
  const int major = small_number(version.text.substr(0, dot));
  const int minor = small_number(version.text.substr(std::min(version.text.size(), dot + 1)));
  if (version.kind != TokenKind::number || major < 0 || minor < 0 || minor > 9) {
    fail_at(version.line, format(".version needs a number like 8.0, not {}", describe(version)));
  }
  module_->version = major * 10 + minor;
  if (!accept_dotted("target")) fail("expected .target after .version");
  module_->target = take_word("a target like sm_80");
  while (accept(',')) take_word("a target option");
  if (!module_->target.starts_with("sm_")) {
    fail(format("the target is {}, not an sm_ architecture", module_->target));
  }
  if (accept_dotted("address_size")) {
    module_->address_size = static_cast<int>(take_count("the address size", 64));
  }
  if (module_->address_size != 64) {
    fail(format("the address size is {}; only 64 is simulated", module_->address_size));
  }
}

void Parser::parse_module_item() {
  if (accept(';')) return;
  const Token token = lexer_.peek();
  if (token.kind != TokenKind::dotted) {
    fail(format("expected a directive but found {}", describe(token)));
  }
  Linkage linkage;
  for (;; lexer_.take()) {
    const Token& word = lexer_.peek();
    const bool is_extern = word.is_dotted("extern");
    const bool is_weak = word.is_dotted("weak") || word.is_dotted("common");
    if (!is_extern && !is_weak && !word.is_dotted("visible")) break;
    linkage.is_extern |= is_extern;
    linkage.is_weak |= is_weak;
  }
  const Token item = lexer_.take();
  if (item.is_dotted("entry")) return parse_function(true, linkage);
  if (item.is_dotted("func")) return parse_function(false, linkage);
  if (item.is_dotted("global")) return parse_globals(Space::global, linkage);
  if (item.is_dotted("const")) return parse_globals(Space::constant, linkage);
  if (item.is_dotted("shared")) return parse_globals(Space::shared, linkage);
  if (item.is_dotted("local")) return parse_globals(Space::local, linkage);
  if (item.is_dotted("file")) return parse_file();
  if (item.is_dotted("loc")) return parse_loc();
  if (item.is_dotted("section")) return skip_section();
  if (item.is_dotted("alias")) return parse_alias();
  if (item.is_dotted("pragma")) return parse_pragma(item.line);
  fail_at(item.line, format("{} is not known at module level", describe(item)));
}

// Strings that say nothing about what a program computes or touches are skipped, as ptxas does.
void Parser::parse_pragma(std::int32_t line) {
  constexpr std::string_view kUsedBytes = "used_bytes_mask ";
  const Token text = lexer_.take();
  if (text.kind != TokenKind::string) fail_at(line, ".pragma needs a string");
  if (text.text.starts_with(kUsedBytes)) {
    const std::optional<Literal> mask = parse_literal(text.text.substr(kUsedBytes.size()));
    if (!mask || mask->is_float() || mask->bits >> 32 != 0) {
      fail_at(line, "used_bytes_mask takes a number of 32 bits");
    }
    used_bytes_ = static_cast<std::uint32_t>(mask->bits);
  }
  expect(';', "after .pragma");
}

void Parser::parse_file() {
  take_count("the file number", kMaxFiles);
  if (lexer_.peek().kind != TokenKind::string) fail("expected the name of the file");
  lexer_.take();
  while (accept(',')) take_count("a time stamp or size", ~std::uint64_t{0});
}

void Parser::parse_loc() {
  constexpr std::uint64_t kMaxLine = 0x7fffffff;
  const auto place = [&] {
    LineTracker::Place result;
    result.file = static_cast<std::int32_t>(take_count("the file number", kMaxFiles));
    result.line = static_cast<std::int32_t>(take_count("the line", kMaxLine));
    result.column = static_cast<std::int32_t>(take_count("the column", kMaxLine));
    return result;
  };
  const LineTracker::Place at = place();
  std::optional<LineTracker::Place> caller;
  while (accept(',')) {
    const std::string_view key = take_word("function_name or inlined_at");
    if (key == "inlined_at") {
      caller = place();
    } else if (key == "function_name") {
      take_word("a label in .debug_str");
      if (accept('+')) take_count("an offset", kMaxLine);
    } else {
      fail(format("unknown attribute {} of .loc", key));
    }
  }
  caller ? lines_.move_to_inlined(at, *caller) : lines_.move_to(at);
}

// Debug sections say nothing that the simulator needs.
void Parser::skip_section() {
  const std::int32_t line = lexer_.peek().line;
  while (lexer_.peek().kind == TokenKind::dotted || lexer_.peek().is(',')) lexer_.take();
  expect('{', "after .section");
  while (!accept('}')) {
    if (lexer_.peek().kind == TokenKind::end) fail_at(line, "the section is not closed");
    lexer_.take();
  }
}

void Parser::parse_alias() {
  const std::string_view alias = take_word("the alias");
  expect(',', "after the alias");
  aliases_[alias] = take_word("the function behind the alias");
  expect(';', "after .alias");
}

std::optional<std::uint32_t> Parser::find_function(std::string_view name) const {
  if (const auto alias = aliases_.find(name); alias != aliases_.end()) name = alias->second;
  const auto found = functions_.find(name);
  if (found == functions_.end()) return std::nullopt;
  return found->second;
}

// Functions and variables may be used above their declaration, so names are settled at the end.
void Parser::resolve_symbols() {
  in_function_ = false;
  for (const PendingSymbol& pending : pending_symbols_) {
    Instruction& instruction = module_->functions[pending.function].body[pending.instruction];
    Operand* operand = &instruction.operands[pending.operand];
    if (const auto function = find_function(operand->symbol)) {
      operand->symbol_kind = SymbolKind::function;
      operand->symbol_index = *function;
    } else if (const auto global = globals_.find(operand->symbol); global != globals_.end()) {
      operand->symbol_kind = SymbolKind::global;
      operand->symbol_index = global->second;
    } else {
      fail_at(pending.line, format("{} is not declared", operand->symbol));
    }
    const bool short_address = operand->kind == OperandKind::symbol && bits(operand->type) == 32;
    if (short_address && (operand->symbol_kind == SymbolKind::function ||
                          module_->globals[operand->symbol_index].space == Space::global)) {
      fail_at(pending.line, format("the address of {} has 64 bits", operand->symbol));
    }
  }
  for (Variable& variable : module_->globals) {
    for (InitialValue& value : variable.init) {
      if (value.symbol.empty() || globals_.contains(value.symbol)) continue;
      const auto function = find_function(value.symbol);
      if (!function) {
        fail_at(variable.ptx_line,
                format("the initial value {} of {} is not declared", value.symbol, variable.name));
      }
      value.symbol = module_->functions[*function].name;
    }
  }
}

}  // namespace kernwright::sim::ptx
