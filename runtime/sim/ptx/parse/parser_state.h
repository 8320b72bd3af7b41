// The recursive-descent parser behind ptx::parse; its methods live in parse_*.cpp.
#pragma once

#include "base/format.h"
#include "sim/ptx/debug_lines.h"
#include "sim/ptx/isa.h"
#include "sim/ptx/parse/lexer.h"
#include "sim/ptx/parse/limits.h"
#include "sim/ptx/parse/literal.h"
#include "sim/ptx/parse/parser.h"
#include "sim/ptx/parse/scope.h"

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

  // parser.cpp: tokens, errors and the module level
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_at(std::int32_t line, const std::string& what) const;
  [[noreturn]] void fail_in(std::int32_t line, SourceLine source, std::string opcode,
                            const std::string& what) const;
  [[noreturn]] void fail_opcode(const Instruction& instruction, const std::string& what) const;
  void expect(char punct, std::string_view after);
  bool accept(char punct);
  bool accept_dotted(std::string_view word);
  void skip_to_parenthesis();
  std::string_view take_word(std::string_view what);
  std::uint64_t take_count(std::string_view what, std::uint64_t limit);
  void parse_header();
  void parse_module_item();
  void parse_pragma(std::int32_t line);
  void parse_file();
  void parse_loc();
  void skip_section();
  void parse_alias();
  void resolve_symbols();
  std::optional<std::uint32_t> find_function(std::string_view name) const;

  // parse_variable.cpp
  void parse_globals(Space space, const Linkage& linkage);
  Variable parse_declaration(Space space);
  void parse_parameter_attributes(Variable& variable);
  void parse_type(Variable& variable);
  void parse_extent(Variable& variable);
  void parse_initialiser(Variable& variable);
  void parse_initial_list(Variable& variable, std::size_t dimension);
  InitialValue parse_initial_value(Type type);
  void parse_initial_symbol(InitialValue& value);
  void check_size(const Variable& variable, std::uint64_t limit) const;

  // parse_function.cpp
  void parse_function(bool is_entry, const Linkage& linkage);
  std::vector<Variable> parse_parameters();
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
  std::uint32_t take_register(std::string_view what);
  Operand parse_part(std::string_view name, LocalName vector);
  Operand parse_special(std::string_view name);

  // parse_operand.cpp
  /// parse_selector.cpp: `-` before, `.h1` behind the last operand of a video instruction.
  bool parse_minus(const Instruction& instruction);
  void parse_selector(Instruction& instruction, bool negated);
  Operand parse_operand();
  Operand parse_name_operand();
  Operand parse_label_operand(std::uint32_t operand_index);
  Operand parse_constant_operand();
  Operand parse_vector();
  Operand parse_address(Instruction& instruction);
  Operand parse_pair(std::uint32_t first);
  bool resolve_local(std::string_view name, Operand& operand) const;
  std::int64_t parse_offset();
  Literal parse_constant(int depth = 0, int precedence = 0);
  Literal parse_unary(int depth);

  Function& function() { return module_->functions[current_]; }
  const Function& function() const { return module_->functions[current_]; }

  std::unique_ptr<Module> module_;
  Lexer lexer_;
  LineTracker lines_;
  ScopeStack scopes_;
  std::uint32_t current_ = 0;  ///< function being parsed
  bool in_function_ = false;
  std::uint32_t used_bytes_ = 0;  ///< of the next instruction, from .pragma "used_bytes_mask"
  std::uint64_t register_total_ = 0;
  std::vector<std::uint64_t> extents_;  ///< dimensions of the variable being parsed
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
