// One call of an operation before its launch: types settled, numbers encoded.
#pragma once

#include "kernels_src/elementwise/elementwise.h"

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace kernwright::kernels {

/// The kernel's input for an operand.
struct CallInput {
  std::optional<Array> call_copy;  ///< a copy made for the call
  const Array* array = nullptr;    ///< null: the number in `value`
  ScalarType type{};               ///< of the array's elements
  ScalarType computed{};           ///< what it is computed in
  alignas(16) std::array<std::byte, 16> value{};
};

struct ElementwiseCall {
  Operation operation{};
  int arity = 0;
  ScalarType result{};
  std::array<CallInput, kMaxOperands> inputs{};
};

/// Settles types and numbers. Throws as elementwise() does.
ElementwiseCall settle_call(Operation operation, std::span<const Operand> operands);

/// Queues the kernel. The shapes fit, and nothing overlaps but equal views.
void launch_call(const ElementwiseCall& call, const Array& result, const Stream& stream);

}  // namespace kernwright::kernels
