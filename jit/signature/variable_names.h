// Names of variables in object code without name expressions: NVRTC takes none for __managed__
// variables, and instances of variable templates are not declared.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace kernwright {

/// The lowered name of a variable other than a template: "m" for m, "_ZN1n1xE" for n::x.
std::string lowered_variable(std::string_view qualified);

/// Whether the PTX defines a variable of this lowered name.
bool defines_variable(std::string_view ptx, std::string_view lowered);

/// Variables with mangled names in PTX or a cubin, by C++ name: "table<3>", "n::x". Never throws
/// for odd bytes.
std::map<std::string, std::string> mangled_variables(std::string_view code);

/// The C++ name of such a variable; an unmangled name stays. Empty for functions, their contents,
/// and for variables of the compiler and of CUDA's own C++ libraries.
std::string readable_variable(const std::string& lowered);

/// The name without blanks: spellings of one name may differ in them.
std::string without_blanks(std::string_view name);

}  // namespace kernwright
