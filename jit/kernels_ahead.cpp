// Compiles in the threads of a task group, and loads in the caller's.
#include "jit/kernels_ahead.h"

#include "jit/compile_only.h"

#include <algorithm>

namespace kernwright {

std::list<KernelsAhead::Begun>::iterator KernelsAhead::find(const LazyKernel& kernel,
                                                            const Device& device) {
  return std::find_if(begun_.begin(), begun_.end(), [&](const Begun& begun) {
    return begun.kernel == &kernel && begun.device == &device;
  });
}

void KernelsAhead::begin_missing(const LazyKernel& kernel, Device& device) {
  // There all kernels of all calls are compiled at the same time.
  if (CompileOnly::current() == nullptr) compile(kernel, device);
}

void KernelsAhead::compile(const LazyKernel& kernel, Device& device) {
  if (find(kernel, device) != begun_.end()) return;
  if (!tasks_) tasks_.emplace();
  Begun& begun = begun_.emplace_back(Begun{&kernel, &device, 0, {}});
  begun.task = tasks_->add([&begun] { begun.load = begun.kernel->compile(*begun.device); });
}

const Kernel& KernelsAhead::finish(const LazyKernel& kernel, Device& device) {
  const auto found = find(kernel, device);
  if (found == begun_.end() || kernel.find(device) != nullptr) return kernel.on(device);
  tasks_->wait(found->task);
  return found->load();
}

void KernelsAhead::load_all() {
  for (const Begun& begun : begun_) finish(*begun.kernel, *begun.device);
}

}  // namespace kernwright
