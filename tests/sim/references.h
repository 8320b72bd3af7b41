// What the kernels of the corpus must compute, written for the host alone.
#pragma once

#include "sim/kernel_case.h"

#include <string>

namespace kernwright::sim {

/// Turns the inputs into the expected arrays. Throws std::runtime_error when the case names a
/// reference that does not exist.
Buffers expected_results(const KernelCase& kernel_case);

/// Fills `buffers`, which hold the inputs, with the results.
using Reference = void (*)(const KernelCase& kernel_case, Buffers& buffers);

struct ReferenceRow {
  const char* name;
  Reference reference;
};

}  // namespace kernwright::sim
