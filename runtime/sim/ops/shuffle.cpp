// shfl: values from other lanes of the warp.
#include "sim/ops/lanes.h"
#include "sim/ops/shuffle_lane.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair select_shuffle(const ptx::Instruction& instruction, const OperandWidths& widths);

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

template <ShflMode kMode>
OpPair shuffle_pair(bool sync) {
  return {shuffle<kMode, false>, shuffle<kMode, true>, sync ? kSync : 0};
}

}  // namespace

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
