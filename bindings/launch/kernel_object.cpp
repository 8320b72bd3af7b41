// Launch plans: made when a kernel is first used on a device, kept as long as the kernel.
#include "bindings/launch/kernel_object.h"
#include "bindings/launch/kernel_source.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "sim/check/report/findings.h"

#include <chrono>
#include <string_view>
#include <utility>

namespace kernwright::python {
namespace {

using Clock = LaunchPlan::Clock;

/// "float a, const float* x"
std::string format_parameters(const KernelDeclaration& declaration) {
  std::string text;
  for (std::size_t i = 0; i < declaration.parameter_types.size(); ++i) {
    std::string type = declaration.parameter_types[i];
    for (std::size_t at; (at = type.find(" *")) != std::string::npos;) type.erase(at, 1);
    const std::string& name = declaration.parameter_names[i];
    text += (i == 0 ? "" : ", ") + type + (name.empty() ? "" : " ") + name;
  }
  return text;
}

}  // namespace

LaunchPlan::LaunchPlan(Kernel loaded, CodeLayer its_layer, Clock::time_point since)
    : kernel(std::move(loaded)), device(&kernel.device()), layer(its_layer) {
  for (const Parameter& parameter : kernel.signature().parameters) {
    arguments.push_back(plan_argument(parameter, arguments.size(), block_bytes));
    block_bytes = arguments.back().offset + slot_bytes(parameter);
  }
  ready_ms = std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

std::unique_ptr<KernelObject> make_kernel(const Program& program, std::string name,
                                          py::object origin) {
  require_whole_name(name, "the kernel name");
  const bool compiles =
      name.empty() && program.declarations().size() != 1 && !program.declares_all();
  if (!compiles) {
    return std::make_unique<KernelObject>(LazyKernel(program, std::move(name)), std::move(origin));
  }
  Device& device = current_device();
  std::optional<LazyKernel> kernel;
  {
    const GilRelease unlocked;
    kernel.emplace(program, std::move(name), &device);
  }
  return std::make_unique<KernelObject>(std::move(*kernel), std::move(origin));
}

KernelObject::KernelObject(LazyKernel kernel, py::object origin)
    : lazy_(std::move(kernel)), name_(lazy_->name()), origin_(std::move(origin)) {}

KernelObject::KernelObject(std::shared_ptr<const ObjectCode> code, std::string name)
    : code_(std::move(code)), name_(code_->kernel(name).name) {}

KernelObject::~KernelObject() {
  const GilRelease unlocked;  // modules are unloaded with their last owner
  plans_.clear();
  lazy_.reset();
  code_.reset();
}

std::string KernelObject::described() const {
  const LaunchPlan* plan = plans_.earliest();
  if (plan != nullptr) return plan->kernel.signature().to_string();
  if (!lazy_) return code_->kernel(name_).to_string();
  const std::string_view plain = std::string_view(name_).substr(0, name_.find('<'));
  for (const KernelDeclaration& each : lazy_->program().declarations()) {
    if (each.name == plain) return name_ + "(" + format_parameters(each) + ")";
  }
  return name_;
}

std::shared_ptr<const ObjectCode> KernelObject::code(Device& device) const {
  return lazy_ ? lazy_->object_code(device) : code_;
}

LaunchPlan& KernelObject::make_plan(Device& device) {
  const GilRelease unlocked;
  return plans_.get(device, [&] {
    const Clock::time_point begin = Clock::now();
    if (lazy_) {
      Kernel loaded = lazy_->on(device);
      const FoundCode found = lazy_->found_code(device);
      if (device.is_simulated() && lazy_->program().loaded_code() == nullptr) {
        remember_source(lazy_->program(), sim::code_id(found.code->code.c_str()));
      }
      return LaunchPlan(std::move(loaded), found.layer, begin);
    }
    if (device.is_simulated() && code_->kind == CodeKind::cubin) {
      throw Error(format("{}: a cubin for {} cannot run on {}; compile the program to \"ptx\"",
                         name_, code_->arch, device.identify()));
    }
    const Module module = Module::load(device, code_->code, code_->resource_cubin);
    return LaunchPlan({module, code_->kernel(name_)}, CodeLayer::none, begin);
  });
}

}  // namespace kernwright::python
