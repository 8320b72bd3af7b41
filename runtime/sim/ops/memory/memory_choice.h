// Choosing the handler of a load or store by vector length and register width.
#pragma once

#include "sim/ops/memory/memory_transfer.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

struct LoadHandlers {
  template <typename T, int kVec, Form kForm>
  static constexpr OpFn full = &load<T, kVec, kForm>;
  static constexpr OpFn any = &move_any<false, kFull>, masked = &move_any<false, true>;
};
struct StoreHandlers {
  template <typename T, int kVec, Form kForm>
  static constexpr OpFn full = &store<T, kVec, kForm>;
  static constexpr OpFn any = &move_any<true, kFull>, masked = &move_any<true, true>;
};

/// The full-warp handler of a shape in the space given by the flags.
template <typename Handlers, typename T, int kVec>
OpFn hot_handler(std::uint32_t flags) {
  const bool ordered = (flags & kOrdered) != 0, narrow = (flags & kAddress32) != 0;
  const auto space = static_cast<ptx::Space>(flags & kSpaceBits);
  if (!ordered && space == ptx::Space::global && !narrow)
    return Handlers::template full<T, kVec, Form::global>;
  if (!ordered && space == ptx::Space::shared)
    return narrow ? Handlers::template full<T, kVec, Form::shared32>
                  : Handlers::template full<T, kVec, Form::shared>;
  return Handlers::template full<T, kVec, Form::any>;
}

/// The handlers for elements of `bits` in memory in registers of `reg` bytes, as wide or wider; an
/// empty pair for an unknown shape.
template <typename Handlers>
OpPair choose_memory(int bits, int reg, int vector, bool is_signed, std::uint32_t flags) {
  const int memory = bits / 8;
  if (memory >= 8) reg = memory;
  const bool exists = (vector == 1 || (memory <= 8 && (vector == 2 || vector == 4)) ||
                       (vector == 8 && memory == 4 && reg == 4)) &&
                      memory >= 1 && reg >= 2 && (reg == memory || (reg > memory && reg <= 8));
  if (!exists) return {};
  flags |= AccessShape::flags(static_cast<unsigned>(memory), static_cast<unsigned>(reg),
                              static_cast<unsigned>(vector), is_signed);
  OpPair pair{Handlers::any, Handlers::masked, flags, true};
#ifndef KW_SIM_SMALL
  if (memory != reg) return pair;
  switch (memory << 4 | vector) {
    case 4 << 4 | 1: pair.full = hot_handler<Handlers, std::uint32_t, 1>(flags); break;
    case 4 << 4 | 2: pair.full = hot_handler<Handlers, std::uint32_t, 2>(flags); break;
    case 4 << 4 | 4: pair.full = hot_handler<Handlers, std::uint32_t, 4>(flags); break;
    case 8 << 4 | 1: pair.full = hot_handler<Handlers, std::uint64_t, 1>(flags); break;
    case 8 << 4 | 2: pair.full = hot_handler<Handlers, std::uint64_t, 2>(flags); break;
    default: break;
  }
#endif
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
