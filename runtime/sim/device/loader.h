// From PTX text to a program with its variables laid out in the device's memory.
#pragma once

#include "sim/check/checked_program.h"
#include "sim/device/resources.h"
#include "sim/ir/program.h"
#include "sim/mem/memory.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kernwright::sim {

/// A .global or .const variable of a loaded module.
struct ModuleVariable {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// Owns the memory of its variables; returns it on destruction.
class LoadedModule {
 public:
  /// Parses and decodes `text`, lays out and initialises the variables. Throws ptx::PtxError for
  /// text that cannot run and OutOfMemory when the variables do not fit.
  LoadedModule(std::string text, Memory& memory);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const Program& program() const noexcept { return *program_; }
  /// The program under checks, made when it is first asked for. Not thread-safe.
  const CheckedProgram& checked() const;
  /// Null when the module has no variable of that name.
  const ModuleVariable* variable(const std::string& name) const;
  std::uint64_t constant_bytes() const noexcept { return constant_bytes_; }

 private:
  SymbolAddresses lay_out(const ptx::Module& module);
  void initialise(const ptx::Variable& variable);
  std::uint64_t value_of(const ptx::InitialValue& value) const;
  void release() noexcept;

  Memory& memory_;
  std::unique_ptr<Program> program_;
  mutable std::unique_ptr<CheckedProgram> checked_;
  std::map<std::string, ModuleVariable, std::less<>> variables_;
  std::uint64_t constant_bytes_ = 0;
};

}  // namespace kernwright::sim
