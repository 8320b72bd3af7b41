// The loaded bytes in use by the program, and the instructions that decide about the others.
#pragma once

#include "sim/ptx/ast.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

/// Bytes of a load per lane, a bit each. Bytes in no set are never used.
struct LoadedBytes {
  std::uint32_t now = ~std::uint32_t{0};  ///< are used by every lane that loads them
  std::uint32_t later = 0;                ///< are used in the lanes given by a ValueUse
  std::uint32_t speculated = 0;           ///< of `later`: a selp takes them, and no lane for sure
  std::uint32_t passed = 0;               ///< go to a function, maybe within an object
  std::uint32_t alignment = 0;  ///< of an object that it reads a part of, or 0: find_object_loads()
};

enum class UsingLanes : std::uint8_t { all, where, where_not, copied, updated };

/// An instruction with a use of bytes of LoadedBytes::later: in all of its active lanes or, selp,
/// in those where its predicate holds or does not. A store (`copied`), with byte b of the load `b +
/// shift` bytes after its address, may only move them. A store to their own place with other bits
/// set (`updated`) does not use them.
struct ValueUse {
  std::uint32_t load = 0;  ///< index into Function::body
  std::uint32_t bytes = 0;
  UsingLanes lanes = UsingLanes::all;
  int shift = 0;
};

/// Both by index into Function::body. Loads missing here use all their bytes.
struct UsedValues {
  std::unordered_map<std::uint32_t, LoadedBytes> loads;
  std::unordered_map<std::uint32_t, std::vector<ValueUse>> uses;
};

/// Compilers load a value before they know whether it is wanted, if this is safe, and drop it with
/// selp; they load vectors and words and use a part.
UsedValues find_used_values(const ptx::Function& function);

}  // namespace kernwright::sim
