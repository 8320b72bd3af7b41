// x[i]: the address of an array's element, and the access behind it, in one step where the lanes'
// elements follow each other.
#include "sim/exec/fast_handlers.h"
#include "sim/exec/ops/memory_choice.h"

#include <array>
#include <limits>

namespace kernwright::sim::KW_SIM_NS {

OpFn select_indexed(OpFn access);

namespace {

#ifndef KW_SIM_SMALL

/// Whether all lanes have the same base and lane i has the index index[0] + i.
bool follow_each_other(const std::uint32_t* index, const std::uint64_t* base) {
#if defined(__AVX512F__)
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i first = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(index[0])), lanes);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(16));
  const __m512i all = _mm512_set1_epi64(static_cast<long long>(base[0]));
  const __m512i low = _mm512_or_si512(_mm512_xor_si512(first, _mm512_load_si512(index)),
                                      _mm512_xor_si512(second, _mm512_load_si512(index + 16)));
  const __m512i high = _mm512_or_si512(_mm512_xor_si512(all, _mm512_load_si512(base + 8)),
                                       _mm512_xor_si512(all, _mm512_load_si512(base + 16)));
  const __m512i rest = _mm512_or_si512(_mm512_xor_si512(all, _mm512_load_si512(base)),
                                       _mm512_xor_si512(all, _mm512_load_si512(base + 24)));
  const __m512i other = _mm512_or_si512(low, _mm512_or_si512(high, rest));
  return _mm512_test_epi64_mask(other, other) == 0;
#else
  std::uint32_t moved = 0;
  std::uint64_t other = 0;
  for (std::uint32_t i = 0; i < kLanes; ++i) moved |= index[i] ^ (index[0] + i);
  for (int i = 0; i < kLanes; ++i) other |= base[i] ^ base[0];
  return (moved | other) == 0;
#endif
}

/// Host address of lane 0's element; null where the ops have to run one by one: another pattern
/// than elements that follow each other, an index that is negative, the first time, out of bounds.
template <std::uint32_t kBytes>
[[gnu::always_inline]] inline std::byte* element_address(const Op* op, const Warp& warp,
                                                         const MemorySite& site) {
  if (static_cast<Pattern>(site.pattern) != Pattern::contiguous || site.mask != kAllLanes ||
      site.generation != warp.worker->launch->memory->generation())
    return nullptr;
  const auto* index = warp.reg<std::uint32_t>(op->a);
  const auto* base = warp.reg<std::uint64_t>(op->c);
  const std::uint64_t address =
      base[0] + std::uint64_t{index[0]} * kBytes + static_cast<std::uint64_t>(op[1].imm);
  constexpr std::uint32_t kMostIndex = std::numeric_limits<std::int32_t>::max() - kLanes;
  if (!follow_each_other(index, base) || index[0] > kMostIndex ||
      address - site.first > site.span || address % kBytes != 0) [[unlikely]]
    return nullptr;
  return host_pointer(address);
}

/// The address alone, by the handler that stood here; its access comes next.
const Op* run_alone(const Op* op, Warp& warp) { return handler_alone(*op)(op, warp); }

template <typename T, int kVec>
const Op* load_indexed(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op[1].site];
  const std::byte* from = element_address<sizeof(T) * kVec>(op, warp, site);
  if (from == nullptr) return run_alone(op, warp);
  fetch_ahead<sizeof(T) * kVec * kLanes>(site, from);
  load_run<T, kVec, kLanes>(Elements<T, kVec>(warp, op[1].d), 0, from);
  return op + 2;
}

template <typename T, int kVec>
const Op* store_indexed(const Op* op, Warp& warp) {
  const MemorySite& site = warp.worker->sites.data()[op[1].site];
  std::byte* to = element_address<sizeof(T) * kVec>(op, warp, site);
  if (to == nullptr) return run_alone(op, warp);
  store_run<T, kVec, kLanes>(to, Elements<T, kVec>(warp, op[1].b), 0);
  return op + 2;
}

struct Fused {
  OpFn access, whole;
};
template <typename T, int kVec>
constexpr Fused kLoad{load<T, kVec, Form::global>, load_indexed<T, kVec>};
template <typename T, int kVec>
constexpr Fused kStore{store<T, kVec, Form::global>, store_indexed<T, kVec>};

constexpr std::array kFused{
    kLoad<std::uint32_t, 1>,  kLoad<std::uint32_t, 2>,  kLoad<std::uint32_t, 4>,
    kLoad<std::uint64_t, 1>,  kLoad<std::uint64_t, 2>,  kStore<std::uint32_t, 1>,
    kStore<std::uint32_t, 2>, kStore<std::uint32_t, 4>, kStore<std::uint64_t, 1>,
    kStore<std::uint64_t, 2>,
};

#endif

}  // namespace

OpFn select_indexed(OpFn access) {
#ifndef KW_SIM_SMALL
  for (const Fused& fused : kFused) {
    if (fused.access == access) return fused.whole;
  }
#endif
  static_cast<void>(access);
  return nullptr;
}

}  // namespace kernwright::sim::KW_SIM_NS
