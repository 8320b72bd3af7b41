// Launching from C++ with typed arguments, checked against the kernel's own signature.
#pragma once

#include "core/kernel.h"
#include "core/launch/launch_site.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace kernwright {

/// A raw device address as an argument; `type` of the pointee where it is known (else unchecked).
struct Pointer {
  CUdeviceptr address = 0;
  std::optional<ScalarType> type = std::nullopt;
};

/// An argument's view for a parameter. Plain data, made by KernelArgument<T>::view.
struct ArgumentView {
  enum class Kind : std::uint8_t { number, pointer, bytes };
  Kind kind = Kind::bytes;
  std::optional<ScalarType> scalar = std::nullopt;  ///< of the number, or of the pointee when known
  const char* noun = "a value";                     ///< what bytes are, for messages
  const void* data = nullptr;                       ///< the bytes of the number or the aggregate
  std::size_t size = 0;                             ///< of `data`
  CUdeviceptr address = 0;                          ///< of a pointer
  std::optional<std::size_t> memory_bytes = std::nullopt;  ///< behind it, when known
  const Device* device = nullptr;  ///< where the memory is of a pointer or a map, when known
  bool read_only = false;          ///< the memory must not be handed to a pointer to non-const
  const char* problem = nullptr;   ///< why the value cannot be an argument at all, or null
};

/// The scalar type of a C++ arithmetic type.
template <typename T>
constexpr ScalarType scalar_type_of() noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return ScalarType::boolean;
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) <= 8, "kernels know no long double");
    return sizeof(T) == 4 ? ScalarType::float32 : ScalarType::float64;
  } else {
    static_assert(std::is_integral_v<T>);
    constexpr int kWidth = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    constexpr auto kFirst = std::is_signed_v<T> ? ScalarType::int8 : ScalarType::uint8;
    return static_cast<ScalarType>(static_cast<int>(kFirst) + kWidth);
  }
}

/// How a C++ type becomes an argument. Numbers and trivially copyable structs work as they are;
/// specialise it for a type that stands for device memory (array/argument.h does for Array).
template <typename T>
struct KernelArgument {
  static_assert(std::is_trivially_copyable_v<T>, "specialise KernelArgument for this type");
  static_assert(!std::is_pointer_v<T>, "a raw pointer says nothing of its memory: use Pointer");
  static ArgumentView view(const T& value) noexcept {
    ArgumentView v{.data = &value, .size = sizeof(T)};
    if constexpr (std::is_arithmetic_v<T>) {
      v.kind = ArgumentView::Kind::number;
      v.scalar = scalar_type_of<T>();
    }
    return v;
  }
};

template <>
struct KernelArgument<Pointer> {
  static ArgumentView view(const Pointer& value) noexcept {
    return {.kind = ArgumentView::Kind::pointer, .scalar = value.type, .address = value.address};
  }
};

template <>
struct KernelArgument<std::nullptr_t> {
  static ArgumentView view(const std::nullptr_t&) noexcept {
    return {.kind = ArgumentView::Kind::pointer};
  }
};

/// Room for one converted number or pointer.
using ArgumentSlot = std::array<std::byte, 8>;

/// Checks each view against the kernel's parameters and leaves in `pointers` the place of each
/// argument's bytes: its slot (numbers are converted to the kernel's types, pointers copied) or the
/// original place. Throws ArgumentError (count, kind, type, device) or ArgumentRangeError; both
/// print the whole signature and the offending parameter. The spans have equal sizes.
void pack_arguments(const KernelSignature& signature, const Device& device,
                    std::span<const ArgumentView> views, std::span<ArgumentSlot> slots,
                    std::span<void*> pointers);

/// A kernel and the line of its launch, for later messages about it.
struct LaunchTarget {
  const Kernel& kernel;
  LaunchSite site;
  LaunchTarget(
      const Kernel& launched,  // NOLINT: converts on purpose, so that the line is the caller's
      const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kernel(launched), site(LaunchSite::here(file, line)) {}
};

namespace detail {
/// For arguments that must live until the launch is done: KernelArgument<T>::used().
template <typename T>
void note_use(const T& argument, const Stream& stream) {
  if constexpr (requires { KernelArgument<T>::used(argument, stream); })
    KernelArgument<T>::used(argument, stream);
}
}  // namespace detail

/// Queues the kernel with these arguments: launch(kernel, {.grid = {4}, .block = {256}}, 2.0f, x,
/// n). Integers convert to any integer type that holds their value and to floating types; floating
/// values convert to floating types, which they must not exceed (core/launch/parameter_rules.h).
/// Asynchronous; throws before anything is sent.
template <typename... Args>
void launch(const LaunchTarget& target, const LaunchConfig& config, const Args&... arguments) {
  constexpr std::size_t kCount = sizeof...(Args);
  const std::array<ArgumentView, kCount> views{KernelArgument<Args>::view(arguments)...};
  std::array<ArgumentSlot, kCount> slots;
  std::array<void*, kCount> pointers;
  pack_arguments(target.kernel.signature(), target.kernel.device(), views, slots, pointers);
  target.kernel.launch(config, pointers, target.site);
  (detail::note_use(arguments, config.stream), ...);
}

}  // namespace kernwright
