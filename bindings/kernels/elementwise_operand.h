// Operands of elementwise operations as Python has them.
#pragma once

#include "array/array.h"
#include "kernels_src/elementwise/elementwise.h"

#include <pybind11/pybind11.h>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace kernwright::python {

namespace py = pybind11;

/// A number as C++ has it, or nothing: Python's are weak (bool is not), NumPy's and ml_dtypes' have
/// a type.
std::optional<kernels::ScalarOperand> scalar_operand(PyObject* value);

/// The operands of one call; it holds those adopted from other libraries.
class Operands {
 public:
  /// Reads a further operand: an array, a view of another library's on the same device, or a
  /// number. False for anything else. Throws ArgumentError for arrays in host memory, with advice.
  bool add(PyObject* value);
  /// The device to which arrays of other libraries must belong; where `add` got none: the current.
  void set_device(Device& device) noexcept { device_ = &device; }

  std::span<const kernels::Operand> all() const noexcept { return {operands_.data(), count_}; }
  /// The first array, or null.
  const Array* first_array() const noexcept;
  /// Whether they are numbers of the host alone, some of which lie on the device: so is the result.
  bool are_numbers() const noexcept;

 private:
  Device* device_ = nullptr;
  std::size_t count_ = 0;
  std::array<kernels::Operand, kernels::kMaxOperands> operands_{};
  std::array<std::optional<Array>, kernels::kMaxOperands> adopted_{};
};

}  // namespace kernwright::python
