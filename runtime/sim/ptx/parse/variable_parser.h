// Declarations of variables and parameters: alignment, type, extent and initial values.
#pragma once

#include "sim/ptx/parse/token_reader.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim::ptx {

/// Every method throws PtxError on malformed text.
class VariableParser {
 public:
  explicit VariableParser(TokenReader& reader) : reader_(reader) {}

  /// Everything behind the state space and in front of the names.
  Variable declaration(Space space);
  /// The name, the extent and the initial values of one declared as `like`. At most `limit` bytes.
  Variable named(const Variable& like, std::uint64_t limit);
  /// Parameters in parentheses.
  std::vector<Variable> parameters();

 private:
  void type(Variable& variable);
  void parameter_attributes(Variable& variable);
  void extent(Variable& variable);
  void initialiser(Variable& variable);
  void initial_list(Variable& variable, std::size_t dimension);
  InitialValue initial_value(Type type);
  void initial_symbol(InitialValue& value);
  void check_size(const Variable& variable, std::uint64_t limit) const;

  TokenReader& reader_;
  std::vector<std::uint64_t> extents_;  ///< dimensions of the variable being parsed
};

}  // namespace kernwright::sim::ptx
