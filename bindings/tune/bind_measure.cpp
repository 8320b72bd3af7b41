// Measuring for Python: a Timer over callables for queueing work.
#include "base/errors.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "tune/measure/pareto.h"
#include "tune/measure/timer.h"

#include <pybind11/stl.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

py::dict measurement_dict(const Measurement& found) {
  py::dict result;
  result["policy"] = cache_policy_name(found.policy);
  result["times_ms"] = found.times_ms;
  result["median_ms"] = found.median_ms;
  result["interval_ms"] = py::make_tuple(found.interval_ms.low, found.interval_ms.high);
  result["noise"] = found.noise;
  result["batch"] = found.batch;
  result["sm_clock_mhz"] = found.sm_clock_mhz;
  result["is_throttled"] = found.is_throttled;
  result["gpu_seconds"] = found.gpu_seconds;
  result["counts"] = py::none();
  if (found.counts.has_value()) {
    py::dict counts;
    counts["instructions"] = found.counts->instructions;
    counts["transactions"] = found.counts->transactions;
    result["counts"] = counts;
  }
  return result;
}

/// The timer's stream is the current one of this thread while it lives.
class TimerScope {
 public:
  explicit TimerScope(const Stream& stream) { enter_stream(stream); }
  ~TimerScope() { leave_scope(); }
  TimerScope(const TimerScope&) = delete;
  TimerScope& operator=(const TimerScope&) = delete;
};

/// One measuring at a time.
class PythonTimer {
 public:
  explicit PythonTimer(Device& device)
      : timer_(without_gil([&] { return std::make_unique<Timer>(device); })) {}

  py::dict measure(const py::object& run, const MeasurePlan& plan) {
    TimedWork work{.name = "the benchmark", .queue = [&](const Stream&, std::size_t) {
                     const GilAcquire held;
                     if (!held) throw Error("the interpreter ends: measuring stops");
                     run();
                   }};
    const std::unique_lock one(mutex_, std::try_to_lock);
    if (!one) throw InvalidArgument("the timer is measuring: make another for another thread");
    const TimerScope scope(timer_->stream());
    return measurement_dict(without_gil([&] { return timer_->measure(work, plan); }));
  }

 private:
  std::unique_ptr<Timer> timer_;
  std::mutex mutex_;
};

MeasurePlan measure_plan(const std::string& policy, int min_samples, int max_samples,
                         double max_seconds, double noise) {
  MeasurePlan plan;
  plan.policy = parse_cache_policy(policy);
  plan.min_samples = min_samples;
  plan.max_samples = max_samples;
  plan.max_time = Seconds(max_seconds);
  plan.target_noise = noise;
  return plan;
}

}  // namespace

void bind_tune_measure(py::module_& m) {
  m.def("_pareto_front",
        [](const std::vector<std::vector<double>>& columns) { return pareto_front(columns); });
  py::class_<PythonTimer, Unlocked<PythonTimer>>(m, "_Timer")
      .def(py::init(
               [](const py::object& device) { return new PythonTimer(device_argument(device)); }),
           py::arg("device") = py::none())
      .def(
          "measure",
          [](PythonTimer& self, const py::object& run, const std::string& policy, int min_samples,
             int max_samples, double max_seconds, double noise) {
            return self.measure(run,
                                measure_plan(policy, min_samples, max_samples, max_seconds, noise));
          },
          py::arg("run"), py::kw_only(), py::arg("policy"), py::arg("min_samples"),
          py::arg("max_samples"), py::arg("max_seconds"), py::arg("noise"));
}

}  // namespace kernwright::python
