// Checks, the result's memory, and overlap.
#include "kernels_src/elementwise/elementwise.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/elementwise/call.h"
#include "kernels_src/elementwise/layout.h"
#include "kernels_src/operands.h"

#include <array>
#include <cstdint>

namespace kernwright::kernels {
namespace {

/// The arrays among the operands; the first array decides the device of all.
class Arrays {
 public:
  Arrays(Operation operation, std::span<const Operand> operands) {
    for (const Operand& operand : operands) {
      if (operand.array != nullptr && count_ < kMaxOperands) arrays_[count_++] = operand.array;
    }
    if (count_ == 0) {
      throw InvalidArgument(
          format("{}() needs an array among its operands; make one of a number "
                 "with kernwright.asarray()",
                 info(operation).name));
    }
    for (std::size_t i = 1; i < count_; ++i) require_beside(*arrays_[i]);
  }
  Device& device() const { return arrays_[0]->device(); }
  std::span<const Array* const> all() const { return {arrays_.data(), count_}; }
  void require_beside(const Array& other) const {
    if (&other.device() == &device()) return;
    throw InvalidArgument(
        format("all arrays must be on the same device: {} and {}; copy one with .to(device)",
               arrays_[0]->identify(), other.identify()));
  }

 private:
  std::array<const Array*, kMaxOperands> arrays_{};
  std::size_t count_ = 0;
};

bool memory_overlaps(const Array& a, const Array& b) {
  const ByteRange ra = byte_range(a.shape(), a.strides(), scalar_size(a.type()));
  const ByteRange rb = byte_range(b.shape(), b.strides(), scalar_size(b.type()));
  const auto begin = [](const Array& x, std::int64_t offset) {
    return x.address() + static_cast<CUdeviceptr>(offset);
  };
  return begin(a, ra.low) < begin(b, rb.high) && begin(b, rb.low) < begin(a, ra.high);
}

/// Whether element i of both arrays is one place in memory, for all i.
bool same_view(const Array& a, const Array& b) {
  return a.address() == b.address() && a.shape() == b.shape() && a.strides() == b.strides() &&
         scalar_size(a.type()) == scalar_size(b.type());
}

void copy_away(CallInput& input, const Stream& stream) {
  input.call_copy = copy(*input.array, stream);
  input.array = &*input.call_copy;
}

void require_result(const Array& result, const ElementwiseCall& call, const Shape& shape) {
  const char* name = info(call.operation).name;
  if (result.read_only()) {
    throw InvalidArgument(format("cannot write to {}: it is read-only", result.identify()));
  }
  if (!broadcasts_to(shape, result.shape())) {
    throw InvalidArgument(format(
        "Incompatible dimensions: the result of {}() has the shape {}, and goes into an array "
        "of shape {}",
        name, shape_to_string(shape), shape_to_string(result.shape())));
  }
  if (!can_cast_same_kind(call.result, result.type())) {
    throw ArgumentError(format(
        "the result of {}() is {}, which does not go into an array of {}: make a new array, or "
        "convert with astype()",
        name, scalar_name(call.result), scalar_name(result.type())));
  }
}

}  // namespace

Array elementwise(Operation operation, std::span<const Operand> operands, const Stream& stream) {
  const Arrays arrays(operation, operands);
  ElementwiseCall call = settle_call(operation, operands);
  Device& device = arrays.device();
  Array result = Array::empty(device, broadcast_shape(arrays.all()), call.result, stream);
  if (result.size() == 0) return result;
  launch_call(call, result, stream);
  return result;
}

void write_elementwise(const Array& result, Operation operation, std::span<const Operand> operands,
                       const Stream& stream) {
  const Arrays arrays(operation, operands);
  arrays.require_beside(result);
  ElementwiseCall call = settle_call(operation, operands);
  require_result(result, call, broadcast_shape(arrays.all()));
  if (result.size() == 0) return;
  for (CallInput& input : call.inputs) {
    const bool clash = input.array != nullptr && input.array->size() != 0 &&
                       !same_view(*input.array, result) && memory_overlaps(*input.array, result);
    if (clash) copy_away(input, stream);
  }
  launch_call(call, result, stream);
}

Array as_int32(const Array& ids, const Stream& stream) {
  if (ids.type() == ScalarType::int32) return contiguous(ids, stream);
  const Array result = Array::empty(ids.device(), ids.shape(), ScalarType::int32, stream);
  const std::array<Operand, 3> operands = {
      Operand{&ids}, Operand{nullptr, ScalarOperand::make(std::int64_t{INT32_MIN})},
      Operand{nullptr, ScalarOperand::make(std::int64_t{INT32_MAX})}};
  write_elementwise(result, Operation::clip, operands, stream);
  return result;
}

}  // namespace kernwright::kernels
