// Types of a call with numbers among its operands, by NumPy's rules for weak ones.
#include "kernels_src/elementwise/call.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <limits>

namespace kernwright::kernels {
namespace {

using Types = std::array<ScalarType, kMaxOperands>;

/// Whether the type of operand `i` decides about the types of further operands.
bool has_say(const OperationInfo& operation, std::size_t i) {
  if (operation.domain == OperationInfo::Domain::logical) return false;
  if (operation.domain == OperationInfo::Domain::exponent) return i == 0;
  return !(operation.domain == OperationInfo::Domain::choice && i == 0);
}

ScalarType operand_type(const Operand& operand) {
  return operand.array != nullptr ? operand.array->type() : operand.number.type;
}

bool is_weak(const Operand& operand) { return operand.number.weak != Weak::none; }

ScalarType wide_type(Weak number) {
  return number == Weak::real ? ScalarType::float64 : default_type(number);
}

/// Types of all operands; a weak number takes the type of the operands beside it.
Types operand_types(const OperationInfo& operation, std::span<const Operand> operands) {
  Types types{};
  std::optional<ScalarType> strong;
  Weak widest = Weak::none;
  bool on_device = false;  // numbers of the host that lie there are computed as the host does
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (is_weak(operands[i])) {
      on_device = on_device || operands[i].array != nullptr;
      if (has_say(operation, i)) widest = std::max(widest, operands[i].number.weak);
      continue;
    }
    types[i] = operand_type(operands[i]);
    if (has_say(operation, i)) strong = strong ? promote(*strong, types[i]) : types[i];
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!is_weak(operands[i])) continue;
    const Weak weak = operands[i].number.weak;
    if (!has_say(operation, i)) {
      types[i] = default_type(weak);
    } else {
      types[i] = strong      ? promote(*strong, weak)
                 : on_device ? wide_type(widest)
                             : default_type(widest);
    }
  }
  return types;
}

bool is_integer(ScalarType type) { return is_signed_integer(type) || is_unsigned_integer(type); }

bool compares(const OperationInfo& operation) {
  return operation.result == OperationInfo::Result::BOOL && operation.arity == 2 &&
         operation.domain == OperationInfo::Domain::same;
}

/// An integer of the host that lies on the device may be out of the range of the type beside it:
/// both are compared in a type that holds them.
void compare_on_device(ElementwiseCall& call, std::span<const Operand> operands) {
  if (!compares(info(call.operation))) return;
  for (std::size_t i = 0; i < 2; ++i) {
    if (operands[i].array == nullptr || operands[i].number.weak != Weak::integer) continue;
    const ScalarType beside = call.inputs[1 - i].computed;
    if (!is_integer(beside)) continue;
    const ScalarType wide = beside == ScalarType::uint64 ? ScalarType::float64 : ScalarType::int64;
    for (CallInput& input : call.inputs) input.computed = wide;
  }
}

/// x < 300 for an array of uint8: compared with infinity, so that no type must hold the number.
bool compare_beyond_range(ElementwiseCall& call, std::span<const Operand> operands) {
  if (!compares(info(call.operation))) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const ScalarOperand& number = operands[i].number;
    const bool beyond =
        is_weak(operands[i]) && operands[i].array == nullptr && number.weak == Weak::integer &&
        is_integer(call.inputs[i].computed) &&
        encode(number.value, call.inputs[i].computed, call.inputs[i].value.data()) != Fit::exact;
    if (!beyond) continue;
    for (CallInput& input : call.inputs) input.computed = ScalarType::float64;
    const double infinity = std::numeric_limits<double>::infinity();
    encode(ScalarOperand::make(number.value.negative ? -infinity : infinity), ScalarType::float64,
           call.inputs[i].value.data());
    return true;
  }
  return false;
}

/// Powers that have an operation of their own.
void simplify_power(ElementwiseCall& call, const Operand& exponent) {
  if (exponent.array != nullptr) return;
  const Number& number = exponent.number.value;
  const bool whole = is_integer(call.result);
  if (whole && number.negative) {
    throw InvalidArgument(
        format("integers to negative integer powers are not allowed, as the result has no digits "
               "behind the point: convert the {} array with astype() to a floating type",
               scalar_name(call.inputs[0].type)));
  }
  if (number.imaginary != 0) return;
  if (number.as_double() == 2) {
    call.operation = Operation::square;
    call.arity = 1;
  } else if (number.as_double() == 0.5 && !whole) {
    call.operation = Operation::sqrt;
    call.arity = 1;
  }
}

}  // namespace

ElementwiseCall settle_call(Operation which, std::span<const Operand> operands) {
  const OperationInfo& operation = info(which);
  if (operands.size() != static_cast<std::size_t>(operation.arity)) {
    throw InvalidArgument(
        format("{}() takes {} operands, got {}", operation.name, operation.arity, operands.size()));
  }
  const OperationTypes types = operation_types(which, operand_types(operation, operands).data());
  ElementwiseCall call;
  call.operation = which;
  call.arity = operation.arity;
  call.result = types.result;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    CallInput& input = call.inputs[i];
    input.array = operands[i].array;
    input.computed = types.operands[i];
    input.type = input.array != nullptr ? input.array->type() : input.computed;
  }
  compare_on_device(call, operands);
  if (compare_beyond_range(call, operands)) return call;
  if (which == Operation::pow) simplify_power(call, operands[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.arity); ++i) {
    if (call.inputs[i].array != nullptr) continue;
    encode(operands[i].number, call.inputs[i].computed, call.inputs[i].value.data());
  }
  return call;
}

ScalarType elementwise_type(Operation operation, std::span<const Operand> operands) {
  return settle_call(operation, operands).result;
}

}  // namespace kernwright::kernels
