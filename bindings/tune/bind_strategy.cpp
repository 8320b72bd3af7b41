// Searches for Python.
#include "base/errors.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/tune/bind_tune.h"
#include "tune/search/forest.h"
#include "tune/search/strategy.h"

#include <pybind11/stl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
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
  std::size_t pending() {
    return locked([&] { return strategy_->pending(); });
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

/// The prediction at `queries` of a forest that learned `targets` at `rows`; rows of `width`
/// numbers each.
std::vector<double> forest_predict(const std::vector<float>& rows, std::size_t width,
                                   const std::vector<double>& targets,
                                   const std::vector<float>& queries, std::uint64_t seed) {
  if (width == 0 || targets.empty() || rows.size() != width * targets.size() ||
      queries.size() % width != 0) {
    throw InvalidArgument("_tune_forest: rows, width, targets and queries do not fit each other");
  }
  return without_gil([&] {
    Random random(seed);
    Forest forest;
    forest.fit(rows, width, targets, {}, random);
    std::vector<double> means;
    means.reserve(queries.size() / width);
    for (std::size_t i = 0; i < queries.size(); i += width) {
      means.push_back(forest.predict(std::span(queries).subspan(i, width)).mean);
    }
    return means;
  });
}

}  // namespace

void bind_tune_strategy(py::module_& m) {
  m.def("_tune_strategies", &names);
  m.def("_tune_forest", &forest_predict, py::arg("rows"), py::arg("width"), py::arg("targets"),
        py::arg("queries"), py::arg("seed"));
  py::class_<TuneStrategy>(m, "TuneStrategy")
      .def(py::init<const std::string&, TuneSpace&, std::uint64_t, std::vector<std::uint64_t>>())
      .def("ask", &TuneStrategy::ask)
      .def("tell", &TuneStrategy::tell)
      .def("best", &TuneStrategy::best)
      .def("best_cost", &TuneStrategy::best_cost)
      .def("told", &TuneStrategy::told)
      .def("pending", &TuneStrategy::pending);
}

}  // namespace kernwright::python
