// Cuts a random program down to what still shows something.
#pragma once

#include "sim/programs/random_program.h"

#include <functional>

namespace kernwright::sim {

/// The smallest program that the search finds for which `shows` is still true, as it must be for
/// `program`: nodes are left out, branches and loops replaced by what is in them.
RandomProgram shrink(const RandomProgram& program,
                     const std::function<bool(const RandomProgram&)>& shows);

}  // namespace kernwright::sim
