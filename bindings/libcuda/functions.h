// The driver functions found by name: those of the simulated device's table, and some for such
// programs only.
#pragma once

#include "driver/driver_api.h"
#include "libcuda/adapted.h"

#include <span>

namespace kernwright::libcuda {

/// A function in one of its signatures. `per_thread` is the same with the calling thread's default
/// stream for the null one, which NVIDIA names _ptsz and _ptds.
struct Function {
  const char* name;    ///< for cuGetProcAddress
  const char* symbol;  ///< as exported
  int since;           ///< CUDA version (major * 1000 + minor * 10) of the signature
  void* plain;
  void* per_thread;
};

/// A row for a function of this library.
template <auto function>
Function provide(const char* name, const char* symbol, int since) {
  using Call = Guarded<function, decltype(function)>;
  void* const plain = address(&Call::template call<false>);
  if constexpr (Call::takes_stream)
    return {name, symbol, since, plain, address(&Call::template call<true>)};
  return {name, symbol, since, plain, plain};
}

// Each file's own functions.
std::span<const Function> context_functions();
std::span<const Function> composed_functions();
std::span<const Function> graph_functions();
std::span<const Function> library_functions();
std::span<const Function> link_functions();
std::span<const Function> pool_functions();
std::span<const Function> user_object_functions();
std::span<const Function> lookup_functions();

/// The function behind an exported name, or null. Names without a version mean the oldest signature
/// that there is.
void* find_symbol(const char* symbol);

/// cuGetProcAddress of this library. A version whose signature is not there is not found, never a
/// wrong function.
CUresult get_proc_address(const char* name, void** function, int cuda_version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status);

}  // namespace kernwright::libcuda
