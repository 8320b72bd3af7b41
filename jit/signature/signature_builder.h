// Joins what the compiler says about a kernel's parameters with the names in the source.
#pragma once

#include "core/kernel_signature.h"
#include "jit/source/kernel_scanner.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// "ns::scale" for "ns::scale<float, 4>", "::ns::scale" and "&ns::scale".
std::string base_name(std::string_view expression);

/// The declaration that `expression` means, or null.
const KernelDeclaration* find_declaration(std::string_view expression,
                                          std::span<const KernelDeclaration> declared);

/// Signature from the probe's answer. Throws InvalidArgument when that is not understood, and
/// CompileError when a parameter is a reference: a launch copies arguments by value.
KernelSignature signature_from_probe(std::string name, std::string lowered,
                                     std::string_view probe_answer,
                                     const KernelDeclaration* declaration);

/// Signature from the sizes in the PTX, for a kernel that the probe could not ask about: types as
/// the source spells them, kinds as far as sizes and spelling tell them.
/// Throws NameNotFound when the PTX has no such kernel.
KernelSignature signature_from_ptx(std::string name, std::string lowered, std::string_view ptx,
                                   const KernelDeclaration* declaration);

}  // namespace kernwright
