// DLPack: arrays of other libraries without a copy, and ours for them.
#pragma once

#include "array/array.h"

#include <cstdint>
#include <optional>
#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

/// Device types of DLPack that matter here. The simulated device calls itself an extension device:
/// its memory must not be touched by host code or CUDA.
enum class DLPackDevice : std::int32_t { cpu = 1, cuda = 2, cuda_managed = 13, extension = 12 };

/// What x.__dlpack_device__() said.
struct DLPackPlace {
  std::int32_t type = 0;
  std::int32_t index = 0;
  bool is_cuda() const noexcept {
    return type == static_cast<std::int32_t>(DLPackDevice::cuda) ||
           type == static_cast<std::int32_t>(DLPackDevice::cuda_managed);
  }
  bool is_host() const noexcept { return type == 1 || type == 3; }  // plain or pinned
};

/// True when `value` speaks DLPack; its place goes to `place`.
bool dlpack_place(py::handle value, DLPackPlace& place);

/// True when memory at `place` is memory of `device`.
bool is_on(const DLPackPlace& place, const Device& device);

/// "cuda:1", "host memory" or "device type 8 of DLPack": for messages.
std::string place_text(const DLPackPlace& place);

/// A view of `value` on `device`, which its place must name. The producer orders its work before
/// `stream` (empty: the legacy stream). The producer's memory is held as long as the view.
/// Throws ArgumentError for element types that we do not have.
Array adopt_dlpack(py::handle value, Device& device, const Stream& stream);

/// The DLPack capsule of `array`, held alive by it; versioned when `versioned`.
py::object dlpack_capsule(const Array& array, bool versioned);

DLPackPlace place_of(const Device& device);

}  // namespace kernwright::python
