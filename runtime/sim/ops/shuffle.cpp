// shfl: values from other lanes of the warp.
#include "sim/code/fast_handlers.h"
#include "sim/ops/lanes.h"
#include "sim/ops/shuffle_lane.h"
#include "sim/ptx/isa.h"

#include <array>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_shuffle(const ptx::Instruction& instruction, const OperandWidths& widths);
OpFn select_constant_shuffle(OpFn shuffle);

namespace {

using ptx::ShflMode;

/// Op::flags: has a member mask.
constexpr std::uint32_t kSync = 1;

/// out[i] = in[from[i]]; `from` holds 0 to 31.
inline void permute(std::uint32_t* out, const std::uint32_t* in, const std::int32_t* from) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_load_si512(in), high = _mm512_load_si512(in + 16);
  for (int i = 0; i < kLanes; i += 16)
    _mm512_store_si512(out + i, _mm512_permutex2var_epi32(low, _mm512_load_si512(from + i), high));
#else
  for (int i = 0; i < kLanes; ++i) out[i] = in[from[i]];
#endif
}

template <ShflMode kMode, bool kMasked>
const Op* shuffle(const Op* op, Warp& warp) {
  // A full warp is complete.
  if (kMasked && warp.mask != kAllLanes && (op->flags & kSync) != 0 &&
      !warp.converge(op, warp.reg<std::uint32_t>(op->e)))
    return nullptr;
  const auto* b = warp.reg<std::int32_t>(op->b);
  const auto* c = warp.reg<std::int32_t>(op->c);
  alignas(64) std::int32_t from[kLanes], outside[kLanes];
  alignas(64) std::uint32_t value[kLanes];
  KW_LANES for (int i = 0; i < kLanes; ++i) {
    const std::int32_t lane = source_lane<kMode>(i, b[i], c[i]);
    outside[i] = lane < 0 ? -1 : 0;
    from[i] = lane < 0 ? i : lane;
  }
  permute(value, warp.reg<std::uint32_t>(op->a), from);
  if (kMasked && warp.mask != kAllLanes) {
    // Undefined by the manual if the source lane is inactive. An H100 gives 0, and some reductions
    // over parts of a warp rely on it.
    alignas(64) std::uint32_t active[kLanes];
    permute(active, warp.lane_mask.data(), from);
    KW_LANES for (int i = 0; i < kLanes; ++i) value[i] &= active[i];
  }
  write_lanes<kMasked, std::uint32_t>(warp, op->d, [&](int i) { return value[i]; });
  write_predicate<kMasked>(warp, op->d2, ~pack_mask(outside));
  return op + 1;
}

#ifndef KW_SIM_SMALL

/// Lanes with an existing source if the whole warp is one segment.
template <ShflMode kMode>
constexpr std::uint32_t lanes_inside(std::uint32_t delta) {
  return kMode == ShflMode::up ? ~0u << delta : kMode == ShflMode::down ? ~0u >> delta : ~0u;
}

/// The same in full warps for one segment and one b: in Op::imm.
template <ShflMode kMode>
const Op* constant_shuffle(const Op* op, Warp& warp) {
  const auto delta = static_cast<std::int32_t>(op->imm);
  const std::uint32_t inside = lanes_inside<kMode>(static_cast<std::uint32_t>(delta));
  const auto* in = warp.reg<std::uint32_t>(op->a);
  auto* d = warp.reg<std::uint32_t>(op->d);
  warp.pred(op->d2) = inside;
#if defined(__AVX512F__)
  const __m512i low = _mm512_load_si512(in), high = _mm512_load_si512(in + 16);
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i by = _mm512_set1_epi32(delta);
  const auto read = [&](int first) {
    const __m512i own = _mm512_or_si512(lanes, _mm512_set1_epi32(first));
    const __m512i other = kMode == ShflMode::up     ? _mm512_sub_epi32(own, by)
                          : kMode == ShflMode::down ? _mm512_add_epi32(own, by)
                          : kMode == ShflMode::bfly ? _mm512_xor_si512(own, by)
                                                    : by;
    const auto exists = static_cast<__mmask16>(inside >> first);
    const __m512i from = kMode == ShflMode::up || kMode == ShflMode::down
                             ? _mm512_mask_mov_epi32(own, exists, other)
                             : other;
    return _mm512_permutex2var_epi32(low, from, high);
  };
  const __m512i first = read(0), second = read(16);
  _mm512_store_si512(d, first);
  _mm512_store_si512(d + 16, second);
#else
  alignas(64) std::uint32_t value[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const std::int32_t from = source_lane<kMode>(i, delta, kMode == ShflMode::up ? 0 : 31);
    value[i] = in[from < 0 ? i : from];
  }
  for (int i = 0; i < kLanes; ++i) d[i] = value[i];
#endif
  return op + 1;
}

struct Shuffle {
  OpFn any, constant;
};
constexpr std::array kShuffles{
    Shuffle{shuffle<ShflMode::up, false>, constant_shuffle<ShflMode::up>},
    Shuffle{shuffle<ShflMode::down, false>, constant_shuffle<ShflMode::down>},
    Shuffle{shuffle<ShflMode::bfly, false>, constant_shuffle<ShflMode::bfly>},
    Shuffle{shuffle<ShflMode::idx, false>, constant_shuffle<ShflMode::idx>},
};

#endif

template <ShflMode kMode>
OpPair shuffle_pair(bool sync) {
  return {shuffle<kMode, false>, shuffle<kMode, true>, sync ? kSync : 0};
}

}  // namespace

OpFn select_constant_shuffle(OpFn shuffle) {
#ifndef KW_SIM_SMALL
  for (const Shuffle& known : kShuffles) {
    if (known.any == shuffle) return known.constant;
  }
#endif
  static_cast<void>(shuffle);
  return nullptr;
}

OpPair select_shuffle(const ptx::Instruction& instruction, const OperandWidths&) {
  if (instruction.row->handler != ptx::Handler::shfl) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  switch (modifiers.shfl) {
    case ShflMode::up: return shuffle_pair<ShflMode::up>(modifiers.sync);
    case ShflMode::down: return shuffle_pair<ShflMode::down>(modifiers.sync);
    case ShflMode::bfly: return shuffle_pair<ShflMode::bfly>(modifiers.sync);
    case ShflMode::idx: return shuffle_pair<ShflMode::idx>(modifiers.sync);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
