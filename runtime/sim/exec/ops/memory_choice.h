// Choosing the handler of a load or store by vector length and register width.
#pragma once

#include "sim/exec/ops/memory_transfer.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// The handlers of ld (LoadHandler) or st (StoreHandler) for each shape; an empty pair for a shape
/// that does not exist.
template <template <typename, typename, int, Form, bool> typename Handler>
struct MemoryChoice {
  template <typename Mem, typename Reg, bool kHot = false>
  static OpPair vectors(int vector, std::uint32_t flags) {
    switch (vector) {
      case 1:
        return form_pair<Handler, Mem, Reg, 1, kHot>(flags);
      case 2:
        return form_pair<Handler, Mem, Reg, 2, kHot>(flags);
      case 4: {
        constexpr bool hot = kHot && sizeof(Mem) == 4;
        return form_pair<Handler, Mem, Reg, 4, hot>(flags);
      }
      case 8:
        if constexpr (sizeof(Mem) == 4 && sizeof(Reg) == 4)
          return form_pair<Handler, Mem, Reg, 8, false>(flags);
        return {};
      default:
        return {};
    }
  }

  /// The register, `reg` bytes wide, has the width of the memory type or a larger one.
  template <typename Mem>
  static OpPair registers(int vector, int reg, std::uint32_t flags) {
    if constexpr (sizeof(Mem) <= 2) {
      if (reg == 2) return vectors<Mem, std::uint16_t>(vector, flags);
    }
    if (reg == 4) return vectors<Mem, std::uint32_t, sizeof(Mem) == 4>(vector, flags);
    return reg == 8 ? vectors<Mem, std::uint64_t>(vector, flags) : OpPair{};
  }
};

}  // namespace kernwright::sim::KW_SIM_NS
