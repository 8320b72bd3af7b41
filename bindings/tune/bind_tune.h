// Shared by the bindings of tuning: values between Python and C++.
#pragma once

#include "tune/space.h"

#include <pybind11/pybind11.h>
#include <memory>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// A space as Python holds it.
struct TuneSpace {
  TuneSpace() = default;
  explicit TuneSpace(const Space& its_space) : space(its_space) {}

  Space space;
  int searches = 0;  ///< running ones: they let other threads of Python run

  /// Throws InvalidArgument while another thread searches.
  Space& changeable();
  /// The valid configurations. Signals end the search, other threads run meanwhile.
  const ConfigurationSet& configurations();
};

/// The value of a bool, int, float or str. Throws ArgumentError for others, InvalidArgument beyond
/// 64 bits.
Value value_argument(py::handle value);
py::object value_object(const Value& value);
Choices choices_argument(py::handle choices);
py::tuple choices_object(const Choices& choices);

}  // namespace kernwright::python
