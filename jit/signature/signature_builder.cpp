// Makes KernelSignatures.
#include "jit/signature/signature_builder.h"

#include <algorithm>

#include "base/errors.h"
#include "base/format.h"
#include "jit/signature/cuda_types.h"
#include "jit/signature/probe.h"
#include "jit/signature/ptx_parameters.h"

namespace kernwright {
namespace {

/// Names for `count` parameters: the source's where their number fits, a pack spread over the rest.
std::vector<std::string> parameter_names(const KernelDeclaration* declaration, std::size_t count) {
  std::vector<std::string> names;
  if (declaration != nullptr) {
    const auto& declared = declaration->parameter_names;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      const bool is_pack = declared[i].ends_with("...");
      if (!is_pack) {
        names.push_back(declared[i]);
        continue;
      }
      const std::size_t others = declared.size() - 1;
      const std::string stem = declared[i].substr(0, declared[i].size() - 3);
      for (std::size_t k = 0; others + k < count; ++k) names.push_back(stem + std::to_string(k));
    }
  }
  if (names.size() != count) names.assign(count, std::string());
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i].empty()) names[i] = "arg" + std::to_string(i + 1);
  }
  return names;
}

[[noreturn]] void refuse_reference(const KernelSignature& signature, std::size_t index,
                                   const KernelDeclaration* declaration) {
  Diagnostic diagnostic;
  diagnostic.line = declaration == nullptr ? 0 : declaration->line;
  const Parameter& parameter = signature.parameters[index];
  diagnostic.message = format("parameter {} ({} {}) of kernel {} is a reference", index + 1,
                              parameter.type, parameter.name, signature.name);
  diagnostic.hint = "a launch copies arguments by value: take a pointer or a value instead";
  throw CompileError(diagnostic.message, {diagnostic}, {}, {}, {});
}

/// A number of which only the size is known: integers count as signed.
std::optional<ScalarType> number_of_size(const PtxParameter& declared) {
  switch (declared.size) {
    case 1:
      return ScalarType::int8;
    case 2:
      return ScalarType::int16;
    case 4:
      return declared.is_floating ? ScalarType::float32 : ScalarType::int32;
    case 8:
      return declared.is_floating ? ScalarType::float64 : ScalarType::int64;
    default:
      return std::nullopt;
  }
}

/// What the PTX and the spelling in the source, if any, say about a parameter.
Parameter guess(const PtxParameter& declared, const std::string& spelling) {
  Parameter result;
  result.size = declared.size;
  result.alignment = declared.alignment;
  result.type = spelling.empty() ? format("{} bytes", declared.size) : spelling;
  const bool spelled_pointer = spelling.find_first_of("*[") != std::string::npos;
  if (declared.is_pointer || (spelled_pointer && declared.size == sizeof(void*))) {
    result.kind = ParameterKind::pointer;
    return result;
  }
  auto scalar = scalar_from_spelling(spelling);
  if (!scalar || scalar_size(*scalar) != declared.size) scalar = number_of_size(declared);
  const bool is_number = !declared.is_bytes && scalar;
  result.kind = is_number ? ParameterKind::scalar : ParameterKind::aggregate;
  if (is_number) result.scalar = scalar;
  return result;
}

}  // namespace

std::string base_name(std::string_view expression) {
  while (!expression.empty() && (expression.front() == ' ' || expression.front() == '&' ||
                                 expression.front() == ':' || expression.front() == '\t')) {
    expression.remove_prefix(1);
  }
  std::string result;
  for (const char c : expression.substr(0, expression.find('<'))) {
    if (c != ' ' && c != '\t') result += c;
  }
  return result;
}

const KernelDeclaration* find_declaration(std::string_view expression,
                                          std::span<const KernelDeclaration> declared) {
  const std::string name = base_name(expression);
  const auto found = std::find_if(declared.begin(), declared.end(),
                                  [&](const KernelDeclaration& k) { return k.name == name; });
  return found == declared.end() ? nullptr : &*found;
}

KernelSignature signature_from_probe(std::string name, std::string lowered,
                                     std::string_view probe_answer,
                                     const KernelDeclaration* declaration) {
  KernelSignature signature{std::move(name), std::move(lowered), {}};
  const std::vector<ProbedParameter> probed = read_kernel_probe(probe_answer);
  const std::vector<std::string> names = parameter_names(declaration, probed.size());
  for (std::size_t i = 0; i < probed.size(); ++i) {
    signature.parameters.push_back(probed[i].parameter);
    signature.parameters.back().name = names[i];
    if (probed[i].is_reference) refuse_reference(signature, i, declaration);
  }
  return signature;
}

KernelSignature signature_from_ptx(std::string name, std::string lowered, std::string_view ptx,
                                   const KernelDeclaration* declaration) {
  KernelSignature signature{std::move(name), std::move(lowered), {}};
  const auto declared = ptx_parameters(ptx, signature.lowered);
  if (!declared) {
    throw NameNotFound(format("{} is no __global__ function of the source", signature.name));
  }
  const std::vector<std::string> names = parameter_names(declaration, declared->size());
  const bool spelled = declaration != nullptr && !declaration->is_template &&
                       declaration->parameter_types.size() == declared->size();
  for (std::size_t i = 0; i < declared->size(); ++i) {
    signature.parameters.push_back(
        guess((*declared)[i], spelled ? declaration->parameter_types[i] : std::string()));
    signature.parameters.back().name = names[i];
  }
  signature.lay_out();
  return signature;
}

}  // namespace kernwright
