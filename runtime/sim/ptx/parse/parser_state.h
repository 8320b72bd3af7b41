// The recursive-descent parser behind ptx::parse; its methods live in parse_*.cpp.
#pragma once

#include "sim/ptx/isa.h"
#include "sim/ptx/parse/limits.h"
#include "sim/ptx/parse/literal.h"
#include "sim/ptx/parse/operand_parser.h"
#include "sim/ptx/parse/parser.h"
#include "sim/ptx/parse/scope.h"
#include "sim/ptx/parse/token_reader.h"
#include "sim/ptx/parse/variable_parser.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kernwright::sim::ptx {

/// Parses one module; used once. Every method throws PtxError on malformed text.
class Parser {
 public:
  explicit Parser(std::unique_ptr<Module> module);
  std::unique_ptr<Module> run();

 private:
  // Flags in front of a declaration.
  struct Linkage {
    bool is_extern = false, is_weak = false;
  };
  struct PendingSymbol {
    std::uint32_t function = 0, instruction = 0, operand = 0;
    std::int32_t line = 0;
  };
  struct OpcodeMatch {
    std::vector<const IsaRow*> rows;
    std::vector<Modifiers> modifiers;  ///< one for each row
  };

  // parser.cpp: the module level
  void parse_header();
  void parse_module_item();
  void parse_globals(Space space, const Linkage& linkage);
  void parse_pragma(std::int32_t line);
  void parse_file();
  void parse_loc();
  void skip_section();
  void parse_alias();
  void resolve_symbols();
  std::optional<std::uint32_t> find_function(std::string_view name) const;

  // parse_function.cpp
  void parse_function(bool is_entry, const Linkage& linkage);
  void parse_function_directives(Function& function);
  std::uint32_t add_function(Function&& function);
  void parse_body(std::uint32_t index);
  void parse_statement();
  void parse_body_directive();
  void parse_body_variables(Space space);
  void parse_label();
  void parse_branch_targets(Label& label, std::uint32_t index);
  void parse_call_targets(Label& label);
  void parse_prototype(Label& label);
  void close_scope();

  // parse_instruction.cpp
  void parse_instruction();
  void parse_guard(Instruction& instruction);
  void parse_opcode(Instruction& instruction);
  const OpcodeMatch& match_opcode(const Instruction& instruction);
  void choose_row(Instruction& instruction, const OpcodeMatch& match);
  void parse_call(Instruction& instruction);
  void parse_operands(Instruction& instruction);
  Operand parse_call_list(bool results);

  // parse_register.cpp
  void parse_registers();
  void parse_register_name(Type type, std::uint8_t parts);

  Function& function() { return module_->functions[current_]; }
  const Function& function() const { return module_->functions[current_]; }

  std::unique_ptr<Module> module_;
  TokenReader reader_;
  ScopeStack scopes_;
  VariableParser variables_;
  OperandParser operands_;
  std::uint32_t current_ = 0;     ///< function being parsed
  std::uint32_t used_bytes_ = 0;  ///< of the next instruction, from .pragma "used_bytes_mask"
  std::uint64_t register_total_ = 0;
  std::unordered_map<std::string_view, std::uint32_t> functions_, globals_;
  std::unordered_map<std::string_view, std::string_view> aliases_;
  std::unordered_map<std::string_view, OpcodeMatch>
      matches_;  ///< one entry for each distinct opcode
  std::vector<PendingSymbol> pending_symbols_;
};

/// Checks operand count, kinds and types of an instruction against its row and fills Operand::type
/// and is_destination.
struct Verdict {
  std::string wrong;        ///< empty: nothing is
  std::size_t reached = 0;  ///< how far the row suited
};
Verdict verify(Instruction& instruction, const Function& function);

}  // namespace kernwright::sim::ptx
