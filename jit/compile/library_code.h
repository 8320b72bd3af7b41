// Where the machine code of a loaded library lies.
#pragma once

#include <cstdint>

namespace kernwright {

/// Addresses from `begin` to below `end`; empty when unknown.
struct CodeRange {
  std::uintptr_t begin = 0, end = 0;
  bool contains(std::uintptr_t address) const noexcept { return begin <= address && address < end; }
};

/// The executable segment of the library (or program) that `function` belongs to.
CodeRange code_around(const void* function);

/// The instruction that a signal interrupted, from the third argument of its handler; 0 where this
/// machine's layout is not known. Safe in a handler.
std::uintptr_t interrupted_at(const void* context) noexcept;

}  // namespace kernwright
