// Driver functions that are made of others, and how functions of several signatures are told apart.
#pragma once

#include <vector>

namespace kernwright::libcuda {

/// A function, and the CUDA version (major * 1000 + minor * 10) that its signature came with.
struct Versioned {
  const char* name;
  int since;
  void* function;  ///< null: no function of this signature
};

template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// Those for cuGetProcAddress; programs that link the library find them by their symbols.
const std::vector<Versioned>& composed_functions();

}  // namespace kernwright::libcuda
