// Building blocks of handlers: loops over the 32 lanes of a register, in a full and a masked
// variant.
//
// A handler is a template instance `fn<kMasked>` or, where it writes register d alone, one for full
// warps whose masked form computes every lane and restores those that are off, so it must not trap
// on any input (integer division checks its divisor); `pair<...>()` helpers give both as an OpPair.
// Functors are stateless structs with a call operator on one lane, inlined into a loop that g++ and
// clang vectorise. Use the *_serial forms where computing is dear.
#pragma once

#include "sim/code/dispatch.h"
#include "sim/exec/warp/warp.h"
#include "sim/numeric/isa_namespace.h"

#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__x86_64__)
#include <emmintrin.h>  // the whole takes the compiler as long as all else here
#endif

/// Before a loop over lanes: a destination may be the same register as a source, never a shifted
/// one, so lanes do not depend on each other.
#if defined(__clang__)
#define KW_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define KW_LANES _Pragma("GCC ivdep")
#endif

namespace kernwright::sim::KW_SIM_NS {

/// The kMasked argument for full handlers of most families: builds for size have one handler, the
/// masked one, for both.
#ifdef KW_SIM_SMALL
inline constexpr bool kFull = true;
#else
inline constexpr bool kFull = false;
#endif

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

/// The integer of so many bytes.
template <std::size_t kBytes, bool kSigned = false>
using SizedInteger = std::tuple_element_t<
    2 * std::countr_zero(kBytes) + (kSigned ? 1 : 0),
    std::tuple<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
               std::uint64_t, std::int64_t, Uint128, Int128>>;

/// Bit i of the result = (flags[i] != 0), where flags hold 0 or -1 as wide as T.
template <typename T>
inline std::uint32_t pack_mask(const T* flags) {
  std::uint32_t bits = 0;
#if defined(__AVX512BW__)
  constexpr int kStep = 64 / static_cast<int>(sizeof(T));
  for (int i = 0; i < kLanes; i += kStep) {
    const __m512i v = _mm512_load_si512(flags + i);
    if constexpr (sizeof(T) == 2) bits |= _mm512_movepi16_mask(v);
    if constexpr (sizeof(T) == 4) bits |= static_cast<std::uint32_t>(_mm512_movepi32_mask(v)) << i;
    if constexpr (sizeof(T) == 8) bits |= static_cast<std::uint32_t>(_mm512_movepi64_mask(v)) << i;
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 8) {
    for (int i = 0; i < kLanes; i += 4) {
      const __m256d v = _mm256_load_pd(reinterpret_cast<const double*>(flags + i));
      bits |= static_cast<std::uint32_t>(_mm256_movemask_pd(v)) << i;
    }
  } else if constexpr (sizeof(T) == 4) {
    for (int i = 0; i < kLanes; i += 8) {
      const __m256 v = _mm256_load_ps(reinterpret_cast<const float*>(flags + i));
      bits |= static_cast<std::uint32_t>(_mm256_movemask_ps(v)) << i;
    }
  } else {
    for (int i = 0; i < kLanes; i += 16) {
      const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(flags + i));
      const __m128i high = _mm_load_si128(reinterpret_cast<const __m128i*>(flags + i + 8));
      bits |= static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high))) << i;
    }
  }
#else
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<std::uint32_t>(flags[i] & 1) << i;
#endif
  return bits;
}

/// Bit i = f(a[i], b[i]).
template <typename T, typename F>
inline std::uint32_t compare_lanes(const T* a, const T* b, F f) {
  using Flag = SizedInteger<sizeof(T), true>;
  alignas(64) Flag flags[kLanes];
  KW_LANES for (int i = 0; i < kLanes; ++i) flags[i] = f(a[i], b[i]) ? Flag{-1} : Flag{0};
  return pack_mask(flags);
}

/// d[i] = bit i of `mask` ? a[i] : b[i].
template <typename T>
inline void blend_lanes(T* d, std::uint32_t mask, const T* a, const T* b) {
#if defined(__AVX512BW__)
  constexpr int kStep = 64 / static_cast<int>(sizeof(T));
  for (int i = 0; i < kLanes; i += kStep) {
    const __m512i x = _mm512_load_si512(a + i), y = _mm512_load_si512(b + i);
    __m512i r;
    if constexpr (sizeof(T) == 2) r = _mm512_mask_blend_epi16(mask, y, x);
    if constexpr (sizeof(T) == 4)
      r = _mm512_mask_blend_epi32(static_cast<__mmask16>(mask >> i), y, x);
    if constexpr (sizeof(T) == 8)
      r = _mm512_mask_blend_epi64(static_cast<__mmask8>(mask >> i), y, x);
    _mm512_store_si512(d + i, r);
  }
#else
  KW_LANES for (int i = 0; i < kLanes; ++i) d[i] = ((mask >> i) & 1) != 0 ? a[i] : b[i];
#endif
}

/// Writes a predicate: all lanes, or those of the running split.
template <bool kMasked>
inline void write_predicate(Warp& warp, std::uint32_t offset, std::uint32_t bits) {
  std::uint32_t& p = warp.pred(offset);
  p = kMasked ? (p & ~warp.mask) | (bits & warp.mask) : bits;
}

/// d[i] = value(i) for all lanes or those of the running split; `value` may read any register of
/// lane i.
template <bool kMasked, typename D, typename F>
[[gnu::always_inline]] inline void write_lanes(Warp& warp, std::uint32_t offset, F value) {
  D* d = warp.reg<D>(offset);
  if constexpr (!kMasked) {
    KW_LANES for (int i = 0; i < kLanes; ++i) d[i] = value(i);
  } else {
    const std::uint32_t* m = warp.lane_mask.data();
    KW_LANES for (int i = 0; i < kLanes; ++i) {
      const D r = value(i);
      d[i] = m[i] != 0 ? r : d[i];
    }
  }
}

/// The same, one active lane after the other: for functions that do not vectorise or must not run
/// for inactive lanes.
template <bool kMasked, typename F>
[[gnu::always_inline]] inline void for_active(const Warp& warp, F f) {
  if constexpr (!kMasked) {
    for (int i = 0; i < kLanes; ++i) f(i);
  } else {
    for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) f(std::countr_zero(m));
  }
}

// ---- handlers for masked code from those for full warps

/// Runs a handler of full warps that writes only register d, with lanes as wide as T, and restores
/// the inactive lanes. One copy serves all handlers.
template <typename T>
[[gnu::noinline]] const Op* run_and_restore(const Op* op, Warp& warp, OpFn full) {
  alignas(64) T before[kLanes];
  T* d = warp.reg<T>(op->d);
  KW_LANES for (int i = 0; i < kLanes; ++i) before[i] = d[i];
  const Op* const next = full(op, warp);
#if defined(__AVX512BW__)
  blend_lanes(d, warp.mask, d, before);
#else
  const std::uint32_t* m = warp.lane_mask.data();
  KW_LANES for (int i = 0; i < kLanes; ++i) d[i] = m[i] != 0 ? d[i] : before[i];
#endif
  return next;
}

template <OpFn kRun, typename D>
const Op* masked_run(const Op* op, Warp& warp) {
  return run_and_restore<SizedInteger<sizeof(D)>>(op, warp, kRun);
}

/// The handler with its restoring masked one; D is the type of register d's lanes.
template <OpFn kRun, typename D>
OpPair restored_pair(std::uint32_t flags = 0) {
  return {kRun, masked_run<kRun, D>, flags};
}

// ---- handlers from one-lane functors

/// d = F(a, b, c), as many of them as there are types: of all lanes, or one active lane after the
/// other.
template <bool kSerial, typename F, typename D, typename A, typename B = void, typename C = void>
const Op* lanewise(const Op* op, Warp& warp) {
  const A* a = warp.reg<A>(op->a);
  [[maybe_unused]] const B* b = warp.reg<B>(op->b);
  [[maybe_unused]] const C* c = warp.reg<C>(op->c);
  const auto value = [=](int i) {
    if constexpr (std::is_void_v<B>) {
      return static_cast<D>(F{}(a[i]));
    } else if constexpr (std::is_void_v<C>) {
      return static_cast<D>(F{}(a[i], b[i]));
    } else {
      return static_cast<D>(F{}(a[i], b[i], c[i]));
    }
  };
  if constexpr (kSerial) {
    D* d = warp.reg<D>(op->d);
    for_active<true>(warp, [=](int i) { d[i] = value(i); });
  } else {
    write_lanes<false, D>(warp, op->d, value);
  }
  return op + 1;
}

/// The serial handlers run for the active lanes alone, in full warps too.
template <bool kSerial, typename F, typename D, typename... From>
OpPair lanes_pair() {
  constexpr OpFn kRun = lanewise<kSerial, F, D, From...>;
  if constexpr (kSerial) {
    return {kRun, kRun};
  } else {
    return restored_pair<kRun, D>();
  }
}

template <typename F, typename D, typename A = D>
OpPair unary_pair() {
  return lanes_pair<false, F, D, A>();
}
template <typename F, typename D, typename A = D, typename B = A>
OpPair binary_pair() {
  return lanes_pair<false, F, D, A, B>();
}
template <typename F, typename D, typename A = D, typename B = A, typename C = A>
OpPair ternary_pair() {
  return lanes_pair<false, F, D, A, B, C>();
}

/// For instructions without effect here.
inline const Op* no_operation(const Op* op, Warp&) { return op + 1; }

}  // namespace kernwright::sim::KW_SIM_NS
