// Reading __cuda_array_interface__, whose fields anybody may have filled with anything.
#pragma once

#include "array/array.h"

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// A view of the memory that value.__cuda_array_interface__ describes, held alive by `value`; work
/// of `stream` (empty: legacy) is ordered after the producer's. Throws ArgumentError, which names
/// the field, for what the protocol does not allow, for masks, and for memory of another device.
Array adopt_interface(py::handle value, Device& device, const Stream& stream);

}  // namespace kernwright::python
