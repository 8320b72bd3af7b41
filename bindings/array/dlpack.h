// DLPack: arrays of other libraries without a copy, and ours for them.
#pragma once

#include "array/array.h"

#include <pybind11/pybind11.h>
#include <cstdint>
#include <string>

namespace kernwright::python {

namespace py = pybind11;

/// The answer of x.__dlpack_device__(): a DLDeviceType and an index.
struct DLPackPlace {
  std::int32_t type = 0;
  std::int32_t index = 0;
  bool is_cuda() const noexcept;
  bool is_host() const noexcept;  ///< plain or pinned
};

/// True when `value` speaks DLPack; its place goes to `place`.
bool dlpack_place(py::handle value, DLPackPlace& place);

/// True when memory at `place` is memory of `device`.
bool is_on(const DLPackPlace& place, const Device& device);

/// "cuda:1", "host memory" or "device type 8 of DLPack": for messages.
std::string place_text(const DLPackPlace& place);

/// A view of `value` on `device`; the value must lie there. The producer orders its work before
/// `stream` (empty: the legacy stream). The producer's memory is held as long as the view. Throws
/// ArgumentError for element types unknown here.
Array adopt_dlpack(py::handle value, Device& device, const Stream& stream);

/// The DLPack capsule of `array`, held alive by it. `is_copy`: the memory is nobody else's.
py::object dlpack_capsule(const Array& array, bool versioned, bool is_copy);

DLPackPlace device_place(const Device& device);

}  // namespace kernwright::python
