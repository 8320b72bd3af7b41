// Instructions on addresses without data: cvta, isspacep, mapa, prefetches and cache hints.
#include "sim/ops/memory/memory_transfer.h"

#include <bit>
#include <cstring>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::Space;

/// The difference between the generic address of a space and the address within it. Global and
/// constant addresses are generic ones already.
std::uint64_t window_base(Space space) {
  switch (space) {
    case Space::shared:
    case Space::cluster: return kSharedWindow;
    case Space::local: return kLocalWindow;
    case Space::param: return kParamWindow;
    default: return 0;
  }
}

/// flags = ptx::Space.
template <bool kMasked>
const Op* to_generic(const Op* op, Warp& warp) {
  const auto* a = warp.reg<std::uint64_t>(op->a);
  const std::uint64_t window = window_base(op_space(op));
  write_lanes<kMasked, std::uint64_t>(warp, op->d, [=](int i) { return a[i] | window; });
  return op + 1;
}

template <bool kMasked>
const Op* from_generic(const Op* op, Warp& warp) {
  const auto* a = warp.reg<std::uint64_t>(op->a);
  const std::uint64_t keep = window_base(op_space(op)) == 0 ? ~std::uint64_t{0} : ~kWindowMask;
  write_lanes<kMasked, std::uint64_t>(warp, op->d, [=](int i) { return a[i] & keep; });
  return op + 1;
}

bool in_space(const Warp& warp, Space space, std::uint64_t address) {
  const std::uint64_t window = address & kWindowMask;
  switch (space) {
    case Space::shared:
      return window == kSharedWindow &&
             is_local_shared(warp, seen_from_block(warp, Space::shared, address));
    case Space::cluster: return window == kSharedWindow;
    case Space::local: return window == kLocalWindow;
    case Space::param: return window == kParamWindow;
    case Space::constant: return is_constant(warp, address);
    default:
      return window != kSharedWindow && window != kLocalWindow && window != kParamWindow &&
             !is_constant(warp, address);
  }
}

template <bool kMasked>
const Op* is_space(const Op* op, Warp& warp) {
  const auto* a = warp.reg<std::uint64_t>(op->a);
  const Space space = op_space(op);
  std::uint32_t bits = 0;
  for_active<kMasked>(
      warp, [&](int i) { bits |= static_cast<std::uint32_t>(in_space(warp, space, a[i])) << i; });
  write_predicate<kMasked>(warp, op->d, bits);
  return op + 1;
}

template <typename T, bool kMasked>
const Op* zero(const Op* op, Warp& warp) {
  write_lanes<kMasked, T>(warp, op->d, [](int) { return T{0}; });
  return op + 1;
}

/// The bytes of the line are undefined afterwards, as those of a write are defined.
const Op* discard_line(const Op* op, Warp& warp) {
  constexpr std::uint64_t kLine = 128;
  constexpr int kUndefined = 0xdc;
  const auto* addresses = warp.reg<std::uint64_t>(op->a);
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t at = addresses[lane] + static_cast<std::uint64_t>(op->imm);
    std::byte* const line =
        locate(op, warp, lane, {Space::global, AccessKind::write, at, kLine, kLine});
    if (line == nullptr) return nullptr;
    std::memset(line, kUndefined, kLine);
  }
  return op + 1;
}

}  // namespace

OpPair select_memory_address(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const auto flags = static_cast<std::uint32_t>(modifiers.space);
  switch (instruction.row->handler) {
    case Handler::cvta:
      if (widths[0] != 8 || widths[1] != 8) return {};
      return modifiers.to ? OpPair{from_generic<false>, from_generic<true>, flags}
                          : OpPair{to_generic<false>, to_generic<true>, flags};
    case Handler::isspacep:
      return widths[1] == 8 ? OpPair{is_space<false>, is_space<true>, flags} : OpPair{};
    case Handler::createpolicy: return {zero<std::uint64_t, false>, zero<std::uint64_t, true>};
    case Handler::prefetch:
    case Handler::prefetchu:
    case Handler::applypriority: return {no_operation, no_operation};
    case Handler::discard: return widths[0] == 8 ? OpPair{discard_line, discard_line} : OpPair{};
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
