// The hot shapes of loads and stores: full warps, registers as wide as memory, one loop for each
// pattern.
#pragma once

#include "sim/ops/memory/memory_shape.h"
#include "sim/ptx/isa.h"

#include <cstring>

namespace kernwright::sim::KW_SIM_NS {

/// The register of each element of a vector operand, or the one register of a scalar.
template <typename T, int kVec>
struct Elements {
  T* reg[kVec];
  Elements(const Warp& warp, std::uint32_t operand) {
    if constexpr (kVec == 1) {
      reg[0] = warp.reg<T>(operand);
    } else {
      const std::uint32_t* list = warp.program->lists.data() + operand;
      for (int v = 0; v < kVec; ++v) reg[v] = warp.reg<T>(list[v]);
    }
  }
};

/// A vector of the build's width. Registers are written in pieces of this size, because smaller
/// writes cannot be forwarded to the next instruction's vector loads.
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

/// `count` lanes from `lane` on, with contiguous values in memory.
template <typename T, int kVec, int kCount>
[[gnu::always_inline]] inline void load_run(const Elements<T, kVec>& to, int lane,
                                            const std::byte* from) {
  if constexpr (kVec == 1) {
    copy_pieces<kCount * sizeof(T)>(to.reg[0] + lane, from);
  } else {
    for (int v = 0; v < kVec; ++v) {
      T* d = to.reg[v] + lane;
      KW_LANES for (int i = 0; i < kCount; ++i) d[i] =
          peek<T>(from + static_cast<std::size_t>(i * kVec + v) * sizeof(T));
    }
  }
}

/// d[0 .. kCount) = value.
template <int kCount, typename T>
[[gnu::always_inline]] inline void fill(T* d, T value) {
  using Vector = typename Piece<T, kCount * sizeof(T)>::Vector;
  const Vector all = value - Vector{};
  for (std::size_t i = 0; i < kCount * sizeof(T); i += sizeof all)
    std::memcpy(reinterpret_cast<std::byte*>(d) + i, &all, sizeof all);
}

template <typename T, int kVec, int kCount>
[[gnu::always_inline]] inline void load_same(const Elements<T, kVec>& to, int lane,
                                             const std::byte* from) {
  for (int v = 0; v < kVec; ++v) {
    fill<kCount>(to.reg[v] + lane, peek<T>(from + static_cast<std::size_t>(v) * sizeof(T)));
  }
}

template <typename T, int kVec>
[[gnu::always_inline]] inline void load_one(const Elements<T, kVec>& to, int lane,
                                            const std::byte* from) {
  for (int v = 0; v < kVec; ++v)
    to.reg[v][lane] = peek<T>(from + static_cast<std::size_t>(v) * sizeof(T));
}

template <typename T, int kVec>
[[gnu::always_inline]] inline void load_full(const Elements<T, kVec>& to, const std::byte* base,
                                             const MemorySite& site) {
  constexpr int kHalf = kLanes / 2;
  switch (static_cast<Pattern>(site.pattern)) {
    case Pattern::uniform: return load_same<T, kVec, kLanes>(to, 0, base);
    case Pattern::contiguous: return load_run<T, kVec, kLanes>(to, 0, base);
    case Pattern::half_uniform:
      load_same<T, kVec, kHalf>(to, 0, base);
      return load_same<T, kVec, kHalf>(to, kHalf, base + site.half);
    case Pattern::half_contiguous:
      load_run<T, kVec, kHalf>(to, 0, base);
      return load_run<T, kVec, kHalf>(to, kHalf, base + site.half);
    default:
      for (int i = 0; i < kLanes; ++i)
        load_one<T, kVec>(to, i,
                          base + static_cast<std::int64_t>(site.offsets[static_cast<unsigned>(i)]));
  }
}

template <typename T, int kVec, int kCount>
[[gnu::always_inline]] inline void store_run(std::byte* to, const Elements<T, kVec>& from,
                                             int lane) {
  if constexpr (kVec == 1) {
    copy_pieces<kCount * sizeof(T)>(to, from.reg[0] + lane);
  } else {
    KW_LANES for (int i = 0; i < kCount; ++i) {
      for (int v = 0; v < kVec; ++v)
        poke(to + static_cast<std::size_t>(i * kVec + v) * sizeof(T), from.reg[v][lane + i]);
    }
  }
}

template <typename T, int kVec>
[[gnu::always_inline]] inline void store_one(std::byte* to, const Elements<T, kVec>& from,
                                             int lane) {
  for (int v = 0; v < kVec; ++v)
    poke(to + static_cast<std::size_t>(v) * sizeof(T), from.reg[v][lane]);
}

/// Lanes in lane order: where several write the same place, the highest lane's value stays.
template <typename T, int kVec>
[[gnu::always_inline]] inline void store_full(std::byte* base, const MemorySite& site,
                                              const Elements<T, kVec>& from) {
  constexpr int kHalf = kLanes / 2;
  switch (static_cast<Pattern>(site.pattern)) {
    case Pattern::uniform: return store_one<T, kVec>(base, from, kLanes - 1);
    case Pattern::contiguous: return store_run<T, kVec, kLanes>(base, from, 0);
    case Pattern::half_contiguous:
      store_run<T, kVec, kHalf>(base, from, 0);
      return store_run<T, kVec, kHalf>(base + site.half, from, kHalf);
    default:
      for (int i = 0; i < kLanes; ++i)
        store_one<T, kVec>(base + static_cast<std::int64_t>(site.offsets[static_cast<unsigned>(i)]),
                           from, i);
  }
}

/// Loops move on by one distance. Memory so far ahead is brought into the cache early, for any
/// order of warps; processors do not detect such a pattern.
template <std::size_t kBytes>
[[gnu::always_inline]] inline void fetch_ahead(MemorySite& site, const std::byte* base) {
  const auto now = reinterpret_cast<std::uint64_t>(base);
  const std::uint64_t next = now + (now - site.last);
  site.last = now;
  __builtin_prefetch(reinterpret_cast<const void*>(next));
  if constexpr (kBytes > 64) __builtin_prefetch(reinterpret_cast<const void*>(next + 64));
}

/// The handlers of full warps.
template <typename T, int kVec, Form kForm>
const Op* load(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  const std::byte* base = kForm == Form::any ? call_plan<false>(op, warp, site, sizeof(T) * kVec)
                                             : plan<false, kForm>(op, warp, site, sizeof(T) * kVec);
  if (base == nullptr) [[unlikely]]
    return move_anew<false>(op, warp);
  if constexpr (kForm == Form::global) fetch_ahead<sizeof(T) * kVec * kLanes>(site, base);
  load_full<T, kVec>(Elements<T, kVec>(warp, op->d), base, site);
  if constexpr (kForm == Form::any) fence_after_load(op);
  return op + 1;
}

template <typename T, int kVec, Form kForm>
const Op* store(const Op* op, Warp& warp) {
  const MemorySite& site = warp.worker->sites.data()[op->site];
  std::byte* base = kForm == Form::any ? call_plan<false>(op, warp, site, sizeof(T) * kVec)
                                       : plan<false, kForm>(op, warp, site, sizeof(T) * kVec);
  if (base == nullptr) [[unlikely]]
    return move_anew<true>(op, warp);
  if constexpr (kForm == Form::any) fence_before_store(op);
  store_full<T, kVec>(base, site, Elements<T, kVec>(warp, op->b));
  return op + 1;
}

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
    case ptx::Semantics::sc: flags |= kOrdered; break;
    default: break;
  }
  return flags;
}

}  // namespace kernwright::sim::KW_SIM_NS
