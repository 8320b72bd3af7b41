// Launch numbers for the tuner, and compiling without launches for warming up.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/support/gil.h"
#include "jit/compile_only.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/plans/planned_rows.h"
#include "kernels_src/products/kernel_choices.h"

#include <pybind11/stl.h>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// Rows of family, name, whether it goes by rows, candidates, meaning.
py::list choice_rows() {
  py::list rows;
  for (const kernels::LaunchChoiceInfo& info : kernels::launch_choices()) {
    const std::vector<int> candidates(info.candidates.begin(), info.candidates.end());
    rows.append(py::make_tuple(std::string(info.family), std::string(info.name),
                               info.measure == kernels::ChoiceMeasure::row, candidates,
                               std::string(info.meaning)));
  }
  return rows;
}

std::string shape_class_name(bool by_row, std::int64_t extent, std::size_t element) {
  const auto measure = by_row ? kernels::ChoiceMeasure::row : kernels::ChoiceMeasure::whole;
  return kernels::shape_class(measure, extent, element);
}

void use_table(const std::optional<std::string>& text) {
  if (text) {
    kernels::use_launch_table(*text);
  } else {
    kernels::use_launch_table(std::nullopt);
  }
}

/// The choices of now, but for candidates by the places of their rows in _launch_choices().
std::shared_ptr<kernels::PinnedChoices> choices_to_measure(const std::map<int, int>& candidates) {
  std::vector<kernels::LaunchCandidate> all;
  for (const auto& [place, value] : candidates) {
    if (place < 0 || static_cast<std::size_t>(place) >= kernels::launch_choices().size())
      throw InvalidArgument(format("there is no launch choice {}", place));
    all.push_back({static_cast<kernels::LaunchChoice>(place), value});
  }
  return std::make_shared<kernels::PinnedChoices>(all);
}

py::object compile_only(const py::function& work) {
  // The end may wait for compiles and call the driver, also that of a call that fails.
  struct Scope {
    std::optional<CompileOnly> calls{std::in_place};
    ~Scope() {
      without_gil([this] { calls.reset(); });
    }
  } scope;
  py::object result = work();
  without_gil([&] { scope.calls->finish(); });
  return result;
}

py::object launched(const py::function& work) {
  const CompileOnly::Pause pause;
  return work();
}

py::object call_planned_rows(std::int64_t most, const py::function& work) {
  if (most < 1 || most > kernels::kMostPlannedRows)
    throw InvalidArgument(
        format("plans count on 1 to {} rows, not {}", kernels::kMostPlannedRows, most));
  const kernels::PlannedRowsScope scope(kernels::PlannedRows{most});
  return work();
}

}  // namespace

void bind_choices(py::module_& m) {
  m.def("_launch_choices", &choice_rows);
  m.def("_shape_class", &shape_class_name);
  m.def("_use_launch_table", &use_table);
  py::class_<kernels::PinnedChoices, std::shared_ptr<kernels::PinnedChoices>>(m, "_PinnedChoices")
      .def(py::init(&choices_to_measure), py::arg("candidates"))
      .def_static("now", &kernels::PinnedChoices::now);
  m.def("_set_choices", &kernels::PinnedChoices::set, py::arg("pinned").none(true));
  m.def("_launch_table_path", [] { return kernels::launch_table_path().string(); });
  m.def("_compile_only", &compile_only);
  m.def("_launched", &launched);
  m.def("_with_planned_rows", &call_planned_rows);
}

}  // namespace kernwright::python
