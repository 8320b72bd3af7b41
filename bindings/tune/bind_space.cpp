// Expressions and spaces for Python; kernwright/tune/ makes them comfortable.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/tune/bind_tune.h"
#include "tune/expression.h"

#include <pybind11/stl.h>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {

Value value_argument(py::handle value) {
  PyObject* const object = value.ptr();
  if (PyBool_Check(object)) return object == Py_True;
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (PyUnicode_Check(object)) return value.cast<std::string>();
  if (!PyLong_Check(object))
    throw ArgumentError(format("a value is a bool, int, float or str, got {}", type_name(value)));
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0)
    throw InvalidArgument(format("the value {} does not fit 64 bits", short_repr(value)));
  return static_cast<std::int64_t>(number);
}

py::object value_object(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return py::bool_(*boolean);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return py::int_(*integer);
  if (const auto* real = std::get_if<double>(&value)) return py::float_(*real);
  return text_object(std::get<std::string>(value));
}

Choices choices_argument(py::handle choices) { return choices.cast<Choices>(); }

py::tuple choices_object(const Choices& choices) {
  py::tuple result(choices.size());
  for (std::size_t i = 0; i < choices.size(); ++i) result[i] = choices[i];
  return result;
}

Space& TuneSpace::changeable() {
  if (searches > 0)
    throw InvalidArgument("the space cannot change while another thread looks for configurations");
  return space;
}

const ConfigurationSet& TuneSpace::configurations() {
  struct Counter {
    int& count;
    explicit Counter(int& its_count) : count(its_count) { ++count; }
    ~Counter() { --count; }
  } const counter(searches);
  return space.configurations([] {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const GilRelease others_run;
  });
}

namespace {

std::vector<Value> values_argument(const py::list& values) {
  std::vector<Value> result;
  for (const py::handle value : values) result.push_back(value_argument(value));
  return result;
}

ProblemValues problem_argument(const py::dict& problem) {
  ProblemValues result;
  for (const auto& [name, value] : problem)
    result.emplace(name.cast<std::string>(), value_argument(value));
  return result;
}

/// A restriction in Python: `restriction.test(choices)` gives a bool, or None where it raised;
/// `restriction.fail(choices)` raises that.
Predicate predicate_argument(const py::object& restriction) {
  Predicate predicate;
  for (const py::handle name : restriction.attr("parameters"))
    predicate.parameters.push_back(name.cast<std::string>());
  const std::shared_ptr<void> kept = keep_alive(restriction);
  const auto call = [kept](const char* method, std::span<const std::uint32_t> choices) {
    const py::handle object(static_cast<PyObject*>(kept.get()));
    return object.attr(method)(choices_object({choices.begin(), choices.end()}));
  };
  predicate.test = [call](std::span<const std::uint32_t> choices) {
    const py::object holds = call("test", choices);
    return holds.is_none()             ? PredicateResult::failed
           : holds.is(py::bool_(true)) ? PredicateResult::yes
                                       : PredicateResult::no;
  };
  predicate.fail = [call](std::span<const std::uint32_t> choices) { call("fail", choices); };
  return predicate;
}

py::object evaluate(const Expression& expression, const py::dict& values) {
  std::vector<Value> bound;
  for (const std::string& name : expression.names()) {
    const py::str key(name);
    if (!values.contains(key)) {
      std::vector<std::string> known;
      for (const auto& entry : values) known.push_back(entry.first.cast<std::string>());
      expression.bind(known);  // tells the name in question
    }
    bound.push_back(value_argument(values[key]));
  }
  std::vector<Scalar> slots;
  for (const Value& value : bound) slots.push_back(Scalar::from(value));
  return value_object(expression.evaluate(slots).to_value());
}

py::list indices_object(const std::vector<std::uint64_t>& indices) {
  py::list result;
  for (const std::uint64_t index : indices) result.append(index);
  return result;
}

py::list neighbours(TuneSpace& self, const py::tuple& choices, const std::string& kind) {
  self.configurations();
  return indices_object(
      self.space.neighbours(choices_argument(choices),
                            kind == "adjacent" ? Neighbourhood::adjacent : Neighbourhood::hamming));
}

}  // namespace

void bind_tune_space(py::module_& m) {
  py::class_<Expression>(m, "TuneExpression")
      .def(py::init([](const std::string& text) { return Expression(text); }))
      .def("names", &Expression::names)
      .def("evaluate", &evaluate);
  py::class_<TuneSpace>(m, "TuneSpace")
      .def(py::init<>())
      .def("add",
           [](TuneSpace& self, std::string name, const py::list& values) {
             self.changeable().add(std::move(name), values_argument(values));
           })
      .def("require", [](TuneSpace& self, const std::string& text,
                         std::string label) { self.changeable().require(text, std::move(label)); })
      .def("require_callable",
           [](TuneSpace& self, std::string label, const py::object& test) {
             self.changeable().require(std::move(label), predicate_argument(test));
           })
      .def("set_problem",
           [](TuneSpace& self, const py::dict& problem) {
             self.changeable().set_problem(problem_argument(problem));
           })
      .def("set_configurations",
           [](TuneSpace& self, const py::list& configurations) {
             self.changeable().set_configurations(configurations.cast<std::vector<Choices>>());
           })
      .def("copy",
           [](TuneSpace& self) {
             self.configurations();
             return std::make_unique<TuneSpace>(self.space);
           })
      .def("size", [](TuneSpace& self) { return self.configurations().size(); })
      .def("at",
           [](TuneSpace& self, std::uint64_t index) {
             return choices_object(self.configurations().at(index));
           })
      .def("find",
           [](TuneSpace& self, const py::tuple& choices) {
             return self.configurations().find(choices_argument(choices));
           })
      .def("order",
           [](TuneSpace& self) {
             const auto order = self.configurations().order();
             return choices_object({order.begin(), order.end()});
           })
      .def("sample",
           [](TuneSpace& self, std::uint64_t count, std::uint64_t seed) {
             self.configurations();
             return indices_object(self.space.sample(count, seed));
           })
      .def("neighbours", &neighbours);
}

}  // namespace kernwright::python
