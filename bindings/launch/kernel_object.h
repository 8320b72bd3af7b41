// Python's Kernel: its origin, and a launch plan for each device.
#pragma once

#include "bindings/arguments/argument.h"
#include "core/kernel.h"
#include "jit/object_code.h"
#include "jit/program.h"

#include <pybind11/pybind11.h>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// Everything a launch on one device needs, made once. Immutable but for the remembered block size.
struct LaunchPlan {
  explicit LaunchPlan(Kernel loaded);

  Kernel kernel;
  Device* device;
  std::vector<ArgumentPlan> arguments;
  std::size_t block_bytes = 0;  ///< of the argument block
  std::string answer;           ///< the cache that had the code, or "compiled"
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
    LaunchPlan* last = last_.load(std::memory_order_acquire);
    return last != nullptr && last->device == &device ? *last : find_plan(device);
  }

 private:
  LaunchPlan& find_plan(Device& device);
  LaunchPlan* known_plan(Device& device);
  Kernel load(Device& device) const;

  std::optional<LazyKernel> lazy_;
  std::shared_ptr<const ObjectCode> code_;
  std::string name_;
  py::object origin_;
  std::atomic<LaunchPlan*> last_{nullptr};
  std::mutex mutex_;  // guards plans_; never held while Python runs
  std::vector<std::unique_ptr<LaunchPlan>> plans_;
};

/// The kernel of that name, or the program's only one for an empty name. Where the text alone does
/// not show the kernels, it is compiled for the current device. `origin` is Python's object of the
/// program. Throws as LazyKernel does.
std::unique_ptr<KernelObject> make_kernel(const Program& program, std::string name,
                                          py::object origin);

}  // namespace kernwright::python
