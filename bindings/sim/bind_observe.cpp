// Traces and line profiles of simulated devices: the base of kw.trace and kw.line_profile.
#include "base/errors.h"
#include "bindings/launch/kernel_object.h"
#include "bindings/launch/kernel_source.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "core/launch/launch_history.h"
#include "sim/line_profile.h"
#include "sim/observe/source_text.h"
#include "sim/trace.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// A text known to the compiler as a file: name, text, first line in the file.
using KnownText = std::tuple<std::string, std::string, int>;

/// One `with kw.trace(...)` block; begun by enter().
class TraceObject {
 public:
  TraceObject(py::object kernel, const std::array<unsigned, 3>& block,
              const std::array<unsigned, 3>& thread, std::uint64_t launch, std::uint64_t skip,
              std::uint64_t limit)
      : kernel_(std::move(kernel)) {
    trace_.request.block = block;
    trace_.request.thread = thread;
    trace_.request.launch = launch;
    trace_.request.skip = skip;
    trace_.request.limit = limit;
  }

  void enter() {
    const Kernel& loaded = kernel_.cast<KernelObject&>().plan(current_device()).kernel;
    trace_.request.function = loaded.handle();
    const GilRelease nogil;
    scope_ = std::make_unique<sim::TraceScope>(trace_.request);
  }
  void leave() {
    const GilRelease nogil;
    update();
    scope_.reset();
  }
  /// `name` is the file with `text`, from `first_line` on.
  std::string json(const std::string& name, int first_line) {
    update();
    place(name, first_line);
    return trace_.to_json();
  }
  std::string text(const std::string& name, const std::string& text, int first_line,
                   const std::vector<KnownText>& headers) {
    update();
    place(name, first_line);
    sim::SourceText source(&shown_text);
    if (!text.empty()) source.add(name, text, first_line);
    for (const auto& [header, its_text, its_line] : headers) source.add(header, its_text, its_line);
    return trace_.to_text(source);
  }

 private:
  void update() {
    if (scope_ != nullptr) trace_ = scope_->trace();
  }
  void place(const std::string& name, int first_line) {
    const auto find_file_line = [&](const std::string& file) {
      return file == name ? first_line
                          : static_cast<int>(KernelTag::find_first_line(trace_.kernel, file));
    };
    for (sim::TraceStep& step : trace_.steps) step.first_line = find_file_line(step.file);
    if (trace_.fault) trace_.fault->place_texts(find_file_line);
  }

  py::object kernel_;
  sim::Trace trace_;
  std::unique_ptr<sim::TraceScope> scope_;
};

/// One `with kw.line_profile(...)` block; begun by enter().
class LineProfileObject {
 public:
  explicit LineProfileObject(py::list kernels) : kernels_(std::move(kernels)) {}

  void enter() {
    std::vector<CUfunction> functions;
    for (const py::handle kernel : kernels_)
      functions.push_back(kernel.cast<KernelObject&>().plan(current_device()).kernel.handle());
    const GilRelease nogil;
    scope_ = std::make_unique<sim::LineProfileScope>(std::move(functions));
  }
  void leave() {
    const GilRelease nogil;
    update();
    scope_.reset();
  }
  std::string json() {
    const GilRelease nogil;
    update();
    return profile_.to_json();
  }
  std::string text(const std::vector<KnownText>& known) {
    const GilRelease nogil;
    update();
    sim::SourceText source(&shown_text);
    for (const auto& [name, text, first_line] : known) source.add(name, text, first_line);
    return profile_.to_text(source);
  }

 private:
  void update() {
    if (scope_ == nullptr) return;
    profile_ = scope_->profile();
    for (sim::LineRecord& record : profile_.lines)
      record.first_line = static_cast<int>(KernelTag::find_first_line(record.kernel, record.file));
  }

  py::list kernels_;
  sim::LineProfile profile_;
  std::unique_ptr<sim::LineProfileScope> scope_;
};

/// Counts in the order of their fields.
using CountValues = std::vector<std::uint64_t>;

sim::LineCounts make_counts(const CountValues& values) {
  sim::LineCounts counts;
  const auto fields = sim::line_count_fields();
  for (std::size_t i = 0; i < std::min(values.size(), fields.size()); ++i)
    counts.*fields[i].value = values[i];
  return counts;
}

/// Columns as (name, meaning), the note, then for each row cells, shares of the cost, and advice.
py::tuple line_table(const std::vector<CountValues>& rows, const CountValues& total) {
  std::vector<sim::LineCounts> counts;
  for (const CountValues& row : rows) counts.push_back(make_counts(row));
  sim::LineTable table = sim::line_table(counts, make_counts(total));
  std::vector<std::pair<std::string, std::string>> columns;
  for (const sim::LineColumn& column : table.columns)
    columns.emplace_back(column.name, column.meaning);
  return py::make_tuple(columns, table.note, table.rows, table.shares, table.advice);
}

}  // namespace

void bind_observe(py::module_& m) {
  py::class_<LineProfileObject>(m, "_LineProfile")
      .def(py::init<py::list>())
      .def("enter", &LineProfileObject::enter)
      .def("leave", &LineProfileObject::leave)
      .def("json", &LineProfileObject::json)
      .def("text", &LineProfileObject::text);
  m.def("_line_table", &line_table);
  m.def("_line_cost",
        [](const CountValues& counts) { return sim::line_cost(make_counts(counts)); });
  m.def("_line_advice",
        [](const CountValues& counts) { return sim::line_advice(make_counts(counts)); });
  m.def(
      "_shown_text",
      [](const py::str& file, int first_line) -> py::object {
        std::optional<std::string> text;
        try {
          const std::string name = path_argument(file, "the name of a source");
          const GilRelease unlocked;
          text = shown_text(name, first_line);
        } catch (const InvalidArgument&) {
          // A NUL in the name; no file has one.
        }
        return text ? py::object(text_object(*text)) : py::object(py::none());
      },
      py::arg("file"), py::arg("first_line"));
  py::class_<TraceObject>(m, "_Trace")
      .def(py::init<py::object, const std::array<unsigned, 3>&, const std::array<unsigned, 3>&,
                    std::uint64_t, std::uint64_t, std::uint64_t>())
      .def("enter", &TraceObject::enter)
      .def("leave", &TraceObject::leave)
      .def("json", &TraceObject::json)
      .def("text", &TraceObject::text);
}

}  // namespace kernwright::python
