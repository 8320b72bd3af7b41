// The elementwise operations: names, and the types of operands and results.
#pragma once

#include "base/scalar_type.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kernwright::kernels {

/// The rows of operations.def, under the names that Python gives them.
enum class Operation : std::uint8_t {
#define KW_OPERATION(name, ...) name,
#include "kernels_src/elementwise/operations.def"
#undef KW_OPERATION
};

/// The columns of operations.def, which explains them.
struct OperationInfo {
  enum class Domain : std::uint8_t {
    same,
    floating,
    quotient,
    whole,
    logical,
    choice,
    widest,
    exponent
  };
  enum class Booleans : std::uint8_t { KEEP, REFUSE, INT8 };
  enum class Complexes : std::uint8_t { NO, YES };
  enum class Result : std::uint8_t { SAME, BOOL, PART, BYTE };
  enum class Code : std::uint8_t { LIGHT, HEAVY };
  const char* name;
  const char* functor;
  int arity;
  Domain domain;
  Booleans booleans;
  Complexes complexes;
  Result result;
  Code code;
};

const OperationInfo& info(Operation operation) noexcept;
std::optional<Operation> operation_from_name(std::string_view name) noexcept;

inline constexpr std::size_t kMaxOperands = 3;

/// The types of one call: the type each operand is computed in, and the type of the result.
struct OperationTypes {
  std::array<ScalarType, kMaxOperands> operands{};
  ScalarType result{};
};

/// `types`: of the arity's operands, numbers without a type of their own (see Weak) promoted
/// already. Throws ArgumentError, with the types, when the operation is not defined for them.
OperationTypes operation_types(Operation operation, const ScalarType* types);

}  // namespace kernwright::kernels
