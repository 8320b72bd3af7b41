// Shared by the bindings of the kernel library: array arguments, the stream for work.
#pragma once

#include "array/array.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "kernels_src/epilogue/product_epilogue.h"
#include "memory/allocation_site.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {

/// Our Array, or a view of another library's device array. Throws ArgumentError with the argument's
/// name for anything else, with advice for host arrays and numbers.
Array array_operand(py::handle value, const char* name);
/// The same; nothing for None.
std::optional<Array> optional_operand(py::handle value, const char* name);
/// The activation of a layer; nothing for an empty name. Throws ArgumentError for a name that
/// layers do not take.
std::optional<kernels::ActivationCall> layer_activation(const std::string& name);
/// What follows a layer's product.
kernels::ProductEpilogue layer_epilogue(py::handle bias, py::handle residual,
                                        const std::string& activation);
/// Whether the precision of a product allows tf32: "tf32" does, "float32" and nothing do not.
/// Throws ArgumentError for other names.
bool is_tf32(const std::optional<std::string>& precision);
/// Throws InvalidArgument ("same device") unless all are on the device of the first.
void require_same_device(const std::vector<const Array*>& arrays);

/// Calls `work(stream)` without the GIL, where `stream` is the current one of the device of
/// `array`; what it allocates is charged to the caller's line of Python.
template <typename Work>
auto on_current_stream(const Array& array, Work&& work) {
  const Stream stream = current_stream(array.device());
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  return std::forward<Work>(work)(stream);
}

}  // namespace kernwright::python
