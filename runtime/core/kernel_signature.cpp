// Spelling and parameter layout of a kernel's signature.
#include "core/kernel_signature.h"

#include "base/format.h"

#include <algorithm>

namespace kernwright {
namespace {

constexpr std::size_t kPointerSize = 8;
constexpr std::size_t kLargestVectorAlignment = 16;
constexpr std::size_t kLargestGuessedAlignment = 8;

std::size_t natural_size(const Parameter& parameter) noexcept {
  if (parameter.kind == ParameterKind::pointer) return kPointerSize;
  if (!parameter.scalar || parameter.kind == ParameterKind::aggregate) return 0;
  const std::size_t element = scalar_size(*parameter.scalar);
  return parameter.kind == ParameterKind::vector ? element * parameter.lanes : element;
}

std::size_t lowest_bit(std::size_t value) noexcept { return value & (~value + 1); }

}  // namespace

std::size_t parameter_alignment(const Parameter& parameter) noexcept {
  if (parameter.alignment != 0) return parameter.alignment;
  const std::size_t size = parameter.size != 0 ? parameter.size : natural_size(parameter);
  if (size == 0) return 1;
  if (parameter.kind == ParameterKind::aggregate) {
    return std::min(lowest_bit(size), kLargestGuessedAlignment);
  }
  // Three lanes have no common alignment: 12 bytes of float3 are aligned as a float is. The lowest
  // bit of the size gives that, and the whole size for one, two and four lanes.
  return std::min(lowest_bit(size), kLargestVectorAlignment);
}

std::string KernelSignature::to_string() const {
  std::string text = name;
  text += '(';
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i != 0) text += ", ";
    text += parameters[i].type;
    if (!parameters[i].name.empty()) text += ' ' + parameters[i].name;
  }
  text += ')';
  return text;
}

void KernelSignature::lay_out() {
  std::size_t end = 0;
  for (Parameter& parameter : parameters) {
    if (parameter.size == 0) parameter.size = natural_size(parameter);
    const std::size_t alignment = parameter_alignment(parameter);
    parameter.offset = (end + alignment - 1) / alignment * alignment;
    end = parameter.offset + parameter.size;
  }
}

void KernelSignature::add_untyped(std::size_t size, std::size_t alignment) {
  const bool is_number = size == 1 || size == 2 || size == 4 || size == 8;
  Parameter parameter;
  parameter.name = format("arg{}", parameters.size() + 1);
  parameter.type = format("{} byte{}", size, size == 1 ? "" : "s");
  parameter.kind = is_number ? ParameterKind::untyped : ParameterKind::aggregate;
  parameter.size = size;
  parameter.alignment = alignment;
  parameters.push_back(std::move(parameter));
}

}  // namespace kernwright
