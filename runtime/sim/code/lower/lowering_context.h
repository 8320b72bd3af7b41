// What the functions of a module share while they are lowered.
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

/// Throws ptx::PtxError for an instruction of `function` that cannot run.
[[noreturn]] void refuse(const LoweringContext& context, const ptx::Function& function,
                         const ptx::Instruction& inst, const std::string& what);

}  // namespace kernwright::sim
