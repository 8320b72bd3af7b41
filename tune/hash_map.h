// A map by 128-bit hashes, where equal hashes stand for equal things.
#pragma once

#include "base/hash.h"

#include <cstddef>
#include <unordered_map>

namespace kernwright {

struct HashLowHalf {
  std::size_t operator()(const Hash128& hash) const noexcept { return hash.low; }
};

/// NOTE: two different entries with the same hash become likely only with some 2**60 entries.
template <typename T>
using HashMap = std::unordered_map<Hash128, T, HashLowHalf>;

}  // namespace kernwright
