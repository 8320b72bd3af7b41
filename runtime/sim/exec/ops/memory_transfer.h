// Moves values between the lanes' registers and planned memory, one loop for each pattern.
#pragma once

#include "sim/exec/ops/memory_plan.h"
#include "sim/ir/program.h"
#include "sim/ptx/isa.h"

#include <atomic>
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

/// Memory type to register type: zero- or sign-extends by the signedness of Mem.
template <typename Reg, typename Mem>
[[gnu::always_inline]] inline Reg widen(Mem value) {
  return static_cast<Reg>(value);
}

/// The register of each element of a vector operand, or the one register of a scalar.
template <typename Reg, int kVec>
struct Elements {
  Reg* reg[kVec];
  Elements(const Warp& warp, std::uint32_t operand) {
    if constexpr (kVec == 1) {
      reg[0] = warp.reg<Reg>(operand);
    } else {
      const std::uint32_t* list = warp.program->lists.data() + operand;
      for (int v = 0; v < kVec; ++v) reg[v] = warp.reg<Reg>(list[v]);
    }
  }
};

/// A vector of the build's width. Registers are written in pieces of this size, because what is
/// written in smaller ones cannot be forwarded to the next instruction's vector loads.
#if defined(__AVX512F__)
inline constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr std::size_t kVectorBytes = 32;
#else
inline constexpr std::size_t kVectorBytes = 16;
#endif
template <typename T, std::size_t kBytes>
struct Piece {
  typedef T Vector __attribute__((vector_size(kBytes < kVectorBytes ? kBytes : kVectorBytes)));
};

template <std::size_t kBytes>
[[gnu::always_inline]] inline void copy_pieces(void* to, const void* from) {
  using Vector = typename Piece<std::uint64_t, kBytes>::Vector;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kBytes; i += sizeof(Vector)) {
    Vector piece;
    std::memcpy(&piece, static_cast<const std::byte*>(from) + i, sizeof piece);
    std::memcpy(static_cast<std::byte*>(to) + i, &piece, sizeof piece);
  }
}

/// `count` lanes from `lane` on, whose values follow each other in memory.
template <typename Mem, typename Reg, int kVec, int kCount>
[[gnu::always_inline]] inline void load_run(const Elements<Reg, kVec>& to, int lane,
                                            const std::byte* from) {
  if constexpr (kVec == 1 && sizeof(Mem) == sizeof(Reg)) {
    copy_pieces<kCount * sizeof(Mem)>(to.reg[0] + lane, from);
  } else {
    for (int v = 0; v < kVec; ++v) {
      Reg* d = to.reg[v] + lane;
      KW_LANES for (int i = 0; i < kCount; ++i) d[i] =
          widen<Reg>(peek<Mem>(from + static_cast<std::size_t>(i * kVec + v) * sizeof(Mem)));
    }
  }
}

/// d[0 .. kCount) = value.
template <int kCount, typename T>
[[gnu::always_inline]] inline void fill(T* d, T value) {
  if constexpr (sizeof(T) <= 8) {
    using Vector = typename Piece<T, kCount * sizeof(T)>::Vector;
    const Vector all = value - Vector{};
    for (std::size_t i = 0; i < kCount * sizeof(T); i += sizeof all)
      std::memcpy(reinterpret_cast<std::byte*>(d) + i, &all, sizeof all);
  } else {
    for (int i = 0; i < kCount; ++i) d[i] = value;
  }
}

template <typename Mem, typename Reg, int kVec, int kCount>
[[gnu::always_inline]] inline void load_same(const Elements<Reg, kVec>& to, int lane,
                                             const std::byte* from) {
  for (int v = 0; v < kVec; ++v) {
    fill<kCount>(to.reg[v] + lane,
                 widen<Reg>(peek<Mem>(from + static_cast<std::size_t>(v) * sizeof(Mem))));
  }
}

template <typename Mem, typename Reg, int kVec>
[[gnu::always_inline]] inline void load_one(const Elements<Reg, kVec>& to, int lane,
                                            const std::byte* from) {
  for (int v = 0; v < kVec; ++v)
    to.reg[v][lane] = widen<Reg>(peek<Mem>(from + static_cast<std::size_t>(v) * sizeof(Mem)));
}

/// Whether each pattern gets a loop of its own; rare shapes go lane by lane to keep the code small.
template <typename Mem, typename Reg, int kVec>
inline constexpr bool kPatterns = kVec == 1 || (sizeof(Mem) >= 4 && sizeof(Mem) == sizeof(Reg));

template <typename Mem, typename Reg, int kVec>
[[gnu::always_inline]] inline void load_full(const Elements<Reg, kVec>& to, const std::byte* base,
                                             const MemorySite& site) {
  constexpr int kHalf = kLanes / 2;
  switch (kPatterns<Mem, Reg, kVec> ? static_cast<Pattern>(site.pattern) : Pattern::gather) {
    case Pattern::uniform:
      return load_same<Mem, Reg, kVec, kLanes>(to, 0, base);
    case Pattern::contiguous:
      return load_run<Mem, Reg, kVec, kLanes>(to, 0, base);
    case Pattern::half_uniform:
      load_same<Mem, Reg, kVec, kHalf>(to, 0, base);
      return load_same<Mem, Reg, kVec, kHalf>(to, kHalf, base + site.half);
    case Pattern::half_contiguous:
      load_run<Mem, Reg, kVec, kHalf>(to, 0, base);
      return load_run<Mem, Reg, kVec, kHalf>(to, kHalf, base + site.half);
    default:
      for (int i = 0; i < kLanes; ++i)
        load_one<Mem, Reg, kVec>(
            to, i, base + static_cast<std::int64_t>(site.offsets[static_cast<unsigned>(i)]));
  }
}

template <typename Mem, typename Reg, int kVec>
[[gnu::always_inline]] inline void load_masked(const Warp& warp, const Elements<Reg, kVec>& to,
                                               const std::byte* base, const MemorySite& site) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    load_one<Mem, Reg, kVec>(
        to, i, base + static_cast<std::int64_t>(site.offsets[static_cast<unsigned>(i)]));
  }
}

template <typename Mem, typename Reg, int kVec, int kCount>
[[gnu::always_inline]] inline void store_run(std::byte* to, const Elements<Reg, kVec>& from,
                                             int lane) {
  if constexpr (kVec == 1 && sizeof(Mem) == sizeof(Reg)) {
    copy_pieces<kCount * sizeof(Mem)>(to, from.reg[0] + lane);
  } else if constexpr (kVec == 1) {
    const Reg* s = from.reg[0] + lane;
    KW_LANES for (int i = 0; i < kCount; ++i)
        poke(to + static_cast<std::size_t>(i) * sizeof(Mem), static_cast<Mem>(s[i]));
  } else {
    KW_LANES for (int i = 0; i < kCount; ++i) {
      for (int v = 0; v < kVec; ++v)
        poke(to + static_cast<std::size_t>(i * kVec + v) * sizeof(Mem),
             static_cast<Mem>(from.reg[v][lane + i]));
    }
  }
}

template <typename Mem, typename Reg, int kVec>
[[gnu::always_inline]] inline void store_one(std::byte* to, const Elements<Reg, kVec>& from,
                                             int lane) {
  for (int v = 0; v < kVec; ++v)
    poke(to + static_cast<std::size_t>(v) * sizeof(Mem), static_cast<Mem>(from.reg[v][lane]));
}

/// Lanes in lane order: where several write the same place, the highest lane's value stays.
template <typename Mem, typename Reg, int kVec>
[[gnu::always_inline]] inline void store_full(std::byte* base, const MemorySite& site,
                                              const Elements<Reg, kVec>& from) {
  constexpr int kHalf = kLanes / 2;
  switch (kPatterns<Mem, Reg, kVec> ? static_cast<Pattern>(site.pattern) : Pattern::gather) {
    case Pattern::uniform:
      return store_one<Mem, Reg, kVec>(base, from, kLanes - 1);
    case Pattern::contiguous:
      return store_run<Mem, Reg, kVec, kLanes>(base, from, 0);
    case Pattern::half_contiguous:
      store_run<Mem, Reg, kVec, kHalf>(base, from, 0);
      return store_run<Mem, Reg, kVec, kHalf>(base + site.half, from, kHalf);
    default:
      for (int i = 0; i < kLanes; ++i)
        store_one<Mem, Reg, kVec>(
            base + static_cast<std::int64_t>(site.offsets[static_cast<unsigned>(i)]), from, i);
  }
}

template <typename Mem, typename Reg, int kVec>
[[gnu::always_inline]] inline void store_masked(const Warp& warp, std::byte* base,
                                                const MemorySite& site,
                                                const Elements<Reg, kVec>& from) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    store_one<Mem, Reg, kVec>(
        base + static_cast<std::int64_t>(site.offsets[static_cast<unsigned>(i)]), from, i);
  }
}

inline void fence_after_load(const Op* op) {
  if ((op->flags & kOrdered) != 0) std::atomic_thread_fence(std::memory_order_acquire);
}
inline void fence_before_store(const Op* op) {
  if ((op->flags & kOrdered) != 0) std::atomic_thread_fence(std::memory_order_release);
}

/// Without a plan: makes one and goes lane by lane this time.
template <typename Mem, typename Reg, int kVec>
[[gnu::noinline]] const Op* load_anew(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  const std::byte* base = replan(op, warp, site, {AccessKind::read, sizeof(Mem) * kVec});
  if (base == nullptr) return nullptr;
  load_masked<Mem, Reg, kVec>(warp, Elements<Reg, kVec>(warp, op->d), base, site);
  fence_after_load(op);
  return op + 1;
}

template <typename Mem, typename Reg, int kVec>
[[gnu::noinline]] const Op* store_anew(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  std::byte* base = replan(op, warp, site, {AccessKind::write, sizeof(Mem) * kVec});
  if (base == nullptr) return nullptr;
  fence_before_store(op);
  store_masked<Mem, Reg, kVec>(warp, base, site, Elements<Reg, kVec>(warp, op->b));
  return op + 1;
}

/// Loops move on by one distance. What lies that far ahead comes into the cache early, whatever the
/// order in which warps take turns; no processor sees such a pattern by itself.
template <std::size_t kBytes>
[[gnu::always_inline]] inline void fetch_ahead(MemorySite& site, const std::byte* base) {
  const auto now = reinterpret_cast<std::uint64_t>(base);
  const std::uint64_t next = now + (now - site.last);
  site.last = now;
  __builtin_prefetch(reinterpret_cast<const void*>(next));
  if constexpr (kBytes > 64) __builtin_prefetch(reinterpret_cast<const void*>(next + 64));
}

template <typename Mem, typename Reg, int kVec, Form kForm, bool kMasked>
const Op* load(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  const std::byte* base = plan<kMasked, kForm>(op, warp, site, sizeof(Mem) * kVec);
  if (base == nullptr) [[unlikely]]
    return load_anew<Mem, Reg, kVec>(op, warp);
  if constexpr (kForm == Form::global) fetch_ahead<sizeof(Mem) * kVec * kLanes>(site, base);
  const Elements<Reg, kVec> to(warp, op->d);
  if constexpr (kMasked) {
    load_masked<Mem, Reg, kVec>(warp, to, base, site);
  } else {
    load_full<Mem, Reg, kVec>(to, base, site);
  }
  if constexpr (kForm == Form::any) fence_after_load(op);
  return op + 1;
}

template <typename Mem, typename Reg, int kVec, Form kForm, bool kMasked>
const Op* store(const Op* op, Warp& warp) {
  const MemorySite& site = warp.worker->sites.data()[op->site];
  std::byte* base = plan<kMasked, kForm>(op, warp, site, sizeof(Mem) * kVec);
  if (base == nullptr) [[unlikely]]
    return store_anew<Mem, Reg, kVec>(op, warp);
  if constexpr (kForm == Form::any) fence_before_store(op);
  const Elements<Reg, kVec> from(warp, op->b);
  if constexpr (kMasked) {
    store_masked<Mem, Reg, kVec>(warp, base, site, from);
  } else {
    store_full<Mem, Reg, kVec>(base, site, from);
  }
  return op + 1;
}

/// Handlers for loads (or stores) of one shape, specialised on hot forms only where `kHot`.
template <template <typename, typename, int, Form, bool> typename F, typename Mem, typename Reg,
          int kVec, bool kHot>
OpPair form_pair(std::uint32_t flags) {
  const bool ordered = (flags & kOrdered) != 0, narrow = (flags & kAddress32) != 0;
  const auto space = static_cast<ptx::Space>(flags & kSpaceBits);
  OpPair pair{F<Mem, Reg, kVec, Form::any, false>::run, F<Mem, Reg, kVec, Form::any, true>::run};
  if constexpr (kHot) {
    if (!ordered && space == ptx::Space::global && !narrow)
      pair.full = F<Mem, Reg, kVec, Form::global, false>::run;
    if (!ordered && space == ptx::Space::shared)
      pair.full = narrow ? F<Mem, Reg, kVec, Form::shared32, false>::run
                         : F<Mem, Reg, kVec, Form::shared, false>::run;
  }
  pair.flags = flags;
  pair.uses_site = true;
  return pair;
}

template <typename Mem, typename Reg, int kVec, Form kForm, bool kMasked>
struct LoadHandler {
  static constexpr OpFn run = &load<Mem, Reg, kVec, kForm, kMasked>;
};
template <typename Mem, typename Reg, int kVec, Form kForm, bool kMasked>
struct StoreHandler {
  static constexpr OpFn run = &store<Mem, Reg, kVec, kForm, kMasked>;
};

/// Op::flags from the instruction; `address` is the position of the address operand.
inline std::uint32_t memory_flags(const ptx::Modifiers& modifiers, std::uint8_t address_bytes) {
  ptx::Space space = modifiers.space;
  if (space == ptx::Space::constant)
    space = ptx::Space::global;  // .const addresses are global ones
  std::uint32_t flags = static_cast<std::uint32_t>(space);
  if (address_bytes == 4) flags |= kAddress32;
  switch (modifiers.semantics) {
    case ptx::Semantics::acquire:
    case ptx::Semantics::release:
    case ptx::Semantics::acq_rel:
    case ptx::Semantics::sc:
      flags |= kOrdered;
      break;
    default:
      break;
  }
  return flags;
}

}  // namespace kernwright::sim::KW_SIM_NS
