// A policy written in Python.
#pragma once

#include "schedule/policy.h"

#include <pybind11/pybind11.h>
#include <memory>

namespace kernwright::python {

/// The policy of that name, or an object with `choose(candidates, load)` as one. Throws
/// ArgumentError for anything else, NameNotFound for an unknown name.
std::shared_ptr<schedule::Policy> policy_argument(pybind11::handle value);

}  // namespace kernwright::python
