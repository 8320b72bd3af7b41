// The parts before and after the operands of video instructions.
#pragma once

#include "sim/ptx/parse/token_reader.h"

namespace kernwright::sim::ptx {

/// Whether a `-` stands before the next operand.
bool take_minus(TokenReader& reader, const Instruction& instruction);

/// `.h1` behind the last operand, or nothing; into Instruction::selectors.
void take_selector(TokenReader& reader, Instruction& instruction, bool negated);

}  // namespace kernwright::sim::ptx
