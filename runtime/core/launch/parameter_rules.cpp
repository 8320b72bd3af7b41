// The rules of arguments and their words.
#include "core/launch/parameter_rules.h"

#include "base/format.h"
#include "core/device.h"

#include <algorithm>

namespace kernwright {
namespace {

// Launches ask for these: nothing here touches the heap.

/// How often `part` stands outside of template arguments, which tell nothing of the pointer.
int count_outside(std::string_view type, std::string_view part) noexcept {
  int depth = 0, count = 0;
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (type[i] == '<') ++depth;
    if (type[i] == '>') --depth;
    if (depth == 0 && type.substr(i).starts_with(part)) ++count;
  }
  return count;
}

/// "void*" but for qualifiers and blanks.
bool is_void_pointer(std::string_view type) noexcept {
  std::string_view rest = "void*";
  while (!type.empty()) {
    std::size_t skip = type[0] == ' ' ? 1 : 0;
    for (const std::string_view qualifier : {"const", "volatile", "__restrict__"}) {
      if (type.starts_with(qualifier)) skip = qualifier.size();
    }
    if (skip == 0) {
      if (rest.empty() || type[0] != rest[0]) return false;
      rest.remove_prefix(1);
      skip = 1;
    }
    type.remove_prefix(skip);
  }
  return rest.empty();
}

}  // namespace

Pointee parameter_pointee(const Parameter& parameter) noexcept {
  if (parameter.kind != ParameterKind::pointer) return Pointee::anything;
  if (parameter.any_byte_pointee) return Pointee::one_byte;
  if (parameter.scalar) return Pointee::numbers;
  if (is_void_pointer(parameter.type)) return Pointee::anything;
  return count_outside(parameter.type, "*") > 1 ? Pointee::addresses : Pointee::structs;
}

bool is_function_pointer(const Parameter& parameter) noexcept {
  return count_outside(parameter.type, "(*)(") > 0;
}

std::optional<ScalarType> find_complex_type(const Parameter& parameter) noexcept {
  if (parameter.lanes != 2) return std::nullopt;
  if (parameter.scalar == ScalarType::float32) return ScalarType::complex64;
  if (parameter.scalar == ScalarType::float64) return ScalarType::complex128;
  return std::nullopt;
}

bool takes_elements(const Parameter& parameter, Pointee pointee, ScalarType type) noexcept {
  switch (pointee) {
    case Pointee::anything:
      return true;
    case Pointee::numbers:
      return type == *parameter.scalar || type == find_complex_type(parameter);
    case Pointee::addresses:
      return type == ScalarType::uint64 || type == ScalarType::int64;
    case Pointee::one_byte:
    case Pointee::structs:
      return scalar_size(type) == 1;
  }
  return false;
}

ScalarType wanted_type(const Parameter& parameter, Pointee pointee) noexcept {
  if (pointee == Pointee::numbers) return *parameter.scalar;
  return pointee == Pointee::addresses ? ScalarType::uint64 : ScalarType::uint8;
}

std::string wanted_elements(const Parameter& parameter, Pointee pointee) {
  switch (pointee) {
    case Pointee::numbers:
      return std::string(scalar_name(*parameter.scalar));
    case Pointee::addresses:
      return "uint64 (addresses)";
    case Pointee::structs:
      return "uint8 (the bytes of structs)";
    default:
      return "elements of 1 byte";
  }
}

MemoryFit memory_fit(const Parameter& parameter, Pointee pointee,
                     const MemoryArgument& memory) noexcept {
  if (memory.read_only && !parameter.pointee_const) return MemoryFit::read_only;
  const std::size_t size = parameter.pointee_size;
  if (size <= 1 || pointee == Pointee::anything) return MemoryFit::exact;
  if (memory.bytes && *memory.bytes % size != 0) return MemoryFit::partial_element;
  const bool is_power = (size & (size - 1)) == 0;
  const std::size_t alignment =
      parameter.lanes > 1 && is_power ? std::min<std::size_t>(size, 16) : 1;
  return memory.address % alignment == 0 ? MemoryFit::exact : MemoryFit::misaligned;
}

std::string_view name_in_text(const Parameter& parameter) noexcept {
  return parameter.name.empty() ? "it" : std::string_view(parameter.name);
}

std::string wants_text(const Parameter& parameter, std::string_view what) {
  return format("{} wants {}", name_in_text(parameter), what);
}

std::string wrong_elements_text(const Parameter& parameter, Pointee pointee, std::string_view got) {
  return format("got {}: {}", got, wants_text(parameter, wanted_elements(parameter, pointee)));
}

std::string memory_text(const Parameter& parameter, const MemoryArgument& memory, MemoryFit fit,
                        std::string_view noun) {
  const std::string_view article = noun == "array" ? "an " : "";
  switch (fit) {
    case MemoryFit::read_only:
      return format(
          "got {}{} that is read-only: the kernel may write to {}; declare it const or "
          "pass {}{} that may be written",
          article, noun, name_in_text(parameter), article, noun);
    case MemoryFit::partial_element:
      return format("got {}{} of {} bytes, no multiple of the {} bytes of an element: pad {}",
                    article, noun, memory.bytes.value_or(0), parameter.pointee_size,
                    name_in_text(parameter));
    case MemoryFit::misaligned:
      return format(
          "got {}{} at address {:#x}, not aligned to {} bytes: {}", article, noun, memory.address,
          std::min<std::size_t>(parameter.pointee_size, 16),
          parameter.pointee_const ? "pass a copy" : "launch on an array of its own and copy back");
    case MemoryFit::exact:
      break;
  }
  return format("got {}{}", article, noun);
}

std::string memory_problem(const Parameter& parameter, Pointee pointee,
                           const MemoryArgument& memory) {
  if (memory.type && !takes_elements(parameter, pointee, *memory.type)) {
    return wrong_elements_text(parameter, pointee,
                               format("memory of {}", scalar_name(*memory.type)));
  }
  const MemoryFit fit = memory_fit(parameter, pointee, memory);
  return fit == MemoryFit::exact ? std::string() : memory_text(parameter, memory, fit, "memory");
}

std::string other_device_text(std::string_view got, const Device& found, const Device& wanted) {
  return format("got {} on {}, but the launch is on {}", got, found.identify(), wanted.identify());
}

std::string wrong_size_text(const Parameter& parameter, std::string_view got, std::size_t size) {
  return format("got {} of {} bytes: {}", got, size,
                wants_text(parameter, format("{} bytes", parameter.size)));
}

std::string wrong_kind_text(const Parameter& parameter, std::string_view got, ScalarType type) {
  return format("got {}: {}", got, wants_text(parameter, number_family(type)));
}

std::string out_of_range_text(const Parameter& parameter, std::string_view number,
                              ScalarType type) {
  return format("got {}, outside {}; {}", number, range_text(type),
                wants_text(parameter, "a smaller number or a wider type"));
}

std::string out_of_range_text(const Parameter& parameter, std::string_view number) {
  return format("got {}: {}", number,
                wants_text(parameter, format("an integer of {} bits", 8 * parameter.size)));
}

std::string at_parameter(const KernelSignature& signature, std::size_t index,
                         std::string_view problem) {
  return format("{}: parameter {} ({}) {}", signature.to_string(), index + 1,
                signature.parameters[index].type, problem);
}

}  // namespace kernwright
