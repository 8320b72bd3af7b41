// Checks values against parameters, and lays numbers out as the kernel takes them.
#include "tune/judge/packing.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/errors.h"
#include "base/format.h"
#include "base/small_float.h"
#include "core/launch/parameter_rules.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

using Kind = HostValue::Kind;

template <typename T>
std::vector<std::byte> value_bytes(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<std::byte> pack_real(ScalarType type, double value, const std::string& what) {
  if (type == ScalarType::float64) return value_bytes(value);
  if (type == ScalarType::float32) return value_bytes(static_cast<float>(value));
  if (!is_floating(type)) throw InvalidArgument(format("{} takes no floating-point number", what));
  std::vector<std::byte> bytes(scalar_size(type));
  encode_small_float(value, type, bytes.data());
  return bytes;
}

std::vector<std::byte> pack_integer(ScalarType type, std::int64_t value, const std::string& what) {
  if (is_floating(type)) return pack_real(type, static_cast<double>(value), what);
  const std::size_t size = scalar_size(type);
  if (is_complex(type)) throw InvalidArgument(format("{} takes no integer", what));
  const auto bits = 8 * static_cast<unsigned>(size);
  const bool is_signed = is_signed_integer(type);
  const bool fits = type == ScalarType::boolean ? value == 0 || value == 1
                    : bits == 64                ? true
                    : is_signed                 ? value >= -(std::int64_t{1} << (bits - 1)) &&
                                      value < std::int64_t{1} << (bits - 1)
                                : value >= 0 && value < std::int64_t{1} << bits;
  if (!fits) throw InvalidArgument(format("{} cannot hold {}", what, value));
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &value, size);
  return bytes;
}

std::string parameter_name(const KernelSignature& signature, std::size_t index) {
  const Parameter& parameter = signature.parameters[index];
  return format("argument {} ({} {})", index, parameter.type, parameter.name);
}

bool takes_elements(const Parameter& parameter, ScalarType dtype) {
  if (!parameter.scalar) return true;
  if (*parameter.scalar == dtype || find_complex_type(parameter) == dtype) return true;
  const std::size_t size = scalar_size(dtype);
  if (parameter.any_byte_pointee) return size == 1;
  // bool and its bytes, signed and unsigned alike only where the text says so.
  return *parameter.scalar == ScalarType::boolean && size == 1;
}

void check_value(const std::string& what, const Parameter& parameter, const HostValue& value) {
  const bool is_pointer = parameter.kind == ParameterKind::pointer;
  if (value.kind == Kind::null || value.is_array()) {
    if (!is_pointer)
      throw InvalidArgument(format("{} takes a value, not {}", what, value.to_string()));
    if (value.is_array() && !takes_elements(parameter, value.dtype)) {
      throw InvalidArgument(format("{} points to {}, and the array is {}", what,
                                   scalar_name(*parameter.scalar), value.to_string()));
    }
    return;
  }
  if (is_pointer)
    throw InvalidArgument(format("{} takes an array, not {}", what, value.to_string()));
  static_cast<void>(pack(parameter, value));
}

}  // namespace

std::vector<std::byte> pack(const Parameter& parameter, const HostValue& value) {
  const std::string what = format("{} {}", parameter.type, parameter.name);
  if (value.kind == Kind::bytes) {
    if (value.bytes.size() != parameter.size) {
      throw InvalidArgument(
          format("{} has {} bytes, the value {}", what, parameter.size, value.bytes.size()));
    }
    return value.bytes;
  }
  if (parameter.kind != ParameterKind::scalar || !parameter.scalar) {
    throw InvalidArgument(format("{} takes bytes of a struct, not {}", what, value.to_string()));
  }
  return value.kind == Kind::integer ? pack_integer(*parameter.scalar, value.integer, what)
                                     : pack_real(*parameter.scalar, value.real, what);
}

void check_values(const KernelSignature& signature, const HostValues& values) {
  if (values.size() != signature.parameters.size()) {
    throw InvalidArgument(format("{} takes {} arguments, and the task's inputs are {}",
                                 signature.to_string(), signature.parameters.size(),
                                 values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    check_value(parameter_name(signature, i), signature.parameters[i], values[i]);
  }
}

void check_writable(const KernelSignature& signature, const HostCase& host_case) {
  for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
    const auto& expected = host_case.expected[i];
    if (!expected || !signature.parameters[i].pointee_const) continue;
    const auto different = compare(host_case.inputs[i], *expected, {});
    if (!different) continue;
    throw InvalidArgument(
        format("case {} (seed {}), {}: it is const, so a kernel leaves it as it is, and the "
               "reference expects another value: {} {} before and {} afterwards; return None for "
               "it, or take the const out of the signature",
               host_case.number, host_case.seed, parameter_name(signature, i),
               different->place.empty() ? "it is" : different->place + " is", different->got,
               different->expected));
  }
}

std::string signature_difference(const KernelSignature& found, const KernelSignature& declared) {
  const auto parameter_types = [](const KernelSignature& signature) {
    std::string text;
    for (const Parameter& parameter : signature.parameters) {
      text += (text.empty() ? "" : ", ") + parameter.type;
    }
    return "(" + text + ")";
  };
  if (parameter_types(found) == parameter_types(declared)) return "";
  return format("the task wants {}{}, and the text has {}{}", found.name, parameter_types(declared),
                found.name, parameter_types(found));
}

std::string signature_source(const Task& task) {
  std::string parameters = task.signature;
  const std::size_t open = parameters.find('(');
  const std::size_t close = parameters.rfind(')');
  // "void saxpy(float a, ...)" as well as the parameters alone.
  if (open != std::string::npos && close != std::string::npos && close > open &&
      parameters.find_first_not_of(" \t\n;", close + 1) == std::string::npos) {
    parameters = parameters.substr(open + 1, close - open - 1);
  }
  const TokenizedSource read = tokenize(parameters);
  bool is_list = read.directives.empty();
  for (const Token& token : read.tokens) {
    is_list = is_list && token.text != "{" && token.text != "}" && token.text != ";";
  }
  if (!is_list) {
    throw InvalidArgument(
        format("a task's signature is a list of parameters, not {:?}", task.signature));
  }
  std::string text;
  const auto need = [&](const char* word, const char* header) {
    if (parameters.find(word) != std::string::npos) text += format("#include <{}>\n", header);
  };
  need("half", "cuda_fp16.h");
  need("bfloat16", "cuda_bf16.h");
  need("fp8", "cuda_fp8.h");
  need("complex", "cuda/std/complex");
  need("int8_t", "cuda/std/cstdint");
  need("int16_t", "cuda/std/cstdint");
  need("int32_t", "cuda/std/cstdint");
  need("int64_t", "cuda/std/cstdint");
  if (text.find("cuda/std") != std::string::npos) text += "using namespace cuda::std;\n";
  return text + format("__global__ void declared_by_task({}) {{}}\n", parameters);
}

Dim3 default_grid(const HostValues& inputs, const Expected& expected, const Dim3& block) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < inputs.size() && i < expected.size(); ++i) {
    if (inputs[i].is_array() && expected[i]) most = std::max(most, inputs[i].elements());
  }
  const auto threads = static_cast<std::int64_t>(std::max<std::uint64_t>(1, block.count()));
  const std::int64_t blocks = std::max<std::int64_t>(1, (most + threads - 1) / threads);
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        format("an array of {} elements needs a grid and a block from the task", most));
  }
  return {static_cast<std::uint32_t>(blocks), 1, 1};
}

}  // namespace kernwright
