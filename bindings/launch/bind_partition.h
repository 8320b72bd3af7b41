// Partitions and priorities for the classes Device and Stream of Python.
#pragma once

#include "bindings/support/current.h"
#include "core/partition.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// An integer, or the name of a priority. Throws ArgumentError, InvalidArgument.
int priority_argument(const py::object& value, Device& device);

/// Device.partitions(): sizes are a list with at most one None; the others one value, or a list.
py::list make_partitions(Device& device, const py::object& sizes, const py::object& memory,
                         const py::object& share, const py::object& streams);
/// Device.partition_rules.
py::object device_partition_rules(Device& device);

/// The class Partition.
void bind_partition(py::module_& m);

}  // namespace kernwright::python
