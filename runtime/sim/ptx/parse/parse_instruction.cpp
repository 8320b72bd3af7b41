// Instructions: guard, opcode, operand list and the shapes of call.
#include "sim/ptx/isa_table.h"
#include "sim/ptx/manual.h"
#include "sim/ptx/parse/parser_state.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim::ptx {

void Parser::parse_instruction() {
  Instruction instruction;
  instruction.ptx_line = lexer_.peek().line;
  instruction.source = lines_.current();
  instruction.used_bytes = std::exchange(used_bytes_, 0);
  if (lexer_.peek().is('@')) parse_guard(instruction);
  parse_opcode(instruction);
  const OpcodeMatch& match = match_opcode(instruction);
  if (instruction.stem == "call") {
    parse_call(instruction);
  } else {
    parse_operands(instruction);
  }
  expect(';', format("after {}", instruction.opcode));
  choose_row(instruction, match);
  function().body.push_back(std::move(instruction));
}

void Parser::parse_guard(Instruction& instruction) {
  lexer_.take();
  instruction.guarded = true;
  instruction.guard_negated = accept('!');
  instruction.guard = take_register("the guard predicate");
  if (function().registers[instruction.guard].type != Type::pred) {
    fail("the guard is not a predicate");
  }
}

// The opcode is one view into the text, or a joined copy where white space stands inside.
void Parser::parse_opcode(Instruction& instruction) {
  const Token stem = lexer_.peek();
  if (stem.kind != TokenKind::word) fail("expected an instruction");
  lexer_.take();
  bool spaced = false;
  const char* end = stem.text.data() + stem.text.size();
  std::string joined(stem.text);
  for (int count = 0; lexer_.peek().kind == TokenKind::dotted; ++count) {
    if (count == kMaxModifiers) fail(format("{} has too many modifiers", stem.text));
    const Token word = lexer_.take();
    spaced |= word.spaced;
    joined.append(1, '.').append(word.text);
    end = word.text.data() + word.text.size();
  }
  instruction.stem = stem.text;
  const char* begin = stem.text.data();
  instruction.opcode = spaced ? std::string_view(module_->joined.emplace_back(std::move(joined)))
                              : std::string_view(begin, static_cast<std::size_t>(end - begin));
}

const Parser::OpcodeMatch& Parser::match_opcode(const Instruction& instruction) {
  auto found = matches_.find(instruction.opcode);
  if (found == matches_.end()) {
    OpcodeMatch match;
    match.rows = match_all(instruction.opcode, match.modifiers);
    found = matches_.emplace(instruction.opcode, std::move(match)).first;
  }
  if (found->second.rows.empty()) {
    const std::string_view reason = refusal_reason(instruction.opcode);
    fail_opcode(instruction, format("the instruction {} is not simulated{}{}", instruction.opcode,
                                    reason.empty() ? "" : ": ", reason));
  }
  return found->second;
}

// Rows of the same opcode differ in their operands: the first to suit them counts. If none does,
// the one that suited longest gives the reason.
void Parser::choose_row(Instruction& instruction, const OpcodeMatch& match) {
  const bool unified = instruction.modifiers.unified;
  Verdict closest;
  for (std::size_t i = 0; i < match.rows.size(); ++i) {
    instruction.row = match.rows[i];
    instruction.modifiers = match.modifiers[i];
    instruction.modifiers.unified = unified;
    Verdict verdict = verify(instruction, function());
    if (verdict.wrong.empty()) return;
    if (i == 0 || verdict.reached >= closest.reached) closest = std::move(verdict);
  }
  fail_at(instruction.ptx_line, format("{}: {}", instruction.opcode, closest.wrong));
}

void Parser::parse_operands(Instruction& instruction) {
  const bool is_branch = instruction.stem == "bra";
  const bool is_indexed = instruction.stem == "brx";
  if (lexer_.peek().is(';')) return;
  do {
    const std::size_t index = instruction.operands.size();
    const bool label = (is_branch && index == 0) || (is_indexed && index == 1);
    if (label) {
      instruction.operands.push_back(parse_label_operand(static_cast<std::uint32_t>(index)));
    } else if (lexer_.peek().is('[')) {
      instruction.operands.push_back(parse_address(instruction));
    } else {
      const bool negated = parse_minus(instruction);
      instruction.operands.push_back(parse_operand());
      parse_selector(instruction, negated);
    }
    Operand& operand = instruction.operands.back();
    const bool unresolved =
        (operand.kind == OperandKind::symbol ||
         (operand.kind == OperandKind::address && operand.base == OperandKind::symbol)) &&
        operand.symbol_kind == SymbolKind::none;
    if (unresolved) {
      pending_symbols_.push_back({current_, static_cast<std::uint32_t>(function().body.size()),
                                  static_cast<std::uint32_t>(index), instruction.ptx_line});
    }
  } while (accept(','));
}

// call{.uni} (results), callee, (arguments), prototype; every part but the callee may be absent.
void Parser::parse_call(Instruction& instruction) {
  instruction.operands.resize(4);
  instruction.operands[0].kind = OperandKind::list;
  instruction.operands[2].kind = OperandKind::list;
  if (lexer_.peek().is('(')) {
    instruction.operands[0] = parse_call_list(true);
    expect(',', "after the results");
  }
  instruction.operands[1] = parse_name_operand();
  if (instruction.operands[1].kind == OperandKind::symbol &&
      instruction.operands[1].symbol_kind == SymbolKind::none) {
    pending_symbols_.push_back(
        {current_, static_cast<std::uint32_t>(function().body.size()), 1, instruction.ptx_line});
  }
  if (!accept(',')) return;
  if (lexer_.peek().is('(')) {
    instruction.operands[2] = parse_call_list(false);
    if (!accept(',')) return;
  }
  instruction.operands[3] = parse_label_operand(3);
}

Operand Parser::parse_call_list(bool results) {
  Operand list;
  list.kind = OperandKind::list;
  list.is_destination = results;
  expect('(', "before the list");
  while (!accept(')')) {
    list.elements.push_back(parse_operand());
    const Operand& element = list.elements.back();
    if (element.kind == OperandKind::symbol && element.symbol_kind == SymbolKind::none) {
      fail(format("{} is not declared", element.symbol));
    }
    if (!lexer_.peek().is(')')) expect(',', "in the list of a call");
  }
  return list;
}

}  // namespace kernwright::sim::ptx
