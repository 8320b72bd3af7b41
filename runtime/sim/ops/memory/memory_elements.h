// The places of a warp's elements x[i], without the address op.
#pragma once

#include "sim/ops/memory/memory_plan.h"

#include <cstdint>
#include <limits>

namespace kernwright::sim::KW_SIM_NS {

/// Whether all lanes have the same base and lane i has the index index[0] + i.
[[gnu::always_inline]] inline bool follow_each_other(const std::uint32_t* index,
                                                     const std::uint64_t* base) {
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

/// The address of lane 0's element, of `bytes` bytes, for an address op and the access after it,
/// with this site. False if they have to run one by one: another pattern than consecutive elements,
/// a negative index, the first time, out of bounds.
[[gnu::always_inline]] inline bool find_elements(const Op* op, const Warp& warp,
                                                 const MemorySite& site, std::uint32_t bytes,
                                                 std::uint64_t& address) {
  if (static_cast<Pattern>(site.pattern) != Pattern::contiguous || site.mask != kAllLanes ||
      site.generation != warp.worker->launch->memory->generation())
    return false;
  const auto* index = warp.reg<std::uint32_t>(op->a);
  const auto* base = warp.reg<std::uint64_t>(op->c);
  address = base[0] + std::uint64_t{index[0]} * bytes + static_cast<std::uint64_t>(op[1].imm);
  constexpr std::uint32_t kMostIndex = std::numeric_limits<std::int32_t>::max() - kLanes;
  return follow_each_other(index, base) && index[0] <= kMostIndex &&
         address - site.first <= site.span && (address & (bytes - 1)) == 0;
}

}  // namespace kernwright::sim::KW_SIM_NS
