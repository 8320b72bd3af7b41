// Makes KernelSignatures.
#include "jit/signature/signature_builder.h"

#include <algorithm>
#include <cstdint>

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

/// Types of the parameters as the lowered name spells them; nothing where it does not.
std::vector<TypeRef> types_in_name(const std::string& lowered, std::size_t count) {
  if (!lowered.starts_with("_Z")) return {};
  try {
    std::vector<TypeRef> types = demangle_function(lowered).parameters;
    return types.size() == count ? types : std::vector<TypeRef>();
  } catch (const InvalidArgument&) {
    return {};
  }
}

/// A parameter of which only the size is certain.
Parameter untold(const PtxParameter& declared, std::string type) {
  Parameter result;
  result.type = std::move(type);
  result.size = declared.size;
  result.alignment = declared.alignment;
  result.kind = ParameterKind::aggregate;
  const bool is_number = !declared.is_bytes && declared.size <= sizeof(std::uint64_t);
  if (is_number) result.kind = ParameterKind::untyped;
  return result;
}

/// The PTX's facts about a parameter of unknown type. Integers there have no sign.
Parameter from_ptx(const PtxParameter& declared) {
  if (declared.is_pointer) {
    Parameter pointer = untold(declared, "void*");
    pointer.kind = ParameterKind::pointer;
    return pointer;
  }
  Parameter result =
      untold(declared, format("{} byte{}", declared.size, declared.size == 1 ? "" : "s"));
  if (declared.is_floating && declared.size >= sizeof(float)) {
    const bool is_double = declared.size == sizeof(double);
    result.kind = ParameterKind::scalar;
    result.scalar = is_double ? ScalarType::float64 : ScalarType::float32;
    result.type = is_double ? "double" : "float";
  }
  return result;
}

/// From a type of the lowered name.
Parameter from_type(const TypeNode& type, const PtxParameter& declared) {
  if (const auto told = parameter_of_type(type)) {
    if (told->parameter.size == declared.size) return told->parameter;
  }
  Parameter result = untold(declared, spell(type));
  result.kind = ParameterKind::aggregate;  // a struct, or an enum of unknown sign
  return result;
}

/// "const float*" for "const float *".
std::string joined(std::string_view spelling) {
  std::string result;
  for (const char c : spelling) {
    if (c == '*' && !result.empty() && result.back() == ' ') result.pop_back();
    result += c;
  }
  return result;
}

/// From the words of a declaration, where they are C++'s own and the sizes agree.
Parameter from_spelling(std::string_view tokens, const PtxParameter& declared) {
  const std::string spelling = joined(tokens);
  if (spelling.find_first_of("*[&") == std::string::npos) {
    const ElementType element = element_from_spelling(spelling);
    const auto scalar = element.lanes == 0 ? element.scalar : std::nullopt;
    const bool agrees = scalar && !declared.is_bytes && scalar_size(*scalar) == declared.size &&
                        is_floating(*scalar) == declared.is_floating;
    if (!agrees) {
      Parameter result = from_ptx(declared);
      const auto lanes = static_cast<std::size_t>(element.lanes);
      if (lanes > 0 && declared.is_bytes && scalar_size(*element.scalar) * lanes == declared.size) {
        result.kind = ParameterKind::vector;
        result.scalar = element.scalar;
        result.lanes = element.lanes;
      }
      if (result.kind != ParameterKind::scalar) result.type = spelling;
      return result;
    }
    Parameter result = untold(declared, spelling);
    result.kind = ParameterKind::scalar;
    result.scalar = scalar;
    return result;
  }
  const bool is_pointer = declared.size == sizeof(void*) && !declared.is_bytes;
  if (!is_pointer) return untold(declared, spelling);
  Parameter result = untold(declared, spelling);
  result.kind = ParameterKind::pointer;
  const auto star = spelling.find('*');
  const bool is_single = star != std::string::npos && star == spelling.rfind('*') &&
                         spelling.find_first_of("[(&") == std::string::npos;
  if (!is_single) return result;
  const std::string pointee = spelling.substr(0, star);
  result.pointee_const = pointee.find("const") != std::string::npos;
  if (const auto element = element_from_spelling(pointee); element.scalar) {
    result.scalar = element.scalar;
    result.lanes = std::max(element.lanes, 1);
    result.pointee_size = scalar_size(*element.scalar) * static_cast<std::size_t>(result.lanes);
    result.any_byte_pointee = element.lanes == 0 && spells_char(pointee);
  }
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
                                     const KernelDeclaration* declaration,
                                     std::span<const std::string> members) {
  KernelSignature signature{std::move(name), std::move(lowered), {}};
  const std::vector<ProbedParameter> probed = read_kernel_probe(probe_answer, members);
  const std::vector<std::string> names = parameter_names(declaration, probed.size());
  for (std::size_t i = 0; i < probed.size(); ++i) {
    signature.parameters.push_back(probed[i].parameter);
    signature.parameters.back().name = names[i];
    if (probed[i].is_reference) refuse_reference(signature, i, declaration);
  }
  return signature;
}

KernelSignature signature_from_code(std::string name, std::string lowered, std::string_view ptx,
                                    const KernelDeclaration* declaration) {
  const auto declared = ptx_parameters(ptx, lowered);
  if (!declared) {
    throw NameNotFound(format("{} is no __global__ function of the source", name));
  }
  return signature_from_parameters(std::move(name), std::move(lowered), *declared, declaration);
}

KernelSignature signature_from_parameters(std::string name, std::string lowered,
                                          std::span<const PtxParameter> declared,
                                          const KernelDeclaration* declaration) {
  KernelSignature signature{std::move(name), std::move(lowered), {}};
  const std::vector<std::string> names = parameter_names(declaration, declared.size());
  const std::vector<TypeRef> types = types_in_name(signature.lowered, declared.size());
  const bool spelled = declaration != nullptr && !declaration->is_template &&
                       declaration->parameter_types.size() == declared.size();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const PtxParameter& in_code = declared[i];
    signature.parameters.push_back(!types.empty() ? from_type(*types[i], in_code)
                                   : spelled
                                       ? from_spelling(declaration->parameter_types[i], in_code)
                                       : from_ptx(in_code));
    signature.parameters.back().name = names[i];
  }
  signature.lay_out();
  return signature;
}

std::string readable_kernel(const std::string& lowered) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  if (!lowered.starts_with("_Z")) return lowered;
  try {
    std::string name = spell(*demangle_name(lowered));
    for (auto at = name.find(kUnnamed); at != std::string::npos; at = name.find(kUnnamed)) {
      name.erase(at, kUnnamed.size());
    }
    return name;
  } catch (const InvalidArgument&) {
    return lowered;
  }
}

}  // namespace kernwright
