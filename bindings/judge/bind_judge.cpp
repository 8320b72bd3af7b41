// The judge for Python: tasks are Python functions, verdicts travel as JSON.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/jit/program_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "tune/judge/judge.h"

#include <pybind11/stl.h>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

using Kind = HostValue::Kind;

/// A value travels as a tuple: ("array", dtype's name, shape, bytes), ("integer", int), ("real",
/// float), ("bytes", bytes), ("null",).
HostValue make_value(const py::tuple& from) {
  const auto kind = from[0].cast<std::string>();
  if (kind == "integer") return HostValue::make_integer(from[1].cast<std::int64_t>());
  if (kind == "real") return HostValue::make_real(from[1].cast<double>());
  HostValue value;
  if (kind == "null") {
    value.kind = Kind::null;
    return value;
  }
  const py::buffer_info buffer = from[kind == "array" ? 3 : 1].cast<py::buffer>().request();
  const std::span bytes(static_cast<const std::byte*>(buffer.ptr),
                        static_cast<std::size_t>(buffer.size * buffer.itemsize));
  if (kind == "array") {
    const auto name = from[1].cast<std::string>();
    const std::optional<ScalarType> dtype = scalar_from_name(name);
    if (!dtype) throw InvalidArgument(format("a kernel has no arrays of {}", name));
    return HostValue::make_array(*dtype, from[2].cast<std::vector<std::int64_t>>(), bytes);
  }
  value.kind = Kind::bytes;
  value.bytes.assign(bytes.begin(), bytes.end());
  return value;
}

/// Its own bytes; the receiver may change them.
py::bytearray bytearray_object(const std::vector<std::byte>& bytes) {
  return py::bytearray(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

py::bytes bytes_object(const std::vector<std::byte>& bytes) {
  return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

py::tuple value_object(const HostValue& value) {
  switch (value.kind) {
    case Kind::integer:
      return py::make_tuple("integer", value.integer);
    case Kind::real:
      return py::make_tuple("real", value.real);
    case Kind::null:
      return py::make_tuple("null");
    case Kind::bytes:
      return py::make_tuple("bytes", bytes_object(value.bytes));
    case Kind::array:
      break;
  }
  return py::make_tuple("array", std::string(scalar_name(value.dtype)),
                        py::tuple(py::cast(value.shape)), bytearray_object(value.bytes));
}

py::list value_list(const HostValues& values) {
  py::list list;
  for (const HostValue& value : values) list.append(value_object(value));
  return list;
}

/// Runs `call` with Python's lock, from a thread that gave it up. Throws Error where the
/// interpreter has ended.
template <typename Call>
auto call_holding_gil(Call&& call) {
  const GilAcquire locked;
  if (!locked) throw Error("Python has ended");
  return call();
}

Dim3 make_dim3(const py::handle extents) {
  const auto [x, y, z] = extents.cast<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>>();
  return {x, y, z};
}

/// `functions` is a kernwright._judging.task.Functions: it converts, and words the errors. It must
/// outlive the task.
Task make_task(const py::object& functions, const py::object& options) {
  const py::handle object = functions;
  const auto optional_number = [&](const char* name) -> std::optional<double> {
    const py::object value = object.attr(name);
    return value.is_none() ? std::nullopt : std::optional(value.cast<double>());
  };
  Task task;
  task.entry = object.attr("entry").cast<std::string>();
  task.signature = object.attr("signature").cast<std::string>();
  task.options = make_program({"//", "task", 1, {}}, options).program.options();
  task.rtol = optional_number("rtol");
  task.atol = optional_number("atol");
  task.cases = object.attr("cases").cast<int>();
  if (!object.attr("timed_case").is_none()) {
    task.timed_case = object.attr("timed_case").cast<int>();
  }
  task.workspace = object.attr("workspace").cast<std::set<std::size_t>>();
  task.inout = object.attr("inout").cast<std::set<std::size_t>>();
  task.drawn = object.attr("drawn").cast<std::shared_ptr<DrawnCases>>();
  task.allow = object.attr("allow").cast<std::set<std::string>>();
  task.inputs = [object](std::uint64_t seed, int number) {
    return call_holding_gil([&] {
      HostValues values;
      for (const py::handle each : object.attr("inputs")(seed, number)) {
        values.push_back(make_value(each.cast<py::tuple>()));
      }
      return values;
    });
  };
  task.reference = [object](const HostValues& inputs) {
    return call_holding_gil([&] {
      Expected expected;
      for (const py::handle each : object.attr("reference")(value_list(inputs))) {
        expected.emplace_back();
        if (!each.is_none()) expected.back() = make_value(each.cast<py::tuple>());
      }
      return expected;
    });
  };
  task.launch = [object](const HostValues& inputs) {
    return call_holding_gil([&] {
      const py::tuple made = object.attr("launch")(value_list(inputs));
      LaunchShape shape;
      if (!made[0].is_none()) shape.grid = make_dim3(made[0]);
      if (!made[1].is_none()) shape.block = make_dim3(made[1]);
      shape.shared_bytes = made[2].cast<std::uint32_t>();
      if (!made[3].is_none()) shape.cluster = make_dim3(made[3]);
      shape.cooperative = made[4].cast<bool>();
      return shape;
    });
  };
  const auto amount = [&](const char* name) -> std::function<double(const HostValues&)> {
    if (object.attr(name).is_none()) return {};
    return [object, name](const HostValues& inputs) {
      return call_holding_gil([&] { return object.attr(name)(value_list(inputs)).cast<double>(); });
    };
  };
  task.bytes = amount("bytes");
  task.flops = amount("flops");
  return task;
}

Source make_source(const std::pair<std::string, std::string>& text_and_name) {
  return {text_and_name.first, text_and_name.second, 1, {}};
}

using Text = std::pair<std::string, std::string>;

Submission make_submission(const Text& source, double timeout, std::uint64_t seed) {
  return {.source = make_source(source),
          .timeout = std::chrono::milliseconds(std::llround(timeout * 1000)),
          .seed = seed};
}

py::object judge(Judge& self, const Text& source, const py::object& functions,
                 const py::object& options, const std::optional<Text>& baseline,
                 const std::vector<std::string>& checks, double timeout, std::uint64_t seed) {
  const Task task = make_task(functions, options);
  Submission submission = make_submission(source, timeout, seed);
  submission.checks = checks;
  if (baseline) submission.baseline = make_source(*baseline);
  return text_object(without_gil([&] { return self.judge(submission, task).to_json(); }));
}

py::object profile(Judge& self, const Text& source, const py::object& functions,
                   const py::object& options, int number, double timeout, std::uint64_t seed) {
  const Task task = make_task(functions, options);
  const Submission submission = make_submission(source, timeout, seed);
  return text_object(without_gil([&] { return self.profile(submission, task, number).to_json(); }));
}

}  // namespace

void bind_judge(py::module_& m) {
  py::class_<DrawnCases, std::shared_ptr<DrawnCases>>(m, "_DrawnCases")
      .def(py::init<>())
      .def_property_readonly("bytes", &DrawnCases::bytes);
  py::class_<Judge, Unlocked<Judge>>(m, "_Judge")
      .def(py::init([](unsigned workers, std::string device) {
             return Unlocked<Judge>(new Judge({workers, std::move(device)}));
           }),
           py::arg("workers"), py::arg("device"))
      .def("judge", &judge, py::arg("source"), py::arg("functions"), py::arg("options"),
           py::arg("baseline"), py::arg("checks"), py::arg("timeout"), py::arg("seed"))
      .def("profile", &profile, py::arg("source"), py::arg("functions"), py::arg("options"),
           py::arg("case"), py::arg("timeout"), py::arg("seed"))
      .def_property_readonly("workers", &Judge::workers)
      .def_property_readonly(
          "losses", [](const Judge& self) { return without_gil([&] { return self.losses(); }); });
}

}  // namespace kernwright::python
