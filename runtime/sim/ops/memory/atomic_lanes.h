// The frame of every atom and red: lanes in lane order, one read-modify-write each.
#pragma once

#include "sim/ops/memory/memory_transfer.h"
#include "sim/ops/types.h"

#include <bit>

namespace kernwright::sim::KW_SIM_NS {

/// Replaces the 16 bytes at `at` if they still are `seen`; else `seen` gets the current ones. By
/// hand: compilers call a library for this size, and it may take a lock.
inline bool exchange_wide(std::byte* at, Uint128& seen, Uint128 wanted) {
  auto* word = reinterpret_cast<Uint128*>(at);
#if defined(__x86_64__)
  auto low = static_cast<std::uint64_t>(seen), high = static_cast<std::uint64_t>(seen >> 64);
  bool done = false;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(done), "+m"(*word), "+a"(low), "+d"(high)
               : "b"(static_cast<std::uint64_t>(wanted)),
                 "c"(static_cast<std::uint64_t>(wanted >> 64))
               : "memory");
  seen = static_cast<Uint128>(high) << 64 | low;
  return done;
#else
  return __atomic_compare_exchange_n(word, &seen, wanted, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
#endif
}

/// Replaces the value at `at` by F(value, b, c) in one step and returns the old one. `kHost`: other
/// host threads may do the same at the same time.
template <bool kHost, typename F, typename Mem>
[[gnu::always_inline]] inline Mem read_modify_write(std::byte* at, Mem b, Mem c, F f) {
  using Bits = SizedInteger<sizeof(Mem)>;  // what the host's atomics want
  if constexpr (!kHost) {
    const Mem old = peek<Mem>(at);
    poke(at, static_cast<Mem>(f(old, b, c)));
    return old;
  } else if constexpr (sizeof(Mem) == 16) {
    Mem seen = peek<Mem>(at);  // may be torn: then the exchange says what is there
    while (!exchange_wide(at, seen, f(seen, b, c))) {}
    return seen;
  } else {
    auto* word = reinterpret_cast<Bits*>(at);
    Bits seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
      const Mem old = std::bit_cast<Mem>(seen);
      const Bits wanted = std::bit_cast<Bits>(static_cast<Mem>(f(old, b, c)));
      if (__atomic_compare_exchange_n(word, &seen, wanted, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST))
        return old;
    }
  }
}

/// Whether this access stayed in the block's shared memory (known to the site after plan()).
inline bool in_shared(const Op* op, const MemorySite& site) {
  return op_space(op) == ptx::Space::shared ||
         (site.generation != 0 && static_cast<ptx::Space>(site.space) == ptx::Space::shared);
}

template <bool kHost, typename F, typename Mem, typename Reg, int kVec>
[[gnu::always_inline]] inline void atomic_lanes(const Op* op, Warp& warp, std::byte* base,
                                                const MemorySite& site) {
  const Elements<Reg, kVec> b(warp, op->b);
  const Elements<Reg, kVec> d(warp, op->d);
  const Reg* c = op->sources > 2 ? warp.reg<Reg>(op->c) : b.reg[0];
  const bool returns = (op->flags & kReturnsOld) != 0;
  for_active<true>(warp, [&](int i) {
    std::byte* at = base + static_cast<std::int64_t>(site.offsets[static_cast<unsigned>(i)]);
    for (int v = 0; v < kVec; ++v) {
      const Mem old =
          read_modify_write<kHost>(at + static_cast<std::size_t>(v) * sizeof(Mem),
                                   std::bit_cast<Mem>(b.reg[v][i]), std::bit_cast<Mem>(c[i]), F{});
      if (returns) d.reg[v][i] = std::bit_cast<Reg>(old);
    }
  });
}

/// Address of the first active lane's bytes; null after a fault.
[[gnu::noinline]] inline std::byte* atomic_base(const Op* op, Warp& warp, MemorySite& site,
                                                std::uint32_t bytes) {
  std::byte* const base = call_plan<true>(op, warp, site, bytes);
  return base != nullptr ? base : replan(op, warp, site, {AccessKind::atomic, bytes});
}

template <typename F, typename FGlobal, typename Mem, typename Reg, int kVec>
const Op* atomic(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  std::byte* base = atomic_base(op, warp, site, sizeof(Mem) * kVec);
  if (base == nullptr) return nullptr;
  warp.charge(static_cast<unsigned>(std::popcount(warp.mask) * kVec));
  if (kVec == 1 && in_shared(op, site)) {  // vectors are rare: one path is enough
    atomic_lanes<false, F, Mem, Reg, 1>(op, warp, base, site);
  } else {
    atomic_lanes<true, FGlobal, Mem, Reg, kVec>(op, warp, base, site);
  }
  return op + 1;
}

/// `Mem` is F's type of the value, `Reg` the register's lane type (same size). `FGlobal` replaces F
/// outside shared memory if the two differ.
template <typename F, typename Mem, typename Reg, int kVec = 1, typename FGlobal = F>
OpPair atomic_pair() {
  constexpr OpFn kRun = &atomic<F, FGlobal, Mem, Reg, kVec>;
  return {kRun, kRun};
}

inline bool is_atomic(const ptx::Instruction& instruction) {
  const auto handler = instruction.row->handler;
  return handler == ptx::Handler::atom || handler == ptx::Handler::red;
}

/// Register widths must be the type's.
inline bool atomic_widths_fit(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const int bytes = ptx::bits(instruction.modifiers.type[0]) / 8;
  const bool returns = instruction.row->handler == ptx::Handler::atom;
  return widths[returns ? 2 : 1] == bytes && (!returns || widths[0] == bytes);
}

/// Adds Op::flags and the memory site.
inline OpPair finish_atomic(OpPair pair, const ptx::Instruction& instruction,
                            const OperandWidths& widths) {
  if (pair.full == nullptr) return {};
  const bool returns = instruction.row->handler == ptx::Handler::atom;
  pair.flags = memory_flags(instruction.modifiers, widths[returns ? 1 : 0]);
  if (returns && instruction.operands[0].kind != ptx::OperandKind::sink) pair.flags |= kReturnsOld;
  pair.uses_site = true;
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
