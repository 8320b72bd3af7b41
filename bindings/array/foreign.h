// Device arrays of other libraries: __cuda_array_interface__, DLPack, and short cuts for torch and
// CuPy.
#pragma once

#include "array/array.h"

#include <pybind11/pybind11.h>
#include <cstdint>
#include <optional>
#include <string>

namespace kernwright::python {

namespace py = pybind11;

/// A launch's facts about an array.
struct ArrayArgument {
  CUdeviceptr address = 0;
  std::optional<ScalarType> type;  ///< nothing: an unknown element type
  std::string type_text;           ///< the name of such a type
  std::size_t nbytes = 0;
  bool contiguous = true;
  bool read_only = false;
};

/// The kinds of values.
enum class Foreign { no_array, host_array, device_array };

/// Memory that `value` offers, when it is an array on `device` of another library; work of `stream`
/// (empty: legacy) is ordered after the producer's. Throws ArgumentError, worded to follow
/// "parameter 2 (const float*) got", for an array of another device.
Foreign read_foreign(py::handle value, Device& device, const Stream& stream,
                     ArrayArgument& argument);

/// A view of such an array, or nothing when `value` is no array of a device.
std::optional<Array> adopt_foreign(py::handle value, Device& device, const Stream& stream);

/// Throws ArgumentError for an array at `place` when the launch is on `device`.
[[noreturn]] void refuse_place(py::handle value, const std::string& place, const Device& device);

/// The element type of a dtype of torch, or nothing: its name then goes to `text`.
std::optional<ScalarType> torch_scalar_type(py::handle dtype, std::string& text);

/// Makes later work of `consumer` wait for what `producer` holds now. Handles 0 and 1 are the
/// legacy stream. Nothing to do when both are the same.
void order_after(Device& device, std::uintptr_t producer, const Stream& consumer);

}  // namespace kernwright::python
