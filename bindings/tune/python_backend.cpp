// Calls between the engine of sessions and backends written in Python.
#include "bindings/tune/python_backend.h"

#include "base/errors.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "worker/worker.h"

#include <pybind11/stl.h>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace kernwright::python {
namespace {

using Clock = std::chrono::steady_clock;

/// Holds an object; it may be dropped without the lock.
struct PythonWork final : TrialWork {
  explicit PythonWork(py::object made) : kept(keep_alive(std::move(made))) {}
  py::handle object() const { return static_cast<PyObject*>(kept.get()); }

  std::shared_ptr<void> kept;
};

bool is_error(const py::error_already_set& error, const char* name) {
  return error.matches(py::module_::import("kernwright.errors").attr(name));
}

/// Throws the engine's error for the error of Python, or itself.
[[noreturn]] void rethrow(const py::error_already_set& error) {
  const std::string text = py::str(error.value());
  if (error.matches(py::module_::import("concurrent.futures").attr("CancelledError")))
    throw Cancelled(text);
  if (is_error(error, "Timeout")) throw Timeout(text);
  if (is_error(error, "CompileError")) throw CompileError(text, {}, {}, {}, {});
  if (is_error(error, "LaunchConfigError")) throw LaunchConfigError(text);
  if (is_error(error, "NvrtcNotFound")) throw NvrtcNotFound(text);
  if (is_error(error, "DriverNotFound")) throw DriverNotFound(text);
  if (is_error(error, "DeviceNotFound")) throw DeviceNotFound(text);
  if (is_error(error, "Error")) throw Error(text);
  throw error;
}

py::object seconds_left(const WaitLimits& limits) {
  if (!limits.deadline) return py::none();
  const std::chrono::duration<double> left = *limits.deadline - Clock::now();
  return py::float_(std::max(left.count(), 0.0));
}

py::object stop_question(const WaitLimits& limits) {
  return py::cpp_function([stop = limits.stop] { return stop != nullptr && *stop; });
}

WaitLimits make_limits(double seconds) {
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  return WaitLimits{}.within(limit);
}

class PythonBackend final : public TrialBackend {
  static py::handle work_object(TrialWork& work) { return static_cast<PythonWork&>(work).object(); }

  template <typename Call>
  auto ask(Call&& call) {
    const GilAcquire locked;
    if (!locked) throw Interrupted("the interpreter ends");
    try {
      return call(py::reinterpret_borrow<py::object>(static_cast<PyObject*>(backend_.get())));
    } catch (const py::error_already_set& error) {
      rethrow(error);
    }
  }

 public:
  explicit PythonBackend(py::object backend)
      : compile_lanes_(backend.attr("compile_lanes").cast<unsigned>()),
        device_lanes_(backend.attr("device_lanes").cast<unsigned>()),
        has_clock_(backend.attr("has_clock").cast<bool>()),
        backend_(keep_alive(std::move(backend))) {}

  unsigned compile_lanes() const override { return compile_lanes_; }
  unsigned device_lanes() const override { return device_lanes_; }
  bool has_clock() const override { return has_clock_; }

  TrialWorkRef plan(std::uint64_t index) override {
    return ask([&](const py::object& self) {
      return std::make_shared<PythonWork>(self.attr("plan")(index));
    });
  }
  CompiledTrial compile(TrialWork& work, const WaitLimits& limits) override {
    return ask([&](const py::object& self) {
      const py::tuple answer =
          self.attr("compile")(work_object(work), seconds_left(limits), stop_question(limits));
      return CompiledTrial{.code = answer[0].cast<std::string>(),
                           .same_key = answer[1].cast<std::string>(),
                           .compile_s = answer[2].cast<double>()};
    });
  }
  void bind(TrialWork&) override {}                      // where it runs
  void prepare(unsigned, const WaitLimits&) override {}  // its tasks start their needs themselves
  KernelResources load(unsigned lane, TrialWork& work, const WaitLimits& limits) override {
    return ask([&](const py::object& self) {
      const py::tuple answer =
          self.attr("load")(lane, work_object(work), seconds_left(limits), stop_question(limits));
      return KernelResources{.registers = answer[0].cast<int>(),
                             .shared_bytes = answer[1].cast<std::size_t>(),
                             .local_bytes = answer[2].cast<std::size_t>()};
    });
  }
  std::optional<std::string> verify(unsigned lane, TrialWork& work, unsigned launches,
                                    const WaitLimits& limits) override {
    return ask([&](const py::object& self) {
      return self
          .attr("verify")(lane, work_object(work), launches, seconds_left(limits),
                          stop_question(limits))
          .cast<std::optional<std::string>>();
    });
  }
  /// Without the cap: a device far away takes its samples in one go.
  TrialSamples sample(unsigned lane, TrialWork& work, unsigned count, double,
                      const WaitLimits& limits) override {
    return ask([&](const py::object& self) {
      const py::tuple answer = self.attr("sample")(lane, work_object(work), count,
                                                   seconds_left(limits), stop_question(limits));
      return TrialSamples{.times_ms = answer[0].cast<std::vector<double>>(),
                          .cost = answer[1].cast<std::optional<double>>(),
                          .metrics = answer[2].cast<std::map<std::string, double>>()};
    });
  }

 private:
  unsigned compile_lanes_, device_lanes_;
  bool has_clock_;
  std::shared_ptr<void> backend_;
};

}  // namespace

std::unique_ptr<TrialBackend> make_python_backend(py::object backend) {
  return std::make_unique<PythonBackend>(std::move(backend));
}

TrialWork& BackendLane::work(std::uint64_t index, const WaitLimits& limits) {
  auto known = works_.find(index);
  if (known == works_.end()) {
    TrialWorkRef made = backend_.plan(index);
    backend_.compile(*made, limits);
    backend_.bind(*made);
    known = works_.emplace(index, std::move(made)).first;
  }
  return *known->second;
}

/// stage(work, resources, limits) behind a load.
template <typename Stage>
auto BackendLane::run(std::uint64_t index, double seconds, Stage&& stage) {
  return without_gil([&] {
    const WaitLimits limits = make_limits(seconds);
    TrialWork& loaded = work(index, limits);
    const auto attempt = [&] {
      const KernelResources resources = backend_.load(0, loaded, limits);
      return stage(loaded, resources, limits);
    };
    try {
      return attempt();
    } catch (const WorkerLost&) {  // by a third party, perhaps: a crash repeats itself
      return attempt();
    }
  });
}

py::tuple BackendLane::load(std::uint64_t index, double seconds) {
  const KernelResources used = run(
      index, seconds,
      [](TrialWork&, const KernelResources& resources, const WaitLimits&) { return resources; });
  return py::make_tuple(used.registers, used.shared_bytes, used.local_bytes);
}

py::object BackendLane::verify(std::uint64_t index, unsigned launches, double seconds) {
  return py::cast(
      run(index, seconds, [&](TrialWork& work, const KernelResources&, const WaitLimits& limits) {
        return backend_.verify(0, work, launches, limits);
      }));
}

py::tuple BackendLane::sample(std::uint64_t index, unsigned count, double seconds) {
  const TrialSamples samples =
      run(index, seconds, [&](TrialWork& work, const KernelResources&, const WaitLimits& limits) {
        return backend_.sample(0, work, count, 0, limits);
      });
  return py::make_tuple(samples.times_ms, samples.cost, samples.metrics);
}

}  // namespace kernwright::python
