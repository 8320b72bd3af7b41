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
    : module_(std::move(module)),
      reader_(*module_),
      variables_(reader_),
      operands_(reader_, scopes_) {}

std::unique_ptr<Module> Parser::run() {
  parse_header();
  while (reader_.peek().kind != TokenKind::end) parse_module_item();
  resolve_symbols();
  return std::move(module_);
}

namespace {

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

void Parser::parse_header() {
  if (!reader_.accept_dotted("version")) reader_.fail("the text does not start with .version");
  const Token version = reader_.take();
  const std::size_t dot = std::min(version.text.size(), version.text.find('.'));
  const int major = small_number(version.text.substr(0, dot));
  const int minor = small_number(version.text.substr(std::min(version.text.size(), dot + 1)));
  if (version.kind != TokenKind::number || major < 0 || minor < 0 || minor > 9) {
    reader_.fail_at(version.line,
                    format(".version needs a number like 8.0, not {}", describe(version)));
  }
  module_->version = major * 10 + minor;
  if (!reader_.accept_dotted("target")) reader_.fail("expected .target after .version");
  module_->target = reader_.take_word("a target like sm_80");
  while (reader_.accept(',')) reader_.take_word("a target option");
  if (!module_->target.starts_with("sm_")) {
    reader_.fail(format("the target is {}, not an sm_ architecture", module_->target));
  }
  if (reader_.accept_dotted("address_size")) {
    module_->address_size = static_cast<int>(reader_.take_count("the address size", 64));
  }
  if (module_->address_size != 64) {
    reader_.fail(format("the address size is {}; only 64 is simulated", module_->address_size));
  }
}

void Parser::parse_module_item() {
  if (reader_.accept(';')) return;
  const Token token = reader_.peek();
  if (token.kind != TokenKind::dotted) {
    reader_.fail(format("expected a directive but found {}", describe(token)));
  }
  Linkage linkage;
  for (;; reader_.take()) {
    const Token& word = reader_.peek();
    const bool is_extern = word.is_dotted("extern");
    const bool is_weak = word.is_dotted("weak") || word.is_dotted("common");
    if (!is_extern && !is_weak && !word.is_dotted("visible")) break;
    linkage.is_extern |= is_extern;
    linkage.is_weak |= is_weak;
  }
  const Token item = reader_.take();
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
  reader_.fail_at(item.line, format("{} is not known at module level", describe(item)));
}

void Parser::parse_globals(Space space, const Linkage& linkage) {
  const bool is_small = space == Space::shared || space == Space::local;
  const std::uint64_t limit = is_small ? kMaxBodyVariableBytes : kMaxVariableBytes;
  const Variable first = variables_.declaration(space);
  for (;;) {
    Variable variable = variables_.named(first, limit);
    variable.is_extern = linkage.is_extern;
    variable.is_weak = linkage.is_weak;
    const auto index = static_cast<std::uint32_t>(module_->globals.size());
    const auto [known, is_new] = globals_.emplace(variable.name, index);
    if (is_new) {
      module_->globals.push_back(std::move(variable));
    } else if (Variable& old = module_->globals[known->second];
               old.is_extern && !variable.is_extern) {
      old = std::move(variable);
    } else if (!variable.is_extern) {
      reader_.fail_at(variable.ptx_line, format("{} is declared twice", variable.name));
    }
    if (!reader_.accept(',')) break;
  }
  reader_.expect(';', "after the variable");
}

// Strings without influence on computation or accesses are skipped, as in ptxas.
void Parser::parse_pragma(std::int32_t line) {
  constexpr std::string_view kUsedBytes = "used_bytes_mask ";
  const Token text = reader_.take();
  if (text.kind != TokenKind::string) reader_.fail_at(line, ".pragma needs a string");
  if (text.text.starts_with(kUsedBytes)) {
    const std::optional<Literal> mask = parse_literal(text.text.substr(kUsedBytes.size()));
    if (!mask || mask->is_float() || mask->bits >> 32 != 0) {
      reader_.fail_at(line, "used_bytes_mask takes a number of 32 bits");
    }
    used_bytes_ = static_cast<std::uint32_t>(mask->bits);
  }
  reader_.expect(';', "after .pragma");
}

void Parser::parse_file() {
  reader_.take_count("the file number", kMaxFiles);
  if (reader_.peek().kind != TokenKind::string) reader_.fail("expected the name of the file");
  reader_.take();
  while (reader_.accept(',')) reader_.take_count("a time stamp or size", ~std::uint64_t{0});
}

void Parser::parse_loc() {
  constexpr std::uint64_t kMaxLine = 0x7fffffff;
  const auto place = [&] {
    LineTracker::Place result;
    result.file = static_cast<std::int32_t>(reader_.take_count("the file number", kMaxFiles));
    result.line = static_cast<std::int32_t>(reader_.take_count("the line", kMaxLine));
    result.column = static_cast<std::int32_t>(reader_.take_count("the column", kMaxLine));
    return result;
  };
  const LineTracker::Place at = place();
  std::optional<LineTracker::Place> caller;
  while (reader_.accept(',')) {
    const std::string_view key = reader_.take_word("function_name or inlined_at");
    if (key == "inlined_at") {
      caller = place();
    } else if (key == "function_name") {
      reader_.take_word("a label in .debug_str");
      if (reader_.accept('+')) reader_.take_count("an offset", kMaxLine);
    } else {
      reader_.fail(format("unknown attribute {} of .loc", key));
    }
  }
  caller ? reader_.lines().move_to_inlined(at, *caller) : reader_.lines().move_to(at);
}

// The simulator needs nothing from debug sections.
void Parser::skip_section() {
  const std::int32_t line = reader_.peek().line;
  while (reader_.peek().kind == TokenKind::dotted || reader_.peek().is(',')) reader_.take();
  reader_.expect('{', "after .section");
  while (!reader_.accept('}')) {
    if (reader_.peek().kind == TokenKind::end) reader_.fail_at(line, "the section is not closed");
    reader_.take();
  }
}

void Parser::parse_alias() {
  const std::string_view alias = reader_.take_word("the alias");
  reader_.expect(',', "after the alias");
  aliases_[alias] = reader_.take_word("the function behind the alias");
  reader_.expect(';', "after .alias");
}

std::optional<std::uint32_t> Parser::find_function(std::string_view name) const {
  if (const auto alias = aliases_.find(name); alias != aliases_.end()) name = alias->second;
  const auto found = functions_.find(name);
  if (found == functions_.end()) return std::nullopt;
  return found->second;
}

// Functions and variables may be used above their declaration, so names are settled at the end.
void Parser::resolve_symbols() {
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
      reader_.fail_at(pending.line, format("{} is not declared", operand->symbol));
    }
    const bool short_address = operand->kind == OperandKind::symbol && bits(operand->type) == 32;
    if (short_address && (operand->symbol_kind == SymbolKind::function ||
                          module_->globals[operand->symbol_index].space == Space::global)) {
      reader_.fail_at(pending.line, format("the address of {} has 64 bits", operand->symbol));
    }
  }
  for (Variable& variable : module_->globals) {
    for (InitialValue& value : variable.init) {
      if (value.symbol.empty() || globals_.contains(value.symbol)) continue;
      const auto function = find_function(value.symbol);
      if (!function) {
        reader_.fail_at(variable.ptx_line, format("the initial value {} of {} is not declared",
                                                  value.symbol, variable.name));
      }
      value.symbol = module_->functions[*function].name;
    }
  }
}

}  // namespace kernwright::sim::ptx
