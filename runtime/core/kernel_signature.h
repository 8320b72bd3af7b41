// What a kernel declares: parameter names, types, sizes and offsets.
#pragma once

#include "base/scalar_type.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

enum class ParameterKind {
  scalar,     ///< a number passed by value; `scalar` says which
  pointer,    ///< a pointer; `scalar` is the pointee's element type when known
  vector,     ///< a CUDA vector type by value (float4): `scalar` x `lanes`
  aggregate,  ///< a struct, union, array template or enum class by value: `size` bytes
};

/// One parameter. For a pointer: `type` is the whole spelling ("const float*"), `scalar` the element
/// type of the pointee (empty for void*, a struct or a pointer to pointer), `lanes` > 1 for a vector
/// pointee (float4*, __half2*), `pointee_size` its bytes (0 when unknown).
struct Parameter {
  std::string name;  ///< from the source; "arg3" when it has none
  std::string type;  ///< as C++ spells it, e.g. "const float*"
  ParameterKind kind = ParameterKind::scalar;
  std::optional<ScalarType> scalar;
  int lanes = 1;
  bool pointee_const = false;
  bool any_byte_pointee = false;  ///< char*, unsigned char*: takes any 1-byte array
  std::size_t pointee_size = 0;
  std::size_t size = 0;    ///< bytes in the parameter block; 0 until known
  std::size_t offset = 0;  ///< bytes from the start of the parameter block
};

struct KernelSignature {
  std::string name;      ///< as the user wrote it: "saxpy" or "scale<float, 4>"
  std::string lowered;   ///< name in the object code
  std::vector<Parameter> parameters;

  /// "saxpy(float a, const float* x, float* y, int n)"
  std::string to_string() const;
  /// Recomputes offsets from sizes and natural alignment where the compiler gave only sizes.
  void lay_out();
};

}  // namespace kernwright
