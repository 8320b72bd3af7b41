// A policy written in Python.
#pragma once

#include "schedule/policy.h"

#include <pybind11/pybind11.h>
#include <memory>

namespace kernwright::python {

/// The policy of that name, or an object with `choose(candidates, load)` as one. Throws
/// ArgumentError for anything else, NameNotFound for an unknown name.
std::shared_ptr<schedule::Policy> policy_argument(pybind11::handle value);

/// For the garbage collector: the object of a policy of Python. A dropped policy chooses nothing
/// from then on. The GIL must be held.
int visit_policy(const schedule::Policy& policy, visitproc visit, void* arg);
void drop_policy(schedule::Policy& policy) noexcept;

}  // namespace kernwright::python
