// Facts about a C++ type for kernel launches, from its tree.
#pragma once

#include "base/scalar_type.h"
#include "jit/signature/mangled_type.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace kernwright {

/// A number or a CUDA vector of numbers.
struct ElementType {
  std::optional<ScalarType> scalar;  ///< nothing for a struct, a pointer, a 128-bit integer
  int lanes = 0;  ///< 0 for a plain number, 1 ... 4 for a vector type (float1 ... float4)
};

/// The type without const and volatile around it.
const TypeNode& unqualified(const TypeNode& type);

/// "float" is float32; "__half2" is float16 x 2; "cuda::std::complex<float>" is complex64.
ElementType element_type(const TypeNode& type);

/// Size and alignment, in bytes.
struct TypeLayout {
  std::size_t size = 0;
  std::size_t alignment = 0;
};

/// The layout of types independent of the program: a pointer, a number of the language, a CUDA
/// vector other than four of 8 bytes. Nothing for any other.
std::optional<TypeLayout> known_layout(const TypeNode& type);

/// Whether a declaration spells pointers to, or values of, types of known_layout(), or void: "const
/// float * __restrict__", "unsigned", "size_t". Macros may change its meaning.
bool spells_known_layout(std::string_view spelling);

/// The number or vector type of a declaration in the language's own words and CUDA's: "const
/// unsigned" is uint32. Nothing for any other type.
ElementType element_from_spelling(std::string_view spelling);

/// Whether it spells char or one of its kin.
bool spells_char(std::string_view spelling);

}  // namespace kernwright
