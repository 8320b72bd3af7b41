// Which arguments fit which parameters, and how a refusal reads. Launches from C++
// (core/arguments.h) and from Python (bindings/arguments) both go by these rules.
#pragma once

#include "core/kernel_signature.h"
#include "core/number.h"
#include "driver/driver_types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright {

class Device;

/// What may lie behind a pointer.
enum class Pointee : std::uint8_t {
  anything,   ///< void*; eight bytes of code without types
  one_byte,   ///< char*, unsigned char*: any elements of 1 byte
  numbers,    ///< elements of the parameter's scalar type
  addresses,  ///< a pointer to pointers
  structs,    ///< raw bytes
};

/// Of a pointer or an untyped parameter.
Pointee parameter_pointee(const Parameter& parameter) noexcept;

bool is_function_pointer(const Parameter& parameter) noexcept;

/// Of float2 and double2 the complex type of the same two parts: cuFloatComplex is float2.
std::optional<ScalarType> find_complex_type(const Parameter& parameter) noexcept;

/// Whether elements of `type` may lie behind the pointer, sizes and alignment apart.
bool takes_elements(const Parameter& parameter, Pointee pointee, ScalarType type) noexcept;

/// The element type to make an array of for the pointer.
ScalarType wanted_type(const Parameter& parameter, Pointee pointee) noexcept;

/// "float32", "elements of 1 byte", "uint64 (addresses)": for messages.
std::string wanted_elements(const Parameter& parameter, Pointee pointee);

/// Memory that is given to a pointer.
struct MemoryArgument {
  CUdeviceptr address = 0;
  std::optional<ScalarType> type = std::nullopt;  ///< of an element; nothing: not known
  std::optional<std::size_t> bytes = std::nullopt;
  bool read_only = false;
};

/// Why memory of the right elements does not go to a pointer.
enum class MemoryFit : std::uint8_t {
  exact,
  read_only,        ///< the kernel may write there
  partial_element,  ///< of a vector or struct: the bytes are no whole number of them
  misaligned,       ///< for the hardware's access to a vector
};

MemoryFit memory_fit(const Parameter& parameter, Pointee pointee,
                     const MemoryArgument& memory) noexcept;

/// How messages call the parameter: its name, or "it".
std::string_view name_in_text(const Parameter& parameter) noexcept;
/// "x wants float32": what belongs there.
std::string wants_text(const Parameter& parameter, std::string_view what);

// What is wrong, to stand behind at_parameter(). `noun` is the memory's: "array", "memory".

/// "got an array of float64: x wants float32". `got` begins with its article: "an array of
/// float64".
std::string wrong_elements_text(const Parameter& parameter, Pointee pointee, std::string_view got);
std::string memory_text(const Parameter& parameter, const MemoryArgument& memory, MemoryFit fit,
                        std::string_view noun);
/// What is wrong with memory that is given by its address; empty for memory that fits.
std::string memory_problem(const Parameter& parameter, Pointee pointee,
                           const MemoryArgument& memory);
/// "got an array on sim:0, but the launch is on sim:1".
std::string other_device_text(std::string_view got, const Device& found, const Device& wanted);
/// "got bytes of 3 bytes: x wants 8 bytes".
std::string wrong_size_text(const Parameter& parameter, std::string_view got, std::size_t size);
/// "got a str ('a'): x wants a real number".
std::string wrong_kind_text(const Parameter& parameter, std::string_view got, ScalarType type);
/// "got 256, outside 0 ... 255; x wants a smaller number or a wider type".
std::string out_of_range_text(const Parameter& parameter, std::string_view number, ScalarType type);
/// The same of encode_untyped().
std::string out_of_range_text(const Parameter& parameter, std::string_view number);

/// "saxpy(float a, const float* x, int n): parameter 2 (const float*) <problem>".
std::string at_parameter(const KernelSignature& signature, std::size_t index,
                         std::string_view problem);

}  // namespace kernwright
