// Finds the __global__ functions and the device variables declared by a source text.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// Name and parameters of a __global__ function, as the text spells them.
struct KernelDeclaration {
  std::string name;  ///< qualified: "ns::scale"
  bool is_template = false;
  bool is_extern_c = false;
  /// "" where the source gives none; a parameter pack ends with "..." ("values...").
  std::vector<std::string> parameter_names;
  std::vector<std::string> parameter_types;  ///< declared text without the name: "const T *"
  int line = 0;                              ///< counted from 1 within the text
};

/// A __device__, __constant__ or __managed__ variable at namespace scope.
struct SymbolDeclaration {
  std::string name;  ///< qualified
  int line = 0;      ///< counted from 1 within the text
  bool is_managed = false;
  bool is_constant = false;  ///< __constant__, const or constexpr: no kernel writes it
};

struct ScannedSource {
  std::vector<KernelDeclaration> kernels;  ///< in order of appearance, each name once
  std::vector<SymbolDeclaration> symbols;  ///< in order of appearance, each name once
  /// Qualified names of const and constexpr variables at namespace scope, other than symbols.
  std::set<std::string> constants;
  /// Every __global__ of the text is one of the kernels, and no #if, macro or quoted #include may
  /// change them. Angled includes and options are not considered.
  bool is_whole = false;
};

/// Looks at the tokens only: no macro is expanded and no #if is decided, so a kernel behind a false
/// #if is listed too. Never throws for odd text.
ScannedSource scan_source(std::string_view text);

/// The kernels of scan_source().
std::vector<KernelDeclaration> find_kernels(std::string_view text);

}  // namespace kernwright
