// State spaces of names in instructions: variables, parameters and results.
#pragma once

#include "sim/code/lower/lowering_context.h"

namespace kernwright::sim {

class NamedSpaces {
 public:
  NamedSpaces(LoweringContext& context, const ptx::Function& function)
      : context_(context), function_(function) {}

  /// Refuses an access to a variable through another state space than its own.
  void check(const ptx::Instruction& inst) const;
  /// The same instruction in the state space of its variable or parameter.
  const ptx::Instruction& in_its_space(const ptx::Instruction& inst) const;

 private:
  ptx::Space operand_space(const ptx::Operand& operand) const;
  const ptx::Instruction& rewritten(const ptx::Instruction& inst, ptx::Space space) const;

  LoweringContext& context_;
  const ptx::Function& function_;
};

}  // namespace kernwright::sim
