// What a random program computes: its tree, block by block, on the host's arithmetic.
#pragma once

#include "sim/programs/random_program.h"

#include <vector>

namespace kernwright::sim {

/// The words of `out` (RandomProgram::words()). An operation whose number is `broken` computes the
/// complement: for tests of who finds such a fault.
std::vector<Word32> interpret(const RandomProgram& program, int broken = -1);

}  // namespace kernwright::sim
