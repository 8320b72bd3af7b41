// The scope of a thread, and the empty kernel that takes the place of kernels to come.
#include "jit/compile_only.h"

#include "core/module.h"

#include <utility>

namespace kernwright {

CompileOnly::CompileOnly() noexcept : outer_(std::exchange(innermost_, this)) {}

CompileOnly::~CompileOnly() { innermost_ = outer_; }

const Kernel& CompileOnly::begin(const LazyKernel& kernel, Device& device) {
  kernels_.compile(kernel, device);
  return stand_ins_.get(device, [&device] {
    constexpr const char* kText =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry compiled_later() {\n  ret;\n}\n";
    return Kernel(Module::load(device, kText),
                  {.name = "compiled_later", .lowered = "compiled_later", .parameters = {}});
  });
}

void CompileOnly::launch(const Kernel& kernel, const LaunchConfig& config,
                         std::span<void* const> arguments, const LaunchSite& site) {
  if (current() == nullptr) kernel.launch(config, arguments, site);
}

void CompileOnly::launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site) {
  if (current() == nullptr) LaunchHook::launch_graph(graph, stream, site);
}

}  // namespace kernwright
