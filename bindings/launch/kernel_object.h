// Python's Kernel: its origin, and a launch plan for each device.
#pragma once

#include "bindings/arguments/argument.h"
#include "core/kernel.h"
#include "core/per_device.h"
#include "jit/object_code.h"
#include "jit/program.h"

#include <pybind11/pybind11.h>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// Everything a launch on one device needs, made once. Immutable but for the remembered block size.
struct LaunchPlan {
  using Clock = std::chrono::steady_clock;

  /// `since`: when the kernel was asked for.
  explicit LaunchPlan(Kernel loaded, CodeLayer its_layer = CodeLayer::none,
                      Clock::time_point since = Clock::now());

  Kernel kernel;
  Device* device;
  std::vector<ArgumentPlan> arguments;
  std::size_t block_bytes = 0;  ///< of the argument block
  CodeLayer layer;              ///< that had the code
  double ready_ms = 0;          ///< from the request to a kernel ready for launches
  std::atomic<int> suggested_block{0};
};

/// A kernel of a program (compiled when first needed) or of object code. Never copied: Python's
/// references share it. Thread-safe.
class KernelObject {
 public:
  /// `origin` is Python's object of the program, kept for pickling.
  KernelObject(LazyKernel kernel, py::object origin);
  KernelObject(std::shared_ptr<const ObjectCode> code, std::string name);
  ~KernelObject();

  const std::string& name() const noexcept { return name_; }
  /// "saxpy(float a, const float* x)": as compiled, before that as the text has it where it shows
  /// the parameters, else the name. Compiles nothing.
  std::string described() const;
  const py::object& origin() const noexcept { return origin_; }
  const std::optional<LazyKernel>& lazy() const noexcept { return lazy_; }
  /// The code for `device`, compiled if needed. Call without the GIL.
  std::shared_ptr<const ObjectCode> code(Device& device) const;

  /// The plan for `device`; compiles and loads at first use, with the GIL released meanwhile.
  LaunchPlan& plan(Device& device) {
    LaunchPlan* const known = plans_.find(device);
    return known != nullptr ? *known : make_plan(device);
  }

 private:
  LaunchPlan& make_plan(Device& device);

  std::optional<LazyKernel> lazy_;
  std::shared_ptr<const ObjectCode> code_;
  std::string name_;
  py::object origin_;
  PerDevice<LaunchPlan> plans_;
};

/// The kernel of that name, or the program's only one for an empty name. Where the text alone does
/// not show the kernels, it is compiled for the current device. `origin` is Python's object of the
/// program. Throws as LazyKernel does.
std::unique_ptr<KernelObject> make_kernel(const Program& program, std::string name,
                                          py::object origin);

}  // namespace kernwright::python
