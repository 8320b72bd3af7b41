// Trials run by an object of Python, anywhere, and the other end: trials on a lane here.
#pragma once

#include "tune/session/trial_backend.h"

#include <pybind11/pybind11.h>
#include <cstdint>
#include <map>
#include <memory>

namespace kernwright::python {

namespace py = pybind11;

/// A backend whose calls are methods of `backend`: plan(index), compile(work, seconds, stopped),
/// load(lane, work, seconds, stopped), verify(lane, work, launches, seconds, stopped),
/// sample(lane, work, count, seconds, stopped).
/// `work` is the result of plan(); `seconds` None without a deadline; stopped() tells whether
/// nobody waits any more. Reads the attributes compile_lanes, device_lanes and has_clock now. An
/// error of kernwright.errors raised by a method becomes that error of C++; others end the session.
std::unique_ptr<TrialBackend> make_python_backend(py::object backend);

/// One lane of a backend, used from Python stage by stage. For one thread at a time. A replaced
/// process has nothing of the stages before: each stage loads its own needs. A stage that loses its
/// worker is repeated once, as a session repeats its trials.
class BackendLane {
 public:
  explicit BackendLane(TrialBackend& backend) : backend_(backend) {}

  /// (registers, shared bytes, local bytes), after a compile or with the code of plan().
  py::tuple load(std::uint64_t index, double seconds);
  py::object verify(std::uint64_t index, unsigned launches, double seconds);
  /// (times, cost or None, metrics)
  py::tuple sample(std::uint64_t index, unsigned count, double seconds);
  void forget(std::uint64_t index) { works_.erase(index); }

 private:
  TrialWork& work(std::uint64_t index, const WaitLimits& limits);
  template <typename Stage>
  auto run(std::uint64_t index, double seconds, Stage&& stage);

  TrialBackend& backend_;
  std::map<std::uint64_t, TrialWorkRef> works_;
};

}  // namespace kernwright::python
