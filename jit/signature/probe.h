// Asks the compiler for the parameter types of kernels: the text appended to a source, and its
// answer.
#pragma once

#include "core/kernel_signature.h"
#include "jit/object_code.h"
#include "jit/signature/mangled_type.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// File name of the appended lines in the compiler's log.
inline constexpr std::string_view kProbeFile = "kernwright_probe";

/// Templates to append to a source, and the text of `questions`, a line each. All is declared only,
/// so nothing of it reaches the object code. Macros named like words of the language end there.
/// `members` are possible names of members, as MemberNames finds them; the answers tell the real
/// ones and their places.
std::string probe_text(std::span<const std::string> members,
                       std::span<const std::string> questions);

/// Its part common to all sources.
std::string_view probe_templates() noexcept;

/// To append to sources without a definition of external linkage, such as those of templates alone.
/// NVRTC names variables of internal linkage after the first such definition; where there is none,
/// after its process. It makes code only for a debugger or a linker.
inline constexpr std::string_view kUnitDefinition =
    "#undef device\n__attribute__((device)) void kernwright_unit_() {}\n";

/// Name expression for the parameters of `kernel` ("scale<float, 4>"): its lowered name spells
/// them. The compiler refuses private types, types without a name and lambdas.
std::string kernel_probe(std::string_view kernel);
/// The same for a kernel with parameters of known_layout() only, and a third of the work for the
/// compiler. The answer tells when another parameter is among them.
std::string kernel_type_probe(std::string_view kernel);
/// Name expression for the type of the variable `symbol`: its lowered name spells it.
std::string symbol_probe(std::string_view symbol);

/// The same as a function declared by question `index`. It takes the types refused by the others,
/// but none local to a function.
std::string kernel_question(std::size_t index, std::string_view kernel);
std::string symbol_question(std::size_t index, std::string_view symbol);
/// The name expression for its answer.
std::string question_name(std::size_t index);
/// The question on this line of kProbeFile; nothing for lines of templates.
std::optional<std::size_t> question_on_line(int line) noexcept;

/// One parameter as the compiler sees it.
struct ProbedParameter {
  Parameter parameter;  ///< without a name
  bool is_reference = false;
};

/// Whether a lowered name is one of the probe's at all, understood or not.
bool is_probe_answer(std::string_view lowered) noexcept;

/// Reads the lowered name of any probe of a kernel: types, sizes, alignments and offsets. Throws
/// InvalidArgument when it is not understood.
std::vector<ProbedParameter> read_kernel_probe(std::string_view lowered,
                                               std::span<const std::string> members = {});

/// The facts in a parameter's type alone. Nothing unless known_layout() knows it.
std::optional<ProbedParameter> parameter_of_type(const TypeNode& declared);

/// Reads the lowered name of a probe of a variable. Throws InvalidArgument when it is not
/// understood.
SymbolType read_symbol_probe(std::string_view lowered, std::span<const std::string> members = {});

}  // namespace kernwright
