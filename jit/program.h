// Source text to kernels: the explicit Program, and LazyKernel, which compiles at its first use.
#pragma once

#include "core/kernel.h"
#include "jit/found_code.h"
#include "jit/source/kernel_scanner.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kernwright {

struct SlicedKernel;

/// The extent of a program's compile.
enum class ProgramScope {
  whole,  ///< every kernel and variable, also those that only the compiled code shows
  named,  ///< kernels by name for launches from C++: one compile, no members of structs are told
  /// As `named`, for texts whose PTX every assembler is known to take: for the simulated device the
  /// assembler runs only when the register counts of a kernel are needed.
  library,
};

/// One translation unit. Cheap to copy, thread-safe; compiling the same thing twice at once
/// compiles it once.
class Program {
 public:
  /// Throws InvalidArgument: empty source, NUL in source, bad options.
  explicit Program(Source source, ProgramOptions options = {},
                   ProgramScope scope = ProgramScope::whole);
  /// A program of existing code, with nothing to compile: all its kernels and variables, in one
  /// module per device. `name` is for messages.
  explicit Program(ObjectCode code, std::string name);

  const Source& source() const noexcept;
  const ProgramOptions& options() const noexcept;
  const std::vector<KernelDeclaration>& declarations() const noexcept;
  /// The variables of modules that the text shows.
  const std::vector<SymbolDeclaration>& symbol_declarations() const noexcept;
  /// The code given to the constructor, or null.
  const std::shared_ptr<const ObjectCode>& loaded_code() const noexcept;

  /// Whether declarations() lists every kernel there can be: no macro, #if, header or option may
  /// make others.
  bool declares_all() const noexcept;
  /// Names of all kernels, and templates that the text declares. Compiles through the caches for
  /// `device` (null: as compile() does) unless declares_all().
  std::vector<std::string> kernel_names(Device* device = nullptr) const;

  /// Compiles for `options.arch` (PTX without one: compute_80) through the caches. Empty `names`
  /// means every declared kernel but templates. Throws CompileError, NameNotFound, NvrtcNotFound,
  /// Timeout, InvalidArgument. Does not touch any device.
  ObjectCode compile(CodeKind kind, const std::vector<std::string>& names = {}) const;

  /// Compiles code for `device` through the caches: a cubin for a GPU, PTX for a GPU newer than
  /// NVRTC, PTX with line numbers for the simulated device. Loads nothing.
  std::shared_ptr<const ObjectCode> compile_for(Device& device,
                                                const std::vector<std::string>& names = {}) const;

  /// Compiles (if needed), loads (once per device) and returns the kernel. The kernels declared in
  /// the source share one module. A later instantiation of a template brings a module of its own,
  /// with its own copies of the __device__ variables. `companions` are the next instantiations: one
  /// compile makes them all.
  Kernel kernel(Device& device, const std::string& name,
                const std::vector<std::string>& companions = {}) const;
  /// The same in two steps: compiles now, and loads in the call of the result.
  std::function<Kernel()> compile_kernel(Device& device, const std::string& name,
                                         const std::vector<std::string>& companions = {}) const;

  /// The code of kernel(), not loaded.
  std::shared_ptr<const ObjectCode> object_code(Device& device, const std::string& name) const;
  /// The same with its origin: for loaded code that of its first request; else that of this one.
  FoundCode found_code(Device& device, const std::string& name) const;

  /// The twin of a kernel that a Program loaded, for launches of parts of its grid; with `yields`
  /// for one that can be told to stop. Compiled and loaded when first asked for. Throws
  /// NotSliceable as SlicedLaunch does (sliced_launch.h), and what a compile throws.
  static std::shared_ptr<const SlicedKernel> sliced(const Kernel& kernel, bool yields);

  /// The module first loaded on `device` (made when there is none), and its __device__,
  /// __constant__ and __managed__ variables by C++ name. symbol() throws NameNotFound listing them.
  Module module(Device& device) const;
  ModuleSymbol symbol(Device& device, const std::string& name) const;
  /// The variable's type, empty where the compiler did not tell it. Throws NameNotFound.
  SymbolType symbol_type(Device& device, const std::string& name) const;

 private:
  struct Box;
  explicit Program(std::shared_ptr<Box> box) noexcept;
  std::shared_ptr<Box> box_;
};

/// A kernel by name, compiled and loaded per device when first needed. Cheap to copy, thread-safe.
class LazyKernel {
 public:
  /// Empty `name`: the source's only __global__ function; throws NameNotFound listing the
  /// candidates when there is none, more than one, or only a template. Where the text does not
  /// tell, it is compiled for `device` (null: as Program::compile() does).
  explicit LazyKernel(Program program, std::string name = {}, Device* device = nullptr);
  /// A kernel of the library. `companions`: as for Program::kernel(). In a CompileOnly the compile
  /// may wait, see on().
  LazyKernel(Program program, std::string name, std::vector<std::string> companions);

  const std::string& name() const noexcept;
  const Program& program() const noexcept;
  /// Compiles and loads when this is the first use on `device`; then a table look-up without a
  /// lock. The reference is valid as long as any copy of this object lives. In a CompileOnly of
  /// this thread a kernel that may wait and is not compiled yet has an empty one in its place.
  const Kernel& on(Device& device) const;
  /// on() where that is a look-up, else null.
  const Kernel* find(const Device& device) const noexcept;
  /// on() in two steps: compiles now, and loads in the call of the result.
  std::function<const Kernel&()> compile(Device& device) const;
  /// Compiles for `device` without loading.
  std::shared_ptr<const ObjectCode> object_code(Device& device) const;
  /// As Program::found_code().
  FoundCode found_code(Device& device) const;

 private:
  struct Box;
  std::shared_ptr<Box> box_;
};

/// kernwright::kernel("__global__ ...") as in Python.
LazyKernel kernel(std::string source, std::string name = {}, ProgramOptions options = {});

}  // namespace kernwright
