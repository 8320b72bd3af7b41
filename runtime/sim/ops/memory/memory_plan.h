// From 32 lane addresses to one host pointer and a pattern: the cached address plan of a memory
// instruction and its slow path.
#pragma once

#include "sim/exec/warp/lane_memory.h"
#include "sim/ops/lanes.h"

#include <bit>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// The pattern of the lanes of one access. Halves are lanes 0-15 and 16-31, the second
/// MemorySite::half bytes from the first, as in 16-wide tiles.
enum class Pattern : std::uint8_t {
  none,
  uniform,
  contiguous,
  half_uniform,
  half_contiguous,
  gather,
};

/// The specialisation of a handler. `any` reads the space and the address width from Op::flags.
enum class Form : std::uint8_t { any, global, shared, shared32 };

/// Op::flags of a memory instruction.
inline constexpr std::uint32_t kSpaceBits = 15;       ///< ptx::Space
inline constexpr std::uint32_t kAddress32 = 1 << 4;   ///< the address register holds 32 bits
inline constexpr std::uint32_t kOrdered = 1 << 5;     ///< acquire, release or stronger
inline constexpr std::uint32_t kReturnsOld = 1 << 6;  ///< atom, not red

inline ptx::Space op_space(const Op* op) { return static_cast<ptx::Space>(op->flags & kSpaceBits); }

/// One access of a warp; `bytes` is each lane's size and alignment.
struct WarpAccess {
  AccessKind kind = AccessKind::read;
  std::uint32_t bytes = 4;
};

/// Absolute addresses of all lanes as seen from the block, displacement included.
inline void lane_addresses(const Op* op, const Warp& warp, std::uint64_t* out) {
  const auto displacement = static_cast<std::uint64_t>(op->imm);
  if ((op->flags & kAddress32) != 0) {
    const auto* reg = warp.reg<std::uint32_t>(op->a);
    const auto low = static_cast<std::uint32_t>(displacement);
    for (int i = 0; i < kLanes; ++i) out[i] = reg[i] + low;  // 32-bit addresses wrap in 32 bits
  } else {
    const auto* reg = warp.reg<std::uint64_t>(op->a);
    for (int i = 0; i < kLanes; ++i) out[i] = reg[i] + displacement;
  }
  if (warp.in_cluster) [[unlikely]] {
    for (int i = 0; i < kLanes; ++i) out[i] = seen_from_block(warp, op_space(op), out[i]);
  }
}

/// A range of memory for a whole access.
struct PlanRange {
  std::uint64_t begin = 0, end = 0;
  ptx::Space space = ptx::Space::generic;  ///< global, shared, local, param
  std::uint64_t window = 0;                ///< what `begin` has over the offset in the space
  bool writable = true;
};

inline PlanRange plan_range(const Warp& warp, ptx::Space space, std::uint64_t address) {
  PlanRange range{.space = space == ptx::Space::cluster ? ptx::Space::shared : space};
  if (space == ptx::Space::generic) {
    range.window = address & kWindowMask;
    range.space = range.window == kSharedWindow  ? ptx::Space::shared
                  : range.window == kParamWindow ? ptx::Space::param
                  : range.window == kLocalWindow ? ptx::Space::local
                                                 : ptx::Space::global;
    if (range.space == ptx::Space::global) range.window = 0;
  }
  std::uint64_t bytes = 0;
  switch (range.space) {
    case ptx::Space::shared: bytes = warp.shared_bytes; break;
    case ptx::Space::local: bytes = warp.local_bytes; break;
    case ptx::Space::param:
      bytes = warp.worker->launch->parameter_bytes;
      range.writable = false;
      break;
    default: {
      range.space = ptx::Space::global;
      const AddressRange found = warp.worker->launch->memory->find(address, &range.writable);
      range.begin = found.begin;
      range.end = found.end;
      return range;
    }
  }
  range.begin = range.window;
  range.end = range.window + bytes;
  return range;
}

/// Host address of `address` (of lane `lane`) in a space with checked bounds.
inline std::byte* find_host(const Warp& warp, ptx::Space space, std::uint64_t address, int lane) {
  constexpr std::uint64_t kOffset = ~kWindowMask;
  switch (space) {
    case ptx::Space::shared: return warp.shared + (address & kOffset);
    case ptx::Space::local:
      return warp.local + static_cast<unsigned>(lane) * warp.local_bytes + (address & kOffset);
    case ptx::Space::param:
      return const_cast<std::byte*>(warp.worker->launch->parameters) + (address & kOffset);
    default: return host_pointer(address);
  }
}

inline Pattern classify(const MemorySite& site, int first, std::uint64_t bytes) {
  std::uint64_t moved = 0, strided = 0, low = 0, high = 0, low_strided = 0, high_strided = 0;
  const auto* offsets = site.offsets.data();
  if (site.mask != kAllLanes) {
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t on = (site.mask >> i) & 1 ? ~std::uint64_t{0} : 0;
      moved |= offsets[i] & on;
      strided |= (offsets[i] ^ (static_cast<std::uint64_t>(i - first) * bytes)) & on;
    }
    return moved == 0 ? Pattern::uniform : strided == 0 ? Pattern::contiguous : Pattern::gather;
  }
  for (int i = 0; i < kLanes; ++i) {
    moved |= offsets[i];
    strided |= offsets[i] ^ (static_cast<std::uint64_t>(i) * bytes);
  }
  if (moved == 0) return Pattern::uniform;
  if (strided == 0) return Pattern::contiguous;
  for (int i = 0; i < kLanes / 2; ++i) {
    const std::uint64_t stride = static_cast<std::uint64_t>(i) * bytes;
    low |= offsets[i];
    high |= offsets[i + 16] ^ offsets[16];
    low_strided |= offsets[i] ^ stride;
    high_strided |= (offsets[i + 16] - offsets[16]) ^ stride;
  }
  if ((low | high) == 0) return Pattern::half_uniform;
  return (low_strided | high_strided) == 0 ? Pattern::half_contiguous : Pattern::gather;
}

/// The cost of a plan, or of one lane without one.
inline constexpr unsigned kGatherCost = 8;

/// Lane by lane, for accesses in several pieces of memory. Leaves offsets between host pointers in
/// the site, for this use alone. Null after a fault of the lowest faulting lane.
[[gnu::noinline]] inline std::byte* locate_lanes(const Op* op, Warp& warp, MemorySite& site,
                                                 const std::uint64_t* address,
                                                 const WarpAccess& access) {
  site.generation = 0;
  site.mask = warp.mask;
  site.pattern = static_cast<std::uint8_t>(Pattern::gather);
  warp.charge(kGatherCost * static_cast<unsigned>(std::popcount(warp.mask)));
  std::byte* first = nullptr;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    const LaneAccess one{op_space(op), access.kind, address[i], access.bytes, access.bytes};
    std::byte* const host = locate(op, warp, i, one);
    if (host == nullptr) return nullptr;
    if (first == nullptr) first = host;
    site.offsets[static_cast<unsigned>(i)] = static_cast<std::uint64_t>(host - first);
  }
  return first;
}

/// Makes the site's plan anew. Returns the host address of the first active lane's bytes.
[[gnu::noinline]] inline std::byte* replan(const Op* op, Warp& warp, MemorySite& site,
                                           const WarpAccess& access) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const int first = std::countr_zero(warp.mask);
  const std::uint64_t base = address[first];
  std::int64_t low = 0, high = 0;
  std::uint64_t bits = base;
  const std::uint32_t* on = warp.lane_mask.data();
  const bool full = warp.mask == kAllLanes;
  for (int i = 0; i < kLanes; ++i) {
    const auto offset = full || on[i] != 0 ? static_cast<std::int64_t>(address[i] - base) : 0;
    site.offsets[static_cast<unsigned>(i)] = static_cast<std::uint64_t>(offset);
    bits |= static_cast<std::uint64_t>(offset);
    low = offset < low ? offset : low;
    high = offset > high ? offset : high;
  }
  const PlanRange range = plan_range(warp, op_space(op), base);
  const std::uint64_t begin = range.begin - static_cast<std::uint64_t>(low);
  const std::uint64_t tail = access.bytes + static_cast<std::uint64_t>(high);
  const bool inside = range.end - range.begin >= tail - static_cast<std::uint64_t>(low) &&
                      base - begin <= range.end - tail - begin && tail < kGlobalTag &&
                      static_cast<std::uint64_t>(-low) < kGlobalTag;
  const bool generic_local = range.space == ptx::Space::local && range.window != 0;
  if (!inside || (bits & (access.bytes - 1)) != 0 || generic_local ||
      (!range.writable && access.kind != AccessKind::read))
    return locate_lanes(op, warp, site, address, access);
  site.generation = warp.worker->launch->memory->generation();
  site.first = begin;
  site.span = range.end - tail - begin;
  site.mask = warp.mask;
  site.space = static_cast<std::uint8_t>(range.space);
  if (range.space == ptx::Space::local) {
    for (int i = 0; i < kLanes; ++i)
      site.offsets[static_cast<unsigned>(i)] +=
          static_cast<std::uint64_t>(i - first) * warp.local_bytes;
  }
  site.pattern = static_cast<std::uint8_t>(classify(site, first, access.bytes));
  warp.charge(kGatherCost);
  site.half = static_cast<std::int64_t>(site.offsets[16]);
  if (warp.worker->launch->accesses != nullptr && range.space == ptx::Space::global) {
    site.generation = 0;  // so that every access comes here
    for (std::uint32_t m = warp.mask; m != 0; m &= m - 1)
      note_access(warp, access.kind, address[std::countr_zero(m)], access.bytes);
  }
  return find_host(warp, range.space, base, first);
}

#if defined(__AVX512F__)
/// Eight lanes' addresses, 32-bit ones widened.
inline __m512i load_addresses(const std::uint64_t* reg) { return _mm512_load_si512(reg); }
inline __m512i load_addresses(const std::uint32_t* reg) {
  // NOTE: g++ 12 warns of its own header where the zeroing form is not used.
  return _mm512_maskz_cvtepu32_epi64(0xff,
                                     _mm256_load_si256(reinterpret_cast<const __m256i*>(reg)));
}
#endif

/// Whether the lanes' distances from the first active one differ from the site's. With a stride,
/// lane i's address counts from i times the stride (local memory).
template <bool kMasked, typename Address>
[[gnu::always_inline]] inline bool offsets_changed(const Warp& warp, const MemorySite& site,
                                                   const Address* reg, int first,
                                                   std::uint64_t stride) {
  const std::uint64_t base = reg[first];
  const std::uint64_t* offsets = site.offsets.data();
#if defined(__AVX512F__)
  if (stride == 0) {
    // The mask's bits, not lane_mask: lane_mask was often just written, in smaller pieces.
    const std::uint32_t on = kMasked ? warp.mask : kAllLanes;
    const __m512i origin = _mm512_set1_epi64(static_cast<long long>(base));
    __m512i changed = _mm512_setzero_si512();
    for (int i = 0; i < kLanes; i += 8) {
      const __m512i address = load_addresses(reg + i);
      const __m512i moved =
          _mm512_xor_si512(_mm512_sub_epi64(address, origin), _mm512_load_si512(offsets + i));
      changed = _mm512_mask_or_epi64(changed, static_cast<__mmask8>(on >> i), changed, moved);
    }
    return _mm512_test_epi64_mask(changed, changed) != 0;
  }
#endif
  std::uint64_t changed = 0;
  for (int i = 0; i < kLanes; ++i) {
    std::uint64_t offset = std::uint64_t{reg[i]} - base;
    if (stride != 0) offset += static_cast<std::uint64_t>(i - first) * stride;
    std::uint64_t bits = offset ^ offsets[i];
    if constexpr (kMasked) {
      const auto on = static_cast<std::int32_t>(warp.lane_mask[static_cast<unsigned>(i)]);
      bits &= static_cast<std::uint64_t>(static_cast<std::int64_t>(on));
    }
    changed |= bits;
  }
  return changed != 0;
}

inline bool is_shared(const MemorySite& site) {
  return static_cast<ptx::Space>(site.space) == ptx::Space::shared;
}

/// Host address of the first active lane's bytes by the site's plan; the others lie at site.offsets
/// from it, as site.pattern says. Null when the plan does not fit: then replan().
template <bool kMasked, Form kForm>
[[gnu::always_inline]] inline std::byte* plan(const Op* op, const Warp& warp,
                                              const MemorySite& site, std::uint32_t bytes) {
  const int first = kMasked ? std::countr_zero(warp.mask) : 0;
  const bool narrow =
      kForm == Form::shared32 || (kForm == Form::any && (op->flags & kAddress32) != 0);
  const std::uint64_t stride =
      kForm == Form::any && op_space(op) == ptx::Space::local ? warp.local_bytes : 0;
  // Plans are of the block's own memory, and of addresses as seen from it.
  constexpr bool kSharedForm = kForm == Form::shared || kForm == Form::shared32;
  const bool shared = kSharedForm || (kForm == Form::any && is_shared(site));
  const std::uint64_t displacement =
      static_cast<std::uint64_t>(op->imm) - (shared ? warp.rank_bits : 0);
  std::uint64_t base;
  bool changed;
  if (narrow) {
    const auto* reg = warp.reg<std::uint32_t>(op->a);
    base = reg[first] + displacement;
    changed = offsets_changed<kMasked>(warp, site, reg, first, stride);
  } else {
    const auto* reg = warp.reg<std::uint64_t>(op->a);
    base = reg[first] + displacement;
    changed = offsets_changed<kMasked>(warp, site, reg, first, stride);
  }
  const bool current = kSharedForm ? site.generation != 0
                                   : site.generation == warp.worker->launch->memory->generation();
  if (changed || !current || site.mask != warp.mask || base - site.first > site.span ||
      (base & (bytes - 1)) != 0) [[unlikely]]
    return nullptr;
  if constexpr (kSharedForm) return warp.shared + base;
  if constexpr (kForm == Form::global) return host_pointer(base);
  return find_host(warp, static_cast<ptx::Space>(site.space), base, first);
}

/// One copy for rarely used handlers.
template <bool kMasked>
[[gnu::noinline]] std::byte* call_plan(const Op* op, const Warp& warp, const MemorySite& site,
                                       std::uint32_t bytes) {
  return plan<kMasked, Form::any>(op, warp, site, bytes);
}

}  // namespace kernwright::sim::KW_SIM_NS
