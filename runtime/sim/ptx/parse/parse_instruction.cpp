// Instructions: guard, opcode, operand list and the shapes of call.
#include "sim/ptx/isa_table.h"
#include "sim/ptx/manual.h"
#include "sim/ptx/parse/parser_state.h"
#include "sim/ptx/parse/video_selector.h"

#include <utility>

namespace kernwright::sim::ptx {

void Parser::parse_instruction() {
  Instruction instruction;
  instruction.ptx_line = reader_.peek().line;
  instruction.source = reader_.lines().current();
  instruction.used_bytes = std::exchange(used_bytes_, 0);
  if (reader_.peek().is('@')) parse_guard(instruction);
  parse_opcode(instruction);
  const OpcodeMatch& match = match_opcode(instruction);
  if (instruction.stem == "call") {
    parse_call(instruction);
  } else {
    parse_operands(instruction);
  }
  reader_.expect(';', format("after {}", instruction.opcode));
  choose_row(instruction, match);
  function().body.push_back(std::move(instruction));
}

void Parser::parse_guard(Instruction& instruction) {
  reader_.take();
  instruction.guarded = true;
  instruction.guard_negated = reader_.accept('!');
  instruction.guard = operands_.take_register("the guard predicate");
  if (function().registers[instruction.guard].type != Type::pred) {
    reader_.fail("the guard is not a predicate");
  }
}

// The opcode is one view into the text, or a joined copy where white space stands inside.
void Parser::parse_opcode(Instruction& instruction) {
  const Token stem = reader_.peek();
  if (stem.kind != TokenKind::word) reader_.fail("expected an instruction");
  reader_.take();
  bool spaced = false;
  const char* end = stem.text.data() + stem.text.size();
  std::string joined(stem.text);
  for (int count = 0; reader_.peek().kind == TokenKind::dotted; ++count) {
    if (count == kMaxModifiers) reader_.fail(format("{} has too many modifiers", stem.text));
    const Token word = reader_.take();
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
    reader_.fail_opcode(instruction,
                        format("the instruction {} is not simulated{}{}", instruction.opcode,
                               reason.empty() ? "" : ": ", reason));
  }
  return found->second;
}

// Rows of the same opcode differ in their operands: the first fitting one counts. If none fits, the
// one with the longest match gives the reason.
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
  reader_.fail_at(instruction.ptx_line, format("{}: {}", instruction.opcode, closest.wrong));
}

void Parser::parse_operands(Instruction& instruction) {
  const bool is_branch = instruction.stem == "bra";
  const bool is_indexed = instruction.stem == "brx";
  if (reader_.peek().is(';')) return;
  do {
    const std::size_t index = instruction.operands.size();
    const bool label = (is_branch && index == 0) || (is_indexed && index == 1);
    if (label) {
      instruction.operands.push_back(operands_.label(static_cast<std::uint32_t>(index)));
    } else if (reader_.peek().is('[')) {
      instruction.operands.push_back(operands_.address(instruction));
    } else {
      const bool negated = take_minus(reader_, instruction);
      instruction.operands.push_back(operands_.any());
      take_selector(reader_, instruction, negated);
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
  } while (reader_.accept(','));
}

// call{.uni} (results), callee, (arguments), prototype; every part but the callee may be absent.
void Parser::parse_call(Instruction& instruction) {
  instruction.operands.resize(4);
  instruction.operands[0].kind = OperandKind::list;
  instruction.operands[2].kind = OperandKind::list;
  if (reader_.peek().is('(')) {
    instruction.operands[0] = parse_call_list(true);
    reader_.expect(',', "after the results");
  }
  instruction.operands[1] = operands_.name();
  if (instruction.operands[1].kind == OperandKind::symbol &&
      instruction.operands[1].symbol_kind == SymbolKind::none) {
    pending_symbols_.push_back(
        {current_, static_cast<std::uint32_t>(function().body.size()), 1, instruction.ptx_line});
  }
  if (!reader_.accept(',')) return;
  if (reader_.peek().is('(')) {
    instruction.operands[2] = parse_call_list(false);
    if (!reader_.accept(',')) return;
  }
  instruction.operands[3] = operands_.label(3);
}

Operand Parser::parse_call_list(bool results) {
  Operand list;
  list.kind = OperandKind::list;
  list.is_destination = results;
  reader_.expect('(', "before the list");
  while (!reader_.accept(')')) {
    list.elements.push_back(operands_.any());
    const Operand& element = list.elements.back();
    if (element.kind == OperandKind::symbol && element.symbol_kind == SymbolKind::none) {
      reader_.fail(format("{} is not declared", element.symbol));
    }
    if (!reader_.peek().is(')')) reader_.expect(',', "in the list of a call");
  }
  return list;
}

}  // namespace kernwright::sim::ptx
