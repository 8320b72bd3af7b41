// What kernel launches need to know about a C++ type, from its tree.
#pragma once

#include "base/scalar_type.h"
#include "jit/signature/mangled_type.h"

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

/// The number that a declaration spells with C++'s own words: "const unsigned" is uint32. Nothing
/// for any other type.
std::optional<ScalarType> scalar_from_spelling(std::string_view spelling);

}  // namespace kernwright
