// A kernel compiled on first use, found without a lock later.
#include <algorithm>

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/per_device.h"
#include "jit/compile_only.h"
#include "jit/program.h"

namespace kernwright {
namespace {

[[noreturn]] void refuse_choice(const std::string& source, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw NameNotFound(
      format("{} declares {} __global__ functions: name one of {}", source, names.size(), list));
}

std::string only_kernel(const Program& program, Device* device) {
  const std::string& source = program.source().name;
  const auto& declared = program.declarations();
  // One in the text is taken at its word; others show when the text is compiled.
  const bool is_enough = program.loaded_code() == nullptr && declared.size() == 1;
  const bool asks = !is_enough && !program.declares_all();
  const std::vector<std::string> names =
      is_enough ? std::vector{declared[0].name} : program.kernel_names(asks ? device : nullptr);
  if (names.empty()) throw NameNotFound(format("{} declares no __global__ function", source));
  if (names.size() > 1) refuse_choice(source, names);
  const bool is_template = std::any_of(declared.begin(), declared.end(), [&](const auto& k) {
    return k.is_template && k.name == names[0];
  });
  if (!is_template) return names[0];
  throw NameNotFound(
      format("{} in {} is a template: name an instantiation of it, for example {}<float>", names[0],
             source, names[0]));
}

}  // namespace

struct LazyKernel::Box {
  Box(Program lazy_program, std::string kernel_name, Device* device)
      : program(std::move(lazy_program)),
        is_implied(kernel_name.empty()),
        name(is_implied ? only_kernel(program, device) : std::move(kernel_name)) {}

  Box(Program lazy_program, std::string kernel_name, std::vector<std::string> come_along)
      : program(std::move(lazy_program)),
        is_implied(false),
        may_wait(true),
        name(std::move(kernel_name)),
        companions(std::move(come_along)) {}

  /// Compiles now; the result loads.
  std::function<Kernel()> compile(Device& device) const {
    if (is_implied && !program.declares_all()) {
      const std::vector<std::string> names = program.kernel_names(&device);
      if (names.size() > 1) refuse_choice(program.source().name, names);
    }
    return program.compile_kernel(device, name, companions);
  }

  Program program;
  bool is_implied;        ///< the only one, which nobody named
  bool may_wait = false;  ///< for a CompileOnly
  std::string name;
  std::vector<std::string> companions;
  PerDevice<Kernel> kernels;
};

LazyKernel::LazyKernel(Program program, std::string name, Device* device)
    : box_(std::make_shared<Box>(std::move(program), std::move(name), device)) {}

LazyKernel::LazyKernel(Program program, std::string name, std::vector<std::string> companions)
    : box_(std::make_shared<Box>(std::move(program), std::move(name), std::move(companions))) {}

const std::string& LazyKernel::name() const noexcept { return box_->name; }
const Program& LazyKernel::program() const noexcept { return box_->program; }

const Kernel& LazyKernel::on(Device& device) const {
  if (const Kernel* const known = box_->kernels.find(device)) [[likely]]
    return *known;
  CompileOnly* const scope = CompileOnly::current();
  if (scope != nullptr && box_->may_wait) return scope->begin(*this, device);
  return box_->kernels.get(device, [&] { return box_->compile(device)(); });
}

const Kernel* LazyKernel::find(const Device& device) const noexcept {
  return box_->kernels.find(device);
}

std::function<const Kernel&()> LazyKernel::compile(Device& device) const {
  return [box = box_, load = box_->compile(device), &device]() -> const Kernel& {
    return box->kernels.get(device, load);
  };
}

std::shared_ptr<const ObjectCode> LazyKernel::object_code(Device& device) const {
  return box_->program.object_code(device, box_->name);
}

FoundCode LazyKernel::found_code(Device& device) const {
  return box_->program.found_code(device, box_->name);
}

LazyKernel kernel(std::string source, std::string name, ProgramOptions options) {
  Source text;
  text.text = std::move(source);
  return LazyKernel(Program(std::move(text), std::move(options)), std::move(name));
}

}  // namespace kernwright
