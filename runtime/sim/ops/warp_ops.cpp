// Communication between the lanes of a warp: vote, match, activemask, redux, elect.
#include "sim/ops/lanes.h"
#include "sim/ptx/isa.h"

#include <bit>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::AtomOp;
using ptx::Handler;
using ptx::Type;
using ptx::VoteMode;

constexpr std::uint32_t kSync = 1;  ///< has a member mask

/// With a member mask: waits for its lanes. False means: leave the handler.
bool together(const Op* op, Warp& warp, std::uint32_t members) {
  if (warp.mask == kAllLanes || (op->flags & kSync) == 0) return true;  // a full warp is complete
  return warp.converge(op, warp.reg<std::uint32_t>(members));
}

/// The lanes taking part with lane i. Without a member mask: all active ones.
struct Members {
  const std::uint32_t* masks;
  std::uint32_t active;
  Members(const Op* op, const Warp& warp, std::uint32_t operand)
      : masks((op->flags & kSync) != 0 ? warp.reg<std::uint32_t>(operand) : nullptr),
        active(warp.mask) {}
  std::uint32_t operator[](int i) const { return masks != nullptr ? masks[i] & active : active; }
};

// ---- vote, match, activemask, elect, for full and other warps alike

template <VoteMode kMode>
const Op* vote(const Op* op, Warp& warp) {
  if (!together(op, warp, op->b)) return nullptr;
  const std::uint32_t yes = warp.pred(op->a);
  const Members members(op, warp, op->b);
  if constexpr (kMode == VoteMode::ballot) {
    write_lanes<true, std::uint32_t>(warp, op->d, [&](int i) { return yes & members[i]; });
  } else {
    std::uint32_t result = 0;
    for_active<true>(warp, [&](int i) {
      const std::uint32_t group = members[i], votes = yes & group;
      const bool holds = kMode == VoteMode::any   ? votes != 0
                         : kMode == VoteMode::all ? votes == group
                                                  : votes == group || votes == 0;
      result |= static_cast<std::uint32_t>(holds) << i;
    });
    write_predicate<true>(warp, op->d, result);
  }
  return op + 1;
}

template <VoteMode kMode>
OpPair vote_pair(std::uint32_t flags) {
  return {vote<kMode>, vote<kMode>, flags};
}

/// The lanes with `value`, active or not.
template <typename T>
std::uint32_t find_equal_lanes(const T* values, T value) {
  std::uint32_t same = 0;
  for (int i = 0; i < kLanes; ++i) same |= static_cast<std::uint32_t>(values[i] == value) << i;
  return same;
}

template <typename T, bool kAll>
const Op* match(const Op* op, Warp& warp) {
  if (!together(op, warp, op->b)) return nullptr;
  constexpr unsigned kMatchCost = 64;
  warp.charge(kMatchCost);
  const Members members(op, warp, op->b);
  alignas(64) T values[kLanes];
  std::memcpy(values, warp.reg<T>(op->a), sizeof values);
  auto* d = warp.reg<std::uint32_t>(op->d);
  alignas(64) std::uint32_t found[kLanes] = {};
  std::uint32_t all = 0;
  for (std::uint32_t rest = warp.mask; rest != 0;) {  // one value after the other
    const std::uint32_t equal = find_equal_lanes(values, values[std::countr_zero(rest)]);
    for (std::uint32_t m = rest & equal; m != 0; m &= m - 1) {
      const int i = std::countr_zero(m);
      const std::uint32_t group = members[i], same = equal & group;
      found[i] = kAll && same != group ? 0 : same;
      all |= static_cast<std::uint32_t>(same == group) << i;
    }
    rest &= ~equal;
  }
  for_active<true>(warp, [&](int i) { d[i] = found[i]; });
  if constexpr (kAll) write_predicate<true>(warp, op->d2, all);
  return op + 1;
}

const Op* activemask(const Op* op, Warp& warp) {
  const std::uint32_t active = warp.mask;
  write_lanes<true, std::uint32_t>(warp, op->d, [=](int) { return active; });
  return op + 1;
}

const Op* elect(const Op* op, Warp& warp) {
  if (!together(op, warp, op->a)) return nullptr;
  const Members members(op, warp, op->a);
  auto* d = warp.reg<std::uint32_t>(op->d);
  std::uint32_t leaders = 0;
  for_active<true>(warp, [&](int i) {
    const int leader = std::countr_zero(members[i] | std::uint32_t{1} << i);
    leaders |= static_cast<std::uint32_t>(leader == i) << i;
    d[i] = static_cast<std::uint32_t>(leader);
  });
  write_predicate<true>(warp, op->d2, leaders);
  return op + 1;
}

// ---- redux

using Sum = decltype([](auto x, auto y) { return x + y; });
using And = decltype([](auto x, auto y) { return x & y; });
using Or = decltype([](auto x, auto y) { return x | y; });
using Xor = decltype([](auto x, auto y) { return x ^ y; });
template <typename T, bool kMax>
struct Extreme {
  std::uint32_t operator()(std::uint32_t x, std::uint32_t y) const {
    const T a = static_cast<T>(x), b = static_cast<T>(y);
    return static_cast<std::uint32_t>((a < b) == kMax ? b : a);
  }
};
/// -0 is less than +0; a NaN loses, unless kNaN: then the result is NaN.
template <bool kMax, bool kNaN>
struct FloatExtreme {
  std::uint32_t operator()(std::uint32_t x, std::uint32_t y) const {
    const float a = std::bit_cast<float>(x), b = std::bit_cast<float>(y);
    if (a != a || b != b) {
      if (kNaN || (a != a && b != b)) return 0x7fffffffu;
      return a != a ? y : x;
    }
    if (a == b) return kMax ? x & y : x | y;  // differ at most in the sign of zero
    return (a < b) == kMax ? y : x;
  }
};

template <typename F>
const Op* redux(const Op* op, Warp& warp) {
  if (!together(op, warp, op->b)) return nullptr;
  const Members members(op, warp, op->b);
  alignas(64) std::uint32_t values[kLanes];
  std::memcpy(values, warp.reg<std::uint32_t>(op->a), sizeof values);
  auto* d = warp.reg<std::uint32_t>(op->d);
  std::uint32_t group = 0, result = 0;
  for_active<true>(warp, [&](int i) {
    const std::uint32_t members_mask = members[i] | std::uint32_t{1} << i;
    if (members_mask != group) {  // one reduction for lanes that name the same members
      group = members_mask;
      result = values[std::countr_zero(members_mask)];
      for (std::uint32_t m = members_mask & (members_mask - 1); m != 0; m &= m - 1)
        result = F{}(result, values[std::countr_zero(m)]);
    }
    d[i] = result;
  });
  return op + 1;
}

template <typename F>
OpPair redux_pair() {
  return {redux<F>, redux<F>, kSync};
}

template <bool kMax>
OpPair redux_extreme(const ptx::Modifiers& modifiers) {
  switch (modifiers.type[0]) {
    case Type::f32:
      return modifiers.nan ? redux_pair<FloatExtreme<kMax, true>>()
                           : redux_pair<FloatExtreme<kMax, false>>();
    case Type::s32: return redux_pair<Extreme<std::int32_t, kMax>>();
    default: return redux_pair<Extreme<std::uint32_t, kMax>>();
  }
}

OpPair select_redux(const ptx::Modifiers& modifiers) {
  switch (modifiers.atom) {
    case AtomOp::add: return redux_pair<Sum>();
    case AtomOp::and_: return redux_pair<And>();
    case AtomOp::or_: return redux_pair<Or>();
    case AtomOp::xor_: return redux_pair<Xor>();
    case AtomOp::min: return redux_extreme<false>(modifiers);
    case AtomOp::max: return redux_extreme<true>(modifiers);
    default: return {};
  }
}

OpPair select_vote(const ptx::Modifiers& modifiers) {
  const std::uint32_t flags = modifiers.sync ? kSync : 0;
  switch (modifiers.vote) {
    case VoteMode::all: return vote_pair<VoteMode::all>(flags);
    case VoteMode::any: return vote_pair<VoteMode::any>(flags);
    case VoteMode::uni: return vote_pair<VoteMode::uni>(flags);
    case VoteMode::ballot: return vote_pair<VoteMode::ballot>(flags);
    default: return {};
  }
}

template <typename T>
OpPair match_pair(bool all) {
  return all ? OpPair{match<T, true>, match<T, true>, kSync}
             : OpPair{match<T, false>, match<T, false>, kSync};
}

}  // namespace

OpPair select_warp_ops(const ptx::Instruction& instruction, const OperandWidths&) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  switch (instruction.row->handler) {
    case Handler::vote: return select_vote(modifiers);
    case Handler::match:
      if (modifiers.type[0] == Type::b64) return match_pair<std::uint64_t>(modifiers.all);
      return match_pair<std::uint32_t>(modifiers.all);
    case Handler::activemask: return {activemask, activemask};
    case Handler::elect: return {elect, elect, kSync};
    case Handler::redux: return select_redux(modifiers);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
