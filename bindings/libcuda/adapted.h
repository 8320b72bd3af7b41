// Functions with arguments that are translated first: kernels of libraries to functions, and the
// null stream to the calling thread's.
#pragma once

#include "driver/driver_types.h"
#include "libcuda/kernels.h"

#include <type_traits>

namespace kernwright::libcuda {

template <typename Signature>
void* address(Signature* function) {
  return reinterpret_cast<void*>(function);
}

/// An argument as the function behind gets it; whatever is not named below stays as it is.
template <typename T, bool per_thread>
struct Argument {
  T value;
  explicit Argument(T given) : value(given) {}
  operator T() const { return value; }
};

template <bool per_thread>
CUstream adapt_stream(CUstream stream) {
  return per_thread && stream == nullptr ? kStreamPerThread : stream;
}

template <bool per_thread>
struct Argument<CUstream, per_thread> {
  CUstream value;
  explicit Argument(CUstream given) : value(adapt_stream<per_thread>(given)) {}
  operator CUstream() const { return value; }
};

template <bool per_thread>
struct Argument<CUfunction, per_thread> {
  CUfunction value;
  explicit Argument(CUfunction given) : value(kernel_function(given)) {}
  operator CUfunction() const { return value; }
};

template <bool per_thread>
struct Argument<const CUlaunchConfig*, per_thread> {
  CUlaunchConfig copy{};
  bool given;
  explicit Argument(const CUlaunchConfig* config) : given(config != nullptr) {
    if (!given) return;
    copy = *config;
    copy.hStream = adapt_stream<per_thread>(copy.hStream);
  }
  operator const CUlaunchConfig*() const { return given ? &copy : nullptr; }
};

template <bool per_thread>
struct Argument<const CUDA_KERNEL_NODE_PARAMS*, per_thread> {
  CUDA_KERNEL_NODE_PARAMS copy{};
  bool given;
  explicit Argument(const CUDA_KERNEL_NODE_PARAMS* parameters) : given(parameters != nullptr) {
    if (!given) return;
    copy = *parameters;
    const CUfunction chosen = copy.func != nullptr ? copy.func : as_function(copy.kern);
    copy.func = kernel_function(chosen);
    copy.kern = nullptr;
  }
  operator const CUDA_KERNEL_NODE_PARAMS*() const { return given ? &copy : nullptr; }
};

template <typename T>
inline constexpr bool has_stream =
    std::is_same_v<T, CUstream> || std::is_same_v<T, const CUlaunchConfig*>;
template <typename T>
inline constexpr bool has_kernel =
    std::is_same_v<T, CUfunction> || std::is_same_v<T, const CUDA_KERNEL_NODE_PARAMS*>;

/// The caller of the function in a slot of the simulated device's table.
template <auto slot, typename Signature>
struct Adapted;
template <auto slot, typename... P>
struct Adapted<slot, CUresult (*)(P...)> {
  template <bool per_thread>
  static CUresult call(P... arguments) {
    return (sim::driver_api().*slot)(Argument<P, per_thread>(arguments)...);
  }
  static void* plain() {
    if constexpr ((has_kernel<P> || ...)) return address(&call<false>);
    return address(sim::driver_api().*slot);
  }
  static void* per_thread() {
    if constexpr ((has_stream<P> || ...)) return address(&call<true>);
    return plain();
  }
};

/// A function of this library; it leaves no exception to its callers. `per_thread` as above.
template <auto function, typename Signature>
struct Guarded;
template <auto function, typename... P>
struct Guarded<function, CUresult (*)(P...)> {
  template <bool per_thread>
  static CUresult call(P... arguments) noexcept {
    try {
      if constexpr (per_thread) return function(Argument<P, true>(arguments)...);
      return function(arguments...);
    } catch (...) {
      return CUDA_ERROR_OUT_OF_MEMORY;  // nothing else is thrown
    }
  }
  static constexpr bool takes_stream = (has_stream<P> || ...);
};

}  // namespace kernwright::libcuda
