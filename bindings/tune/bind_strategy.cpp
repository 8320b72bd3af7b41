// Searches for Python.
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/tune/bind_tune.h"
#include "tune/search/strategy.h"

#include <pybind11/stl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// A strategy over a copy of its space, which no change of the original reaches. A model may take a
/// while to grow: other threads of Python run meanwhile, and use of the object waits.
class TuneStrategy {
  template <typename Call>
  auto locked(Call&& call) {
    return without_gil([&] {
      const std::lock_guard held(mutex_);
      return call();
    });
  }

 public:
  TuneStrategy(const std::string& name, TuneSpace& space, std::uint64_t seed,
               std::vector<std::uint64_t> initial) {
    space.configurations();
    space_ = space.space;
    strategy_ = make_strategy(name, space_, {seed, std::move(initial)});
  }

  std::vector<std::uint64_t> ask(std::size_t count) {
    return locked([&] { return strategy_->ask(count); });
  }
  void tell(std::uint64_t index, std::optional<double> cost) {
    locked([&] { strategy_->tell(index, cost); });
  }
  std::optional<std::uint64_t> best() {
    return locked([&] { return strategy_->best(); });
  }
  std::optional<double> best_cost() {
    return locked([&] { return strategy_->best_cost(); });
  }
  std::size_t told() {
    return locked([&] { return strategy_->told(); });
  }
  std::size_t in_flight() {
    return locked([&] { return strategy_->in_flight(); });
  }

 private:
  Space space_;
  std::unique_ptr<Strategy> strategy_;
  std::mutex mutex_;
};

py::tuple names() {
  py::list result;
  for (const std::string_view name : strategy_names()) result.append(std::string(name));
  return py::tuple(result);
}

}  // namespace

void bind_tune_strategy(py::module_& m) {
  m.def("_tune_strategies", &names);
  py::class_<TuneStrategy>(m, "TuneStrategy")
      .def(py::init<const std::string&, TuneSpace&, std::uint64_t, std::vector<std::uint64_t>>())
      .def("ask", &TuneStrategy::ask)
      .def("tell", &TuneStrategy::tell)
      .def("best", &TuneStrategy::best)
      .def("best_cost", &TuneStrategy::best_cost)
      .def("told", &TuneStrategy::told)
      .def("in_flight", &TuneStrategy::in_flight);
}

}  // namespace kernwright::python
