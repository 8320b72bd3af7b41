// The kernels of one call, compiled at the same time.
#pragma once

#include "jit/compile/task_group.h"
#include "jit/program.h"

#include <cstddef>
#include <functional>
#include <list>
#include <optional>

namespace kernwright {

/// Begins compiles before the kernels are needed. They are loaded in the caller's thread, which may
/// capture a graph. Where all kernels are loaded it allocates nothing and starts no thread. For one
/// thread.
class KernelsAhead {
 public:
  /// Begins to compile `kernel`, which must live as long as this object.
  void begin(const LazyKernel& kernel, Device& device) {
    if (kernel.find(device) == nullptr) [[unlikely]]
      begin_missing(kernel, device);
  }
  /// kernel.on(device), after its compile where that was begun. Throws as on() does.
  const Kernel& on(const LazyKernel& kernel, Device& device) {
    return begun_.empty() ? kernel.on(device) : finish(kernel, device);
  }
  /// Returns when all begun kernels are compiled and loaded. Throws as on() does, in the order of
  /// begin().
  void load_all();

 private:
  friend class CompileOnly;

  struct Begun {
    const LazyKernel* kernel;
    Device* device;
    std::size_t task;
    std::function<const Kernel&()> load;  ///< set by the task
  };
  std::list<Begun>::iterator find(const LazyKernel& kernel, const Device& device);
  void begin_missing(const LazyKernel& kernel, Device& device);
  void compile(const LazyKernel& kernel, Device& device);
  const Kernel& finish(const LazyKernel& kernel, Device& device);

  std::list<Begun> begun_;
  std::optional<TaskGroup> tasks_;  ///< ends first
};

}  // namespace kernwright
