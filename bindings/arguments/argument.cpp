// Planning of arguments, their error messages, and host arrays copied around a launch.
#include "bindings/arguments/argument.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "sim/checks.h"

#include <algorithm>
#include <atomic>
#include <span>

namespace kernwright::python {
namespace {

std::atomic<bool> is_checking = true;

// Every slot is aligned as the most demanding parameter is.
constexpr std::size_t kSlotAlignment = 16;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace

bool checks_arguments() noexcept { return is_checking.load(std::memory_order_relaxed); }

bool set_checks_arguments(bool enabled) noexcept { return is_checking.exchange(enabled); }

std::size_t slot_bytes(const Parameter& parameter) noexcept {
  return rounded(std::max(parameter.size, kSlotAlignment));
}

ArgumentPlan plan_argument(const Parameter& parameter, std::size_t index, std::size_t end) {
  ArgumentPlan plan;
  plan.parameter = &parameter;
  plan.index = index;
  plan.offset = rounded(end);
  if (parameter.kind != ParameterKind::pointer) {
    plan.convert = value_converter(parameter);
    return plan;
  }
  plan.convert = is_function_pointer(parameter) ? &convert_function : &convert_pointer;
  plan.pointee = parameter_pointee(parameter);
  const bool plain = parameter.scalar && parameter.pointee_size <= scalar_size(*parameter.scalar);
  if (plain && plan.pointee == Pointee::numbers) plan.element = parameter.scalar;
  return plan;
}

std::string LaunchFrame::describe(const ArgumentPlan& plan, const std::string& problem) const {
  return at_parameter(kernel_.signature(), plan.index, problem);
}

void LaunchFrame::refuse(const ArgumentPlan& plan, const std::string& problem) const {
  throw ArgumentError(describe(plan, problem));
}

void LaunchFrame::refuse_range(const ArgumentPlan& plan, const std::string& problem) const {
  throw ArgumentRangeError(describe(plan, problem));
}

/// Each argument has device memory of its own. If two of them were copied back to the same place,
/// the last one would win.
void LaunchFrame::refuse_shared(const ArgumentPlan& plan, const py::object& target) const {
  for (const Staged& staged : staged_) {
    if (!staged.target) continue;
    const py::module_ numpy = py::module_::import("numpy");
    if (!numpy.attr("may_share_memory")(target, staged.target).cast<bool>()) continue;
    bool shares = true;
    try {
      constexpr int kMostWork = 1 << 20;  // views of many dimensions could take for ever
      shares = numpy.attr("shares_memory")(target, staged.target, kMostWork).cast<bool>();
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_RuntimeError)) throw;
    }
    if (!shares) continue;
    refuse(plan,
           format("got kw.Out or kw.InOut of memory that overlaps the one of parameter {}: both "
                  "would be copied back to it; pass arrays that do not overlap, or one "
                  "device array (kw.asarray(x)) for both",
                  staged.plan->index + 1));
  }
}

void LaunchFrame::check_layout(const ArgumentPlan& plan, const py::object& layout) const {
  if (!is_checked_ || plan.agreed.load(std::memory_order_relaxed) == layout.ptr()) return;
  const py::object wanted = struct_layout(*plan.parameter);
  if (!wanted) return;
  const py::object problem = wanted.attr("mismatch")(layout);
  if (problem.is_none()) {
    if (module_member("kernwright._jit.structs", "is_kept")(layout).cast<bool>())
      plan.agreed = layout.ptr();
    return;
  }
  const std::string advice =
      plan.parameter->fields.empty()
          ? std::string()
          : format("; kernel.parameters[{}].dtype is its layout", plan.index);
  refuse(plan, format("got a value of another layout: {}{}", problem.cast<std::string>(), advice));
}

CUdeviceptr LaunchFrame::stage(const ArgumentPlan& plan, const HostArgument& host,
                               const py::object& values, ScalarType type) {
  if (any_capture()) [[unlikely]] {
    const GilRelease unlocked;
    const ContextGuard guard(device_);
    refuse_in_capture(device_, stream_.handle(), "kw.In, kw.Out and kw.InOut",
                      "pass arrays of the device, filled before the capture");
  }
  const auto target = py::reinterpret_borrow<py::array>(values);
  if (host.copy_out) refuse_shared(plan, target);
  const py::array contiguous = py::module_::import("numpy").attr("ascontiguousarray")(target);
  Shape shape(target.shape(), target.shape() + target.ndim());
  Staged staged;
  staged.plan = &plan;
  staged.copied_in = host.copy_in;
  if (host.copy_in) {
    const void* data = contiguous.data();
    const GilRelease unlocked;
    staged.array = Array::from_host(device_, data, std::move(shape), type);
  } else {
    const GilRelease unlocked;
    staged.array = Array::empty(device_, std::move(shape), type, stream_);
  }
  if (host.copy_out) staged.target = target;
  // For an input, only the search for writes needs the values.
  if (host.copy_out || device_.is_simulated()) staged.contiguous = contiguous;
  staged_.push_back(std::move(staged));
  return staged_.back().array.address();
}

void LaunchFrame::free_staged() noexcept {
  for (Staged& staged : staged_) drop_without_gil(staged.array);
}

/// Writes of a kernel to kw.In are lost.
void LaunchFrame::check_input(const Staged& staged) const {
  const py::array before = py::reinterpret_borrow<py::array>(staged.contiguous);
  const std::span values(static_cast<const std::byte*>(before.data()), staged.array.nbytes());
  const std::string parameter = describe(*staged.plan, "got kw.In");
  const GilRelease unlocked;
  sim::check_input(staged.array.address(), values, parameter);
}

/// The kernel has to write what kw.Out copies back.
void LaunchFrame::check_results() const {
  for (const Staged& staged : staged_) {
    const Array& array = staged.array;
    if (array.nbytes() == 0) continue;
    if (!staged.target && staged.contiguous) check_input(staged);
    if (!staged.target || staged.copied_in) continue;
    const std::string parameter = describe(*staged.plan, "got kw.Out");
    const GilRelease unlocked;
    sim::check_results(array.address(), array.nbytes(), parameter);
  }
}

std::vector<std::string> LaunchFrame::lost_writes() const {
  std::vector<std::string> found;
  for (const Staged& staged : staged_) {
    if (staged.target || !staged.contiguous || staged.plan->parameter->pointee_const) continue;
    const py::array before = py::reinterpret_borrow<py::array>(staged.contiguous);
    const std::span values(static_cast<const std::byte*>(before.data()), staged.array.nbytes());
    if (values.empty()) continue;
    {
      const GilRelease unlocked;
      if (sim::change_since(staged.array.address(), values).count == 0) continue;
    }
    found.push_back(
        describe(*staged.plan, format("got kw.In, and the kernel wrote there: the results are "
                                      "lost; pass kw.InOut({0}), or kw.Out({0}) if the kernel "
                                      "reads none of it",
                                      std::string(name_in_text(*staged.plan->parameter)))));
  }
  return found;
}

void LaunchFrame::finish() {
  if (staged_.empty()) return;
  {
    const GilRelease unlocked;
    (stream_ ? stream_ : Stream::legacy(device_)).synchronize();
  }
  const bool is_checked = device_.is_simulated() && sim::current_checks().init;
  if (is_checked) check_results();
  // NOTE: before the copies back, which may go to the memory that an input came from.
  std::vector<std::string> lost;
  if (device_.is_simulated() && !is_checked) lost = lost_writes();
  for (const Staged& staged : staged_) {
    if (!staged.target) continue;
    auto memory = py::reinterpret_borrow<py::array>(staged.contiguous);
    void* data = memory.mutable_data();
    {
      const GilRelease unlocked;
      staged.array.to_host(data);
    }
    if (!memory.is(staged.target)) {
      py::module_::import("numpy").attr("copyto")(staged.target, memory);
    }
  }
  for (const std::string& text : lost) {
    module_member("kernwright._support.warn", "warn_caller")(text);
  }
}

}  // namespace kernwright::python
