// The layout of a module's parameters, shared and local variables, and its entries' total needs.
#pragma once

#include "sim/code/program.h"
#include "sim/ptx/ast.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// Offset of a variable without a fixed place (extern shared arrays begin at the end of the entry's
/// static shared memory).
inline constexpr std::uint32_t kDynamicOffset = ~0u;

struct ModuleLayout {
  std::vector<std::uint32_t> shared_globals;          ///< per Module::globals; shared ones only
  std::vector<std::vector<std::uint32_t>> variables;  ///< per function and variable: shared, local
  /// Per device function that takes the address of a parameter: local offset of its parameters'
  /// copy.
  std::vector<std::uint32_t> parameter_copies;
  std::vector<FunctionInfo> functions;  ///< all but frame, ops and constants
};

/// Packs parameters one after the other, each at its alignment. Returns the bytes of the block.
std::uint32_t pack_parameters(const std::vector<ptx::Variable>& variables,
                              std::vector<ParameterSlot>& slots);

/// Throws ptx::PtxError when the variables of an entry cannot fit into any device.
ModuleLayout lay_out(const ptx::Module& module);

}  // namespace kernwright::sim
