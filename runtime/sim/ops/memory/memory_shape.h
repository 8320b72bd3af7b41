// Loads and stores with types and vector length read from Op::flags: one function for all shapes
// without their own handler, and for masked code.
#pragma once

#include "sim/code/program.h"
#include "sim/ops/memory/memory_plan.h"

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

namespace kernwright::sim::KW_SIM_NS {

/// A 128-bit value: .b128 registers and memory.
struct Bits128 {
  std::uint64_t low, high;
};

template <typename T>
[[gnu::always_inline]] inline T peek(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
[[gnu::always_inline]] inline void poke(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// The part of Op::flags for ld and st above the flags of memory_plan.h.
struct AccessShape {
  static constexpr int kShift = 8;
  int memory = 0;          ///< log2 of the bytes of one element in memory
  int reg = 0;             ///< log2 of the bytes of its register
  int vector = 0;          ///< log2 of the number of elements
  bool is_signed = false;  ///< registers that are wider than memory get the sign

  explicit AccessShape(std::uint32_t flags)
      : memory(static_cast<int>(flags >> kShift & 7)),
        reg(static_cast<int>(flags >> (kShift + 3) & 7)),
        vector(static_cast<int>(flags >> (kShift + 6) & 3)),
        is_signed((flags >> (kShift + 8) & 1) != 0) {}
  static constexpr std::uint32_t flags(unsigned memory_bytes, unsigned register_bytes,
                                       unsigned vector, bool is_signed) {
    const auto log2 = [](unsigned x) { return static_cast<std::uint32_t>(std::countr_zero(x)); };
    return (log2(memory_bytes) | log2(register_bytes) << 3 | log2(vector) << 6 |
            (is_signed ? 1u << 8 : 0u))
           << kShift;
  }
  std::uint32_t bytes() const { return 1u << (memory + vector); }
};

/// One element of every active lane: loads widen by the signedness of Mem, stores write the lower
/// bytes. Lanes in lane order: where several write the same place, the highest lane's value stays.
template <bool kStore, typename Mem, typename Reg>
[[gnu::noinline]] void move_lanes(const Warp& warp, Reg* reg, std::byte* memory,
                                  const MemorySite& site, std::uint32_t bytes) {
  const std::uint64_t* const offsets = site.offsets.data();
  const auto move = [=](int i, std::uint64_t offset) {
    std::byte* const at = memory + static_cast<std::int64_t>(offset);
    if constexpr (kStore) {
      poke(at, static_cast<Mem>(reg[i]));
    } else {
      reg[i] = static_cast<Reg>(peek<Mem>(at));
    }
  };
  if (warp.mask != kAllLanes) {
    for_active<true>(warp, [=](int i) { move(i, offsets[i]); });
  } else if (static_cast<Pattern>(site.pattern) == Pattern::contiguous && bytes == sizeof(Mem)) {
    KW_LANES for (int i = 0; i < kLanes; ++i) move(i, static_cast<unsigned>(i) * sizeof(Mem));
  } else {
    for (int i = 0; i < kLanes; ++i) move(i, offsets[i]);
  }
}

/// Calls f.operator()<Mem, Reg>() with the unsigned types of these widths, Mem signed where asked.
template <typename F>
[[gnu::always_inline]] inline void visit_types(const AccessShape& shape, F f) {
  switch (shape.memory << 4 | shape.reg << 1 | (shape.is_signed ? 1 : 0)) {
#define KW_SHAPE(memory, reg, Unsigned, Signed, Reg)                               \
  case memory << 4 | reg << 1: return f.template operator()<std::Unsigned, Reg>(); \
  case memory << 4 | reg << 1 | 1: return f.template operator()<std::Signed, Reg>();
    KW_SHAPE(0, 1, uint8_t, int8_t, std::uint16_t)
    KW_SHAPE(0, 2, uint8_t, int8_t, std::uint32_t)
    KW_SHAPE(0, 3, uint8_t, int8_t, std::uint64_t)
    KW_SHAPE(1, 1, uint16_t, uint16_t, std::uint16_t)
    KW_SHAPE(1, 2, uint16_t, int16_t, std::uint32_t)
    KW_SHAPE(1, 3, uint16_t, int16_t, std::uint64_t)
    KW_SHAPE(2, 2, uint32_t, uint32_t, std::uint32_t)
    KW_SHAPE(2, 3, uint32_t, int32_t, std::uint64_t)
    KW_SHAPE(3, 3, uint64_t, uint64_t, std::uint64_t)
#undef KW_SHAPE
    default: return f.template operator()<Bits128, Bits128>();
  }
}

/// Register of element `v` of a vector operand, or the one register of a scalar.
inline std::uint32_t operand_element(const Warp& warp, std::uint32_t operand, int vector, int v) {
  return vector == 0 ? operand : warp.program->lists.data()[operand + static_cast<unsigned>(v)];
}

inline void fence_after_load(const Op* op) {
  if ((op->flags & kOrdered) != 0) std::atomic_thread_fence(std::memory_order_acquire);
}
inline void fence_before_store(const Op* op) {
  if ((op->flags & kOrdered) != 0) std::atomic_thread_fence(std::memory_order_release);
}

/// Moves by a plan, for the active lanes.
template <bool kStore>
[[gnu::noinline]] const Op* move_planned(const Op* op, Warp& warp, std::byte* base,
                                         const MemorySite& site) {
  const AccessShape shape(op->flags);
  if constexpr (kStore) fence_before_store(op);
  visit_types(shape, [&]<typename Mem, typename Reg>() {
    for (int v = 0; v < 1 << shape.vector; ++v) {
      const std::uint32_t reg = operand_element(warp, kStore ? op->b : op->d, shape.vector, v);
      move_lanes<kStore, Mem, Reg>(warp, warp.reg<Reg>(reg),
                                   base + static_cast<std::size_t>(v) * sizeof(Mem), site,
                                   shape.bytes());
    }
  });
  if constexpr (!kStore) fence_after_load(op);
  return op + 1;
}

/// Without a plan: makes one first.
template <bool kStore>
[[gnu::noinline]] const Op* move_anew(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  const AccessKind kind = kStore ? AccessKind::write : AccessKind::read;
  std::byte* base = replan(op, warp, site, {kind, AccessShape(op->flags).bytes()});
  return base == nullptr ? nullptr : move_planned<kStore>(op, warp, base, site);
}

/// Any shape in any space.
template <bool kStore, bool kMasked>
const Op* move_any(const Op* op, Warp& warp) {
  const MemorySite& site = warp.worker->sites.data()[op->site];
  std::byte* base = call_plan<kMasked>(op, warp, site, AccessShape(op->flags).bytes());
  if (base == nullptr) [[unlikely]]
    return move_anew<kStore>(op, warp);
  return move_planned<kStore>(op, warp, base, site);
}

}  // namespace kernwright::sim::KW_SIM_NS
