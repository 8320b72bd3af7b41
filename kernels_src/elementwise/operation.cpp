// The table of operations, and their types.
#include "kernels_src/elementwise/operation.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/elementwise/promotion.h"

#include <string>

namespace kernwright::kernels {
namespace {

using Info = OperationInfo;

constexpr OperationInfo kOperations[] = {
#define KW_OPERATION(name, functor, arity, domain, booleans, complexes, result, code) \
  {#name,                                                                             \
   #functor,                                                                          \
   arity,                                                                             \
   Info::Domain::domain,                                                              \
   Info::Booleans::booleans,                                                          \
   Info::Complexes::complexes,                                                        \
   Info::Result::result,                                                              \
   Info::Code::code},
#include "kernels_src/elementwise/operations.def"
#undef KW_OPERATION
};

[[noreturn]] void refuse_types(const OperationInfo& operation, const ScalarType* types) {
  std::string names(scalar_name(types[0]));
  for (int i = 1; i < operation.arity; ++i) {
    names += i + 1 == operation.arity ? " and " : ", ";
    names += scalar_name(types[i]);
  }
  const char* help = "convert with astype()";
  if (operation.domain == Info::Domain::whole) {
    help = "it takes integers and booleans";
  } else if (operation.domain == Info::Domain::exponent && !is_complex(types[0])) {
    help = "its second operand holds integers of at most 64 bits with a sign";
  } else if (operation.booleans == Info::Booleans::REFUSE) {
    help = "for booleans use bitwise_xor() or logical_not(), or convert with astype()";
  } else if (operation.complexes == Info::Complexes::NO) {
    help = "it takes real numbers";
  }
  throw ArgumentError(format("{}() is not defined for {}: {}", operation.name, names, help));
}

bool is_whole(ScalarType type) {
  return type == ScalarType::boolean || is_signed_integer(type) || is_unsigned_integer(type);
}

/// NumPy's result type for functions of integers.
ScalarType floating_for(ScalarType type) {
  if (!is_whole(type)) return type;
  switch (scalar_size(type)) {
    case 1:
      return ScalarType::float16;
    case 2:
      return ScalarType::float32;
    default:
      return ScalarType::float64;
  }
}

ScalarType computed_in(const OperationInfo& operation, ScalarType type, const ScalarType* types) {
  if (is_complex(type) && operation.complexes == Info::Complexes::NO) {
    refuse_types(operation, types);
  }
  if (type == ScalarType::boolean) {
    if (operation.booleans == Info::Booleans::REFUSE) refuse_types(operation, types);
    if (operation.booleans == Info::Booleans::INT8) type = ScalarType::int8;
  }
  switch (operation.domain) {
    case Info::Domain::floating:
      return floating_for(type);
    case Info::Domain::quotient:
      return is_whole(type) ? ScalarType::float64 : type;
    case Info::Domain::widest:
      return is_complex(type) ? ScalarType::complex128 : ScalarType::float64;
    case Info::Domain::whole:
      if (!is_whole(type)) refuse_types(operation, types);
      return type;
    default:
      return type;
  }
}

/// Integers of both signs that only float64 would hold are compared as integers.
bool compare_exactly(const OperationInfo& operation, const ScalarType* types) {
  return operation.arity == 2 && operation.result == Info::Result::BOOL &&
         ((types[0] == ScalarType::uint64 && is_signed_integer(types[1])) ||
          (types[1] == ScalarType::uint64 && is_signed_integer(types[0])));
}

ScalarType result_type(const OperationInfo& operation, ScalarType type) {
  if (operation.result == Info::Result::BOOL) return ScalarType::boolean;
  if (operation.result == Info::Result::BYTE) return ScalarType::uint8;
  return operation.result == Info::Result::PART ? real_part_type(type) : type;
}

/// The types of a number and of the integer that scales it.
OperationTypes exponent_types(const OperationInfo& operation, const ScalarType* types) {
  if (is_complex(types[0]) || !is_whole(types[1]) || types[1] == ScalarType::uint64) {
    refuse_types(operation, types);
  }
  const ScalarType type = floating_for(types[0]);
  return {.operands = {type, ScalarType::int64}, .result = type};
}

}  // namespace

const OperationInfo& info(Operation operation) noexcept {
  return kOperations[static_cast<std::size_t>(operation)];
}

std::optional<Operation> operation_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kOperations); ++i) {
    if (name == kOperations[i].name) return static_cast<Operation>(i);
  }
  return std::nullopt;
}

OperationTypes operation_types(Operation which, const ScalarType* types) {
  const OperationInfo& operation = info(which);
  OperationTypes result;
  if (operation.domain == Info::Domain::logical) {
    result.operands.fill(ScalarType::boolean);
    result.result = ScalarType::boolean;
    return result;
  }
  if (operation.domain == Info::Domain::exponent) return exponent_types(operation, types);
  if (compare_exactly(operation, types)) {
    for (std::size_t i = 0; i < 2; ++i) {
      result.operands[i] = types[i] == ScalarType::uint64 ? types[i] : ScalarType::int64;
    }
    result.result = ScalarType::boolean;
    return result;
  }
  const int first = operation.domain == Info::Domain::choice ? 1 : 0;
  ScalarType type = types[first];
  for (int i = first + 1; i < operation.arity; ++i) type = promote(type, types[i]);
  type = computed_in(operation, type, types);
  result.operands.fill(type);
  if (first == 1) result.operands[0] = ScalarType::boolean;
  result.result = result_type(operation, type);
  return result;
}

}  // namespace kernwright::kernels
