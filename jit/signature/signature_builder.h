// Joins the compiler's facts about a kernel's parameters with the names in the source.
#pragma once

#include "core/kernel_signature.h"
#include "jit/signature/ptx_parameters.h"
#include "jit/source/kernel_scanner.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// "ns::scale" for "ns::scale<float, 4>", "::ns::scale" and "&ns::scale".
std::string base_name(std::string_view expression);

/// The declaration meant by `expression`, or null.
const KernelDeclaration* find_declaration(std::string_view expression,
                                          std::span<const KernelDeclaration> declared);

/// Signature from the probe's answer to a text with those `members`. Throws InvalidArgument for an
/// answer of unknown form, and CompileError when a parameter is a reference: a launch copies
/// arguments by value.
KernelSignature signature_from_probe(std::string name, std::string lowered,
                                     std::string_view probe_answer,
                                     const KernelDeclaration* declaration,
                                     std::span<const std::string> members = {});

/// Signature of a kernel when the compiler was not asked for its types, from certain facts: the
/// types in its lowered name, else C++'s own words in the source, checked against the sizes in the
/// PTX. The rest stays ParameterKind::untyped, or a pointer to nothing known. Throws NameNotFound
/// when the PTX has no such kernel.
KernelSignature signature_from_code(std::string name, std::string lowered, std::string_view ptx,
                                    const KernelDeclaration* declaration);

/// The same from already known parameters.
KernelSignature signature_from_parameters(std::string name, std::string lowered,
                                          std::span<const PtxParameter> declared,
                                          const KernelDeclaration* declaration);

/// "ns::scale<float>" for the lowered name of a kernel, without unnamed namespaces; a lowered name
/// of unknown form stays.
std::string readable_kernel(const std::string& lowered);

}  // namespace kernwright
