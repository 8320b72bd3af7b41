// Common data of a module's functions during lowering.
#pragma once

#include "sim/code/layout.h"
#include "sim/code/tables.h"

#include <string>

namespace kernwright::sim {

struct LoweringContext {
  const ptx::Module& module;
  const ModuleLayout& layout;
  const SymbolAddresses& symbols;
  Program::Tables& tables;
};

/// Throws ptx::PtxError for an unsupported instruction of `function`.
[[noreturn]] void refuse(const LoweringContext& context, const ptx::Function& function,
                         const ptx::Instruction& inst, const std::string& what);

}  // namespace kernwright::sim
