// Asks the compiler for the parameter types of kernels: the text appended to a source, and its
// answer.
#pragma once

#include "core/kernel_signature.h"
#include "jit/object_code.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// File name that the appended lines carry in the compiler's log.
inline constexpr std::string_view kProbeFile = "kernwright_probe";

/// Lines to append to a source. They declare templates only, so nothing of them reaches the object
/// code; every name in them is long enough not to meet a user's macro.
std::string_view probe_text() noexcept;

/// Name expression whose lowered name spells the parameters of `kernel` ("scale<float, 4>").
std::string kernel_probe(std::string_view kernel);
/// The same for a kernel with parameters of known_layout() only, and a third of the work for the
/// compiler. The answer tells when another parameter is among them.
std::string kernel_type_probe(std::string_view kernel);
/// Name expression whose lowered name spells the type of the variable `symbol`.
std::string symbol_probe(std::string_view symbol);

/// One parameter as the compiler sees it.
struct ProbedParameter {
  Parameter parameter;  ///< without a name
  bool is_reference = false;
};

/// Whether a lowered name is one of the probe's at all, understood or not.
bool is_probe_answer(std::string_view lowered) noexcept;

/// Reads the lowered name of a kernel_probe() or a kernel_type_probe(): types, sizes, alignments
/// and offsets. Throws InvalidArgument when it is not understood.
std::vector<ProbedParameter> read_kernel_probe(std::string_view lowered);

/// Reads the lowered name of a symbol_probe(). Throws InvalidArgument when it is not understood.
SymbolType read_symbol_probe(std::string_view lowered);

}  // namespace kernwright
