// From PTX text to a program with its variables laid out in the device's memory.
#pragma once

#include "sim/check/checked_program.h"
#include "sim/code/program.h"
#include "sim/device/resources.h"
#include "sim/mem/memory.h"
#include "sim/observe/observed_program.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

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
  /// unsupported text and OutOfMemory when the variables do not fit.
  LoadedModule(std::string text, Memory& memory);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const Program& program() const noexcept { return *program_; }
  // Made when they are first asked for. Not thread-safe.

  /// The program under checks.
  const CheckedProgram& checked(CodeForm form = CodeForm::fast) const;
  /// The observable program, under checks or not.
  const ObservedProgram& observed(bool under_checks) const;
  /// Null when the module has no variable with this name.
  const ModuleVariable* variable(const std::string& name) const;
  std::uint64_t constant_bytes() const noexcept { return constant_bytes_; }

 private:
  SymbolAddresses lay_out(const ptx::Module& module);
  const Program& written() const;
  /// Functions by name, with their indices.
  using FunctionNames = std::unordered_map<std::string_view, std::uint32_t>;
  void initialise(const ptx::Variable& variable, const FunctionNames& functions);
  std::uint64_t resolve_value(const ptx::InitialValue& value, const FunctionNames& functions) const;
  void release() noexcept;

  Memory& memory_;
  std::unique_ptr<Program> program_;
  mutable std::unique_ptr<Program> written_;              ///< as_written, for those who watch
  mutable std::unique_ptr<CheckedProgram> checked_[2];    ///< by CodeForm
  mutable std::unique_ptr<ObservedProgram> observed_[2];  ///< without and with checks
  std::map<std::string, ModuleVariable, std::less<>> variables_;
  std::uint64_t constant_bytes_ = 0;
};

}  // namespace kernwright::sim
