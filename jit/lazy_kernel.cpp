// A kernel that is compiled on first use, and the table that later uses read without a lock.
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "jit/program.h"

namespace kernwright {
namespace {

/// Devices with a slot of their own; those beyond it take the slow path each time.
constexpr std::size_t kSlots = 64;

/// Real and simulated devices count from 0 each.
std::size_t slot_of(const Device& device) {
  return static_cast<std::size_t>(device.ordinal()) * 2 + (device.is_simulated() ? 1 : 0);
}

std::string only_kernel(const Program& program) {
  const std::string& source = program.source().name;
  const auto& kernels = program.declarations();
  if (kernels.empty()) {
    throw NameNotFound(format("{} declares no __global__ function", source));
  }
  if (kernels.size() == 1) {
    if (!kernels[0].is_template) return kernels[0].name;
    throw NameNotFound(
        format("{} in {} is a template: name an instantiation of it, for example {}<float>",
               kernels[0].name, source, kernels[0].name));
  }
  std::string list;
  for (const KernelDeclaration& kernel : kernels) {
    list += (list.empty() ? "" : ", ") + kernel.name;
  }
  throw NameNotFound(
      format("{} declares {} __global__ functions: name one of {}", source, kernels.size(), list));
}

}  // namespace

struct LazyKernel::Box {
  Box(Program lazy_program, std::string kernel_name)
      : program(std::move(lazy_program)),
        name(kernel_name.empty() ? only_kernel(program) : std::move(kernel_name)) {}

  const Kernel& make(Device& device) {
    Kernel kernel = program.kernel(device, name);
    const std::lock_guard lock(mutex);
    const auto known = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const Kernel& k) { return &k.device() == &device; });
    const Kernel& kept = known != kernels.end() ? *known : kernels.emplace_back(std::move(kernel));
    if (slot_of(device) < kSlots) slots[slot_of(device)].store(&kept, std::memory_order_release);
    return kept;
  }

  Program program;
  std::string name;
  std::array<std::atomic<const Kernel*>, kSlots> slots{};
  std::mutex mutex;
  std::deque<Kernel> kernels;  ///< one per device; a deque never moves them
};

LazyKernel::LazyKernel(Program program, std::string name)
    : box_(std::make_shared<Box>(std::move(program), std::move(name))) {}

const std::string& LazyKernel::name() const noexcept { return box_->name; }
const Program& LazyKernel::program() const noexcept { return box_->program; }

const Kernel& LazyKernel::on(Device& device) const {
  const std::size_t slot = slot_of(device);
  if (slot < kSlots) {
    const Kernel* known = box_->slots[slot].load(std::memory_order_acquire);
    if (known != nullptr && &known->device() == &device) return *known;
  }
  return box_->make(device);
}

std::shared_ptr<const ObjectCode> LazyKernel::object_code(Device& device) const {
  return box_->program.object_code(device, box_->name);
}

LazyKernel kernel(std::string source, std::string name, ProgramOptions options) {
  Source text;
  text.text = std::move(source);
  return LazyKernel(Program(std::move(text), std::move(options)), std::move(name));
}

}  // namespace kernwright
