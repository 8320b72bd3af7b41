// Source text to kernels: the explicit Program, and LazyKernel which compiles when first needed.
#pragma once

#include "core/kernel.h"
#include "jit/kernel_scanner.h"
#include "jit/object_code.h"
#include "jit/program_options.h"
#include "jit/source.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kernwright {

/// One translation unit. Thread-safe; compiling the same thing twice at once compiles it once.
class Program {
 public:
  /// Throws InvalidArgument: empty source, NUL in source, bad options.
  explicit Program(Source source, ProgramOptions options = {});

  const Source& source() const noexcept;
  const ProgramOptions& options() const noexcept;
  const std::vector<KernelDeclaration>& declarations() const noexcept;

  /// Compiles for `options.arch`. Empty `names` = every kernel declared that is no template.
  /// Throws CompileError, NameNotFound, NvrtcNotFound, Timeout. Does not touch any device.
  ObjectCode compile(CodeKind kind, const std::vector<std::string>& names = {}) const;

  /// Compiles what `device` can run (design: cubin for a GPU, PTX for the simulated device and for
  /// a GPU newer than NVRTC), through the memory cache.
  std::shared_ptr<const ObjectCode> compile_for(Device& device,
                                                const std::vector<std::string>& names) const;

  /// Compiles (if needed), loads (once per device) and returns the kernel.
  Kernel kernel(Device& device, const std::string& name) const;
  /// The loaded module, with its __device__ and __constant__ variables by C++ name.
  Module module(Device& device) const;
  ModuleSymbol symbol(Device& device, const std::string& name) const;

 private:
  struct Box;
  std::shared_ptr<Box> box_;
};

/// A kernel by name, compiled and loaded per device when first needed. Cheap to copy, thread-safe.
class LazyKernel {
 public:
  /// Empty `name`: the source's only __global__ function; else NameNotFound listing the candidates.
  LazyKernel(Program program, std::string name = {});

  const std::string& name() const noexcept;
  const Program& program() const noexcept;
  /// Compiles and loads when this is the first use on `device`; then a table look-up.
  const Kernel& on(Device& device) const;
  std::shared_ptr<const ObjectCode> object_code(Device& device) const;

 private:
  struct Box;
  std::shared_ptr<Box> box_;
};

/// kernwright::kernel("__global__ ...") as in Python.
LazyKernel kernel(std::string source, std::string name = {}, ProgramOptions options = {});

}  // namespace kernwright
