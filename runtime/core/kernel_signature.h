// A kernel's declaration: parameter names, types, sizes and offsets.
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
  untyped,    ///< `size` bytes, up to 8, of code that tells no sign, and no address from a number
};

/// A data member of a struct, also one that it inherits.
struct StructField {
  std::string name;
  std::string type;                                 ///< as C++ spells it: "float [3]"
  std::optional<ScalarType> scalar = std::nullopt;  ///< of one element; uint64 of a pointer
  int lanes = 1;                                    ///< > 1 for a vector (float4)
  std::vector<std::size_t> shape = {};              ///< extents of an array, outermost first
  std::size_t offset = 0;                           ///< bytes
  std::size_t size = 0;                             ///< bytes of the whole member
};

/// One parameter. For a pointer: `type` is the whole spelling ("const float*"), `scalar` the
/// element type of the pointee (empty for void*, a struct or a pointer to pointer), `lanes` > 1 for
/// a vector pointee (float4*, __half2*), `pointee_size` its bytes (0 when unknown).
struct Parameter {
  std::string name;  ///< from the source; "arg3" when it has none
  std::string type;  ///< as C++ spells it, e.g. "const float*"
  ParameterKind kind = ParameterKind::scalar;
  std::optional<ScalarType> scalar = std::nullopt;
  int lanes = 1;
  bool pointee_const = false;
  bool any_byte_pointee = false;  ///< char*, unsigned char*: takes any 1-byte array
  std::size_t pointee_size = 0;
  std::size_t size = 0;          ///< bytes in the parameter block; 0 until known
  std::size_t alignment = 0;     ///< bytes; 0: the natural one of the kind and size
  std::size_t offset = 0;        ///< bytes from the start of the parameter block
  std::size_t element_size = 0;  ///< bytes of the value, or of what a pointer to arrays ends at
  /// For a struct, or a pointer to one: the accessible members, by offset, if known.
  std::vector<StructField> fields = {};
};

/// Alignment of `parameter` in the block: the one given, else the natural one. Vectors of 2 and 4
/// lanes are aligned to their size, at most 16; an aggregate of unknown alignment to the largest
/// power of two that divides its size, at most 8.
std::size_t parameter_alignment(const Parameter& parameter) noexcept;

/// A kernel's names and parameters. A value.
struct KernelSignature {
  std::string name;     ///< as the user wrote it: "saxpy" or "scale<float, 4>"
  std::string lowered;  ///< name in the object code
  std::vector<Parameter> parameters;
  bool is_told = true;  ///< false: only the driver knows of the parameters, once it is loaded

  /// "saxpy(float a, const float* x, float* y, int n)"
  std::string to_string() const;
  /// Computes the offsets by the CUDA ABI: each parameter at the next multiple of its alignment, in
  /// order. Sizes that are 0 are filled in where the kind tells them (pointers, scalars, vectors).
  void lay_out();
  /// Appends a parameter of which only the size is known.
  void add_untyped(std::size_t size, std::size_t alignment = 0);
};

}  // namespace kernwright
