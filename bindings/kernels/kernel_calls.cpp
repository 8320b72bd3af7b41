// Reading array arguments.
#include "bindings/kernels/kernel_calls.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/foreign.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "core/device.h"

namespace kernwright::python {

Array array_operand(py::handle value, const char* name) {
  if (const Array* const ours = find_array(value.ptr())) return *ours;
  Device& device = current_device();
  if (auto foreign = adopt_foreign(value, device, current_stream(device)))
    return std::move(*foreign);
  throw ArgumentError(
      format("{} is {}, and must be an array of a device: copy host data there with "
             "kernwright.asarray()",
             name, short_repr(value)));
}

std::optional<Array> optional_operand(py::handle value, const char* name) {
  if (value.is_none()) return std::nullopt;
  return array_operand(value, name);
}

std::optional<kernels::ActivationCall> layer_activation(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return kernels::product_activation(name);
}

kernels::ProductEpilogue layer_epilogue(py::handle bias, py::handle residual,
                                        const std::string& activation) {
  return {.bias = optional_operand(bias, "bias"),
          .residual = optional_operand(residual, "residual"),
          .activation = layer_activation(activation)};
}

bool is_tf32(const std::optional<std::string>& precision) {
  if (!precision || *precision == "float32") return false;
  if (*precision == "tf32") return true;
  throw ArgumentError("the precision of a product is float32, tf32 or None, not " + *precision);
}

void require_same_device(const std::vector<const Array*>& arrays) {
  for (const Array* const each : arrays) {
    if (&each->device() == &arrays.front()->device()) continue;
    throw InvalidArgument(
        format("all arrays must be on the same device: {} and {}; copy one with .to(device)",
               arrays.front()->identify(), each->identify()));
  }
}

}  // namespace kernwright::python
