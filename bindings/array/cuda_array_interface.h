// Reading __cuda_array_interface__; its fields may hold anything.
#pragma once

#include "array/array.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// A view of the memory described by value.__cuda_array_interface__, held alive by `value`. Work of
/// `stream` (empty: legacy) is ordered after the producer's. Throws ArgumentError with the name of
/// the field for offences against the protocol, for masks, and for memory of another device.
Array adopt_interface(py::handle value, Device& device, const Stream& stream);

}  // namespace kernwright::python
