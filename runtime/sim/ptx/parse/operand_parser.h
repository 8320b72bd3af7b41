// Operands: registers, pairs, vectors, addresses, labels and constants.
#pragma once

#include "sim/ptx/parse/scope.h"
#include "sim/ptx/parse/token_reader.h"

#include <cstdint>
#include <string_view>

namespace kernwright::sim::ptx {

/// Names are those of `scopes` and of the function's parameters; others stay symbols. Every method
/// throws PtxError on malformed text.
class OperandParser {
 public:
  OperandParser(TokenReader& reader, ScopeStack& scopes) : reader_(reader), scopes_(scopes) {}

  /// The function of the following instructions.
  void enter(const Function& function) { function_ = &function; }

  /// Any operand but an address or a label.
  Operand any();
  /// A register, pair, special register, symbol (with offset) or the sink.
  Operand name();
  /// The label of operand `index` of the next instruction; it may stand further down.
  Operand label(std::uint32_t index);
  Operand address(Instruction& instruction);
  std::uint32_t take_register(std::string_view what);

 private:
  Operand constant();
  Operand vector();
  Operand pair(std::uint32_t first);
  Operand parse_part(std::string_view name, LocalName vector);
  Operand special(std::string_view name);
  bool resolve_local(std::string_view name, Operand& operand) const;

  TokenReader& reader_;
  ScopeStack& scopes_;
  const Function* function_ = nullptr;
};

}  // namespace kernwright::sim::ptx
