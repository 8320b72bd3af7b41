// mbarrier: barriers that live in shared memory as 64-bit objects, and cp.async.mbarrier.arrive.
#include "sim/exec/block/cluster.h"
#include "sim/exec/block/mbarrier.h"
#include "sim/exec/warp/traps.h"
#include "sim/ops/memory/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::Verb;

using Barrier = MbarrierObject;
constexpr std::uint64_t kCountLimit = Barrier::kCountLimit;

/// The error of an operand; none if `what` is null.
struct Wrong {
  const char* what = nullptr;
  std::uint64_t value = 0;  ///< of the operand
};

/// Runs `act(lane, barrier, word)` on the barrier of each active lane and stores it back. `act`
/// returns the error.
template <typename F>
const Op* each_barrier(const Op* op, Warp& warp, bool must_be_valid, F act) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    std::byte* at = locate(op, warp, i, {op_space(op), AccessKind::atomic, address[i], 8, 8});
    if (at == nullptr) return nullptr;
    const auto word = peek<std::uint64_t>(at);
    Barrier barrier = Barrier::unpack(word);
    const bool phase = barrier.phase;
    if (must_be_valid && !barrier.valid)
      return warp.fault(op, FaultKind::sync, i, address[i], 8, "the mbarrier was not initialised");
    const Wrong wrong = act(i, barrier, word);
    if (wrong.what != nullptr) return report_operand(op, warp, i, wrong.what, wrong.value);
    poke(at, barrier.pack());
    if (must_be_valid && barrier.phase != phase) ++warp.block->member->cluster->phases;
  }
  return op + 1;
}

constexpr std::uint32_t kHasCount = 1 << 8;   ///< b holds a count
constexpr std::uint32_t kDrop = 1 << 9;       ///< arrive_drop
constexpr std::uint32_t kExpect = 1 << 10;    ///< b holds bytes to expect
constexpr std::uint32_t kParity = 1 << 11;    ///< b holds a parity, not a state
constexpr std::uint32_t kYield = 1 << 12;     ///< try_wait
constexpr std::uint32_t kComplete = 1 << 13;  ///< complete_tx

const Op* init(const Op* op, Warp& warp) {
  const auto* count = warp.reg<std::uint32_t>(op->b);
  return each_barrier(op, warp, false, [&](int i, Barrier& barrier, std::uint64_t) {
    if (count[i] == 0 || count[i] > kCountLimit)
      return Wrong{"mbarrier.init needs a count from 1 to 1048575", count[i]};
    barrier = {count[i], count[i], 0, false, true};
    return Wrong{};
  });
}

const Op* inval(const Op* op, Warp& warp) {
  return each_barrier(op, warp, true, [](int, Barrier& barrier, std::uint64_t) {
    barrier = {};
    return Wrong{};
  });
}

constexpr const char* kTooManyBytes = "more than 1048575 bytes outstanding at an mbarrier";

Wrong arrive_once(Barrier& barrier, std::uint32_t count, bool drop) {
  if (count == 0) return {"mbarrier: a count of arrivals is at least 1", count};
  if (count > barrier.pending)
    return {"mbarrier: more arrivals than the current phase waits for", count};
  barrier.pending -= count;
  if (drop) barrier.expected -= count < barrier.expected ? count : barrier.expected;
  barrier.complete_if_done();
  return {};
}

const Op* arrive(const Op* op, Warp& warp) {
  const std::uint32_t flags = op->flags;
  const auto* b = warp.reg<std::uint32_t>(op->b);
  auto* state = warp.reg<std::uint64_t>(op->d);
  return each_barrier(op, warp, true, [&](int i, Barrier& barrier, std::uint64_t word) {
    if ((flags & kExpect) != 0 && !barrier.add_bytes(b[i])) return Wrong{kTooManyBytes, b[i]};
    const std::uint32_t count = (flags & kHasCount) != 0 ? b[i] : 1;
    const Wrong wrong = arrive_once(barrier, count, (flags & kDrop) != 0);
    if (wrong.what == nullptr) state[i] = word;
    return wrong;
  });
}

/// expect_tx and complete_tx.
const Op* transactions(const Op* op, Warp& warp) {
  const auto* b = warp.reg<std::uint32_t>(op->b);
  const bool complete = (op->flags & kComplete) != 0;
  return each_barrier(op, warp, true, [&](int i, Barrier& barrier, std::uint64_t) {
    const std::int64_t bytes = b[i];
    if (!barrier.add_bytes(complete ? -bytes : bytes)) return Wrong{kTooManyBytes, b[i]};
    if (complete) barrier.complete_if_done();
    return Wrong{};
  });
}

const Op* wait(const Op* op, Warp& warp) {
  const std::uint32_t flags = op->flags;
  std::uint32_t done = 0;
  const Op* next = each_barrier(op, warp, true, [&](int i, const Barrier& barrier, std::uint64_t) {
    const bool waited_for = (flags & kParity) != 0
                                ? (warp.reg<std::uint32_t>(op->b)[i] & 1) != 0
                                : Barrier::unpack(warp.reg<std::uint64_t>(op->b)[i]).phase;
    done |= static_cast<std::uint32_t>(barrier.phase != waited_for) << i;
    return Wrong{};
  });
  if (next == nullptr) return nullptr;
  write_predicate<true>(warp, op->d, done);
  // NOTE: try_wait may suspend the thread; letting the others run is what ends the wait here.
  if ((flags & kYield) == 0 || (done & warp.mask) == warp.mask) return next;
  if ((done & warp.mask) == 0 && !mbarrier_gives_up(op, warp)) return nullptr;
  return warp.yield(op);
}

const Op* pending_count(const Op* op, Warp& warp) {
  const auto* state = warp.reg<std::uint64_t>(op->a);
  write_lanes<true, std::uint32_t>(
      warp, op->d, [=](int i) { return static_cast<std::uint32_t>(state[i] & kCountLimit); });
  return op + 1;
}

/// cp.async.mbarrier.arrive: the copies are done, so the arrival happens now. Without .noinc the
/// pending count grows by one first, which cancels out.
const Op* copy_arrive(const Op* op, Warp& warp) {
  const bool counts = (op->flags & kHasCount) != 0;
  return each_barrier(op, warp, true, [&](int, Barrier& barrier, std::uint64_t) {
    return counts ? arrive_once(barrier, 1, false) : Wrong{};
  });
}

OpPair select_mbarrier(const ptx::Instruction& instruction, std::uint32_t flags) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const bool has_count = instruction.operands.size() > 2;
  switch (modifiers.verb) {
    case Verb::init: return {init, init, flags};
    case Verb::inval: return {inval, inval, flags};
    case Verb::arrive_drop: flags |= kDrop; [[fallthrough]];
    case Verb::arrive:
      if (modifiers.expect_tx) {
        flags |= kExpect;
      } else if (has_count) {
        flags |= kHasCount;
      }
      return {arrive, arrive, flags};
    case Verb::complete_tx: flags |= kComplete; [[fallthrough]];
    case Verb::expect_tx:
    case Verb::none:  // .expect_tx without an arrival is a flag to the parser
      if (modifiers.verb == Verb::none && !modifiers.expect_tx) return {};
      return {transactions, transactions, flags};
    case Verb::try_wait: flags |= kYield; [[fallthrough]];
    case Verb::test_wait:
      if (modifiers.parity) flags |= kParity;
      return {wait, wait, flags};
    case Verb::pending_count: return {pending_count, pending_count, flags};
    default: return {};
  }
}

}  // namespace

OpPair select_async_mbarrier(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const auto address = [&] {  // position of the address operand
    unsigned i = 0;
    while (i < instruction.operands.size() &&
           instruction.operands[i].kind != ptx::OperandKind::address)
      ++i;
    return i;
  }();
  const std::uint32_t flags =
      memory_flags(modifiers, address < instruction.operands.size() ? widths[address] : 8);
  if (instruction.row->handler == Handler::mbarrier) return select_mbarrier(instruction, flags);
  if (instruction.row->handler != Handler::cp || modifiers.verb != Verb::mbarrier_arrive) return {};
  return {copy_arrive, copy_arrive, flags | (modifiers.noinc ? kHasCount : 0)};
}

}  // namespace kernwright::sim::KW_SIM_NS
