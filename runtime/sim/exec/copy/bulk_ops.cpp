// Bulk copies, remote stores and their groups; tensors are tensor_copy.cpp's.
#include "sim/exec/copy/bulk_ops.h"

#include "base/format.h"
#include "sim/code/program.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/block/mbarrier.h"
#include "sim/exec/copy/bulk_lane.h"
#include "sim/exec/copy/bulk_reduce.h"
#include "sim/exec/watcher.h"

#include <bit>
#include <cstring>
#include <vector>

namespace kernwright::sim {

using ptx::Space;

std::uint32_t BulkForm::pack() const noexcept {
  return static_cast<std::uint32_t>(kind) | narrow << 4 | (multicast ? 1u << 8 : 0) |
         (local_target ? 1u << 9 : 0) | rank << 10 | (im2col ? 1u << 14 : 0) |
         static_cast<std::uint32_t>(reduction) << 16 | static_cast<std::uint32_t>(type) << 24;
}

BulkForm BulkForm::unpack(std::uint32_t flags) noexcept {
  BulkForm form;
  form.kind = static_cast<Kind>(flags & 15);
  form.narrow = flags >> 4 & 15;
  form.multicast = (flags >> 8 & 1) != 0;
  form.local_target = (flags >> 9 & 1) != 0;
  form.rank = flags >> 10 & 15;
  form.im2col = (flags >> 14 & 1) != 0;
  form.reduction = static_cast<ptx::AtomOp>(flags >> 16 & 255);
  form.type = static_cast<ptx::Type>(flags >> 24);
  return form;
}

std::uint64_t BulkLane::address(std::uint32_t reg, int index) const {
  const std::int64_t displacement = index == 0   ? op->imm
                                    : index == 1 ? op->imm2
                                                 : std::int64_t{op->target};
  const auto more = static_cast<std::uint64_t>(displacement);
  if ((form.narrow >> index & 1) != 0) {
    return warp.reg<std::uint32_t>(reg)[lane] + static_cast<std::uint32_t>(more);
  }
  return warp.reg<std::uint64_t>(reg)[lane] + more;
}

std::uint64_t BulkLane::shared_address(std::uint32_t reg, int index) const {
  return seen_from_block(warp, Space::cluster, address(reg, index));
}

bool BulkLane::fault(FaultKind kind, std::uint64_t at, std::uint64_t bytes,
                     std::string message) const {
  warp.fault(op, kind, lane, at, bytes, std::move(message));
  return false;
}

std::byte* BulkLane::find(Space space, AccessKind kind, std::uint64_t at, std::uint64_t bytes,
                          std::uint64_t alignment) const {
  return locate(op, warp, lane, {space, kind, at, bytes, alignment});
}

bool BulkLane::find_targets(std::uint64_t target, std::uint64_t bytes, std::uint64_t alignment,
                            std::uint64_t mbarrier, std::uint32_t mask,
                            std::vector<BulkTarget>& found) const {
  const auto add = [&](std::uint64_t data, std::uint64_t barrier) {
    BulkTarget one;
    one.offset = data & kOffsetMask;
    one.data = find(Space::cluster, AccessKind::write, data, bytes, alignment);
    if (one.data != nullptr) one.mbarrier = find(Space::cluster, AccessKind::atomic, barrier, 8, 8);
    if (one.mbarrier == nullptr) return false;
    one.barrier_offset = barrier & kOffsetMask;
    const std::uint64_t tag = barrier >> kRankShift & kRankMask;
    const ClusterMember& member = *warp.block->member;
    one.block = member.cluster->members[tag == 0 ? member.rank : tag - 1]->block;
    found.push_back(one);
    return true;
  };
  if (!form.multicast) {
    if (form.local_target && target > kOffsetMask)
      return fault(FaultKind::bounds, target, bytes,
                   "a copy to .shared::cta has an address of another block of the cluster");
    return add(target, mbarrier);
  }
  const std::size_t blocks = warp.block->member->cluster->members.size();
  if (mask == 0 || mask >> blocks != 0)
    return fault(FaultKind::bounds, target, bytes,
                 format("a multicast to the blocks {:#x} of a cluster of {}", mask, blocks));
  for (std::uint32_t m = mask; m != 0; m &= m - 1) {
    const std::uint64_t tag = static_cast<std::uint64_t>(std::countr_zero(m) + 1) << kRankShift;
    if (!add((target & kOffsetMask) | tag, (mbarrier & kOffsetMask) | tag)) return false;
  }
  return true;
}

bool BulkLane::complete(const BulkTarget& target, std::uint64_t bytes) const {
  std::uint64_t word = 0;
  std::memcpy(&word, target.mbarrier, sizeof word);
  MbarrierObject barrier = MbarrierObject::unpack(word);
  const bool phase = barrier.phase;
  if (!barrier.valid)
    return fault(FaultKind::sync, 0, 0, "the mbarrier of the copy was not initialised");
  if (!barrier.add_bytes(-static_cast<std::int64_t>(bytes)))
    return fault(FaultKind::sync, 0, 0,
                 "more than 1048575 bytes were copied that the mbarrier does not expect");
  barrier.complete_if_done();
  word = barrier.pack();
  std::memcpy(target.mbarrier, &word, sizeof word);
  Watcher* const check = target.block->warps[0].worker->check;
  for (const AsyncCopy& copy : target.checked) check->copied(target.barrier_offset, copy);
  if (barrier.phase == phase) return true;
  ++warp.block->member->cluster->phases;
  if (check != nullptr) check->end_phase(target.barrier_offset);
  return true;
}

void BulkLane::note(std::vector<BulkTarget>& targets, std::span<const Piece> bytes,
                    std::span<const Piece> source) const {
  if (check() == nullptr) return;
  for (BulkTarget& target : targets) {
    const std::uint64_t rank = target.block->member->rank;
    for (const Piece& piece : bytes) {
      const Piece to{target.offset + piece.begin, piece.bytes};
      target.checked.push_back(check()->copy_to(op, warp, lane, rank, to, {}));
    }
    if (&target != &targets[0]) continue;
    for (const Piece& piece : source) {
      target.checked.push_back(check()->copy_to(op, warp, lane, rank, {}, piece));
    }
  }
}

bool BulkLane::issue(BulkCopies::Move move) const {
  return warp.block->member->copies.issue(std::move(move));
}

bool BulkLane::issue_in_group(BulkCopies::Move move) const {
  const auto thread = warp.thread(lane);
  return warp.block->member->copies.issue_in_group(thread, std::move(move));
}

namespace {

constexpr std::uint64_t kUnit = 16;  ///< sizes and addresses of bulk copies are multiples of it

bool in_units(const BulkLane& lane, std::uint64_t bytes, std::uint64_t at = 0) {
  if ((bytes | at) % kUnit == 0) return true;
  const std::string what = at == 0 ? "copy" : format("prefetch from {:#x}", at);
  return lane.fault(FaultKind::alignment, at, bytes,
                    format("a bulk {} of {} bytes, which is not a multiple of 16", what, bytes));
}

bool to_shared(const BulkLane& lane) {
  const Op* op = lane.op;
  const std::uint64_t bytes = lane.word(op->c);
  const bool local = lane.form.kind == BulkForm::between_shared;
  if (!in_units(lane, bytes)) return false;
  if (bytes == 0) return true;
  const std::uint32_t mask = lane.form.multicast ? lane.half(op->f) : 0;
  std::vector<BulkTarget> targets;
  if (!lane.find_targets(lane.shared_address(op->a, 0), bytes, kUnit, lane.shared_address(op->e, 2),
                         mask, targets))
    return false;
  const std::uint64_t at = local ? lane.shared_address(op->b, 1) : lane.address(op->b, 1);
  const std::byte* from =
      lane.find(local ? Space::shared : Space::global, AccessKind::read, at, bytes, kUnit);
  if (from == nullptr) return false;
  const Piece to{0, bytes}, source{at, local ? 0 : bytes};
  lane.note(targets, {&to, 1}, {&source, 1});
  if (Watcher* const check = lane.check(); check != nullptr && local) {
    const Piece read{at & kOffsetMask, bytes};
    check->copy_between(op, lane.warp, lane.lane, read, targets[0].checked[0]);
  }
  return lane.issue([lane = lane.later(), targets, from, bytes] {
    for (const BulkTarget& target : targets) {
      reduce_bytes(target.data, from, bytes, lane.form.reduction, lane.form.type);
      if (!lane.now().complete(target, bytes)) return false;
    }
    return true;
  });
}

bool to_global(const BulkLane& lane) {
  const Op* op = lane.op;
  const std::uint64_t bytes = lane.word(op->c);
  if (!in_units(lane, bytes)) return false;
  if (bytes == 0) return true;
  std::byte* to =
      lane.find(Space::global,
                lane.form.reduction == ptx::AtomOp::none ? AccessKind::write : AccessKind::atomic,
                lane.address(op->a, 0), bytes, kUnit);
  if (to == nullptr) return false;
  const std::uint64_t at = lane.shared_address(op->b, 1);
  const std::byte* from = lane.find(Space::shared, AccessKind::read, at, bytes, kUnit);
  if (from == nullptr) return false;
  if (lane.check() != nullptr) {
    BulkStore store;
    store.source = {{at & kOffsetMask, bytes}};
    store.to = {{lane.address(op->a, 0), bytes}};
    lane.check()->copy_from(op, lane.warp, lane.lane, std::move(store));
  }
  return lane.issue_in_group([lane = lane.later(), to, from, bytes] {
    reduce_bytes(to, from, bytes, lane.form.reduction, lane.form.type, true);
    return true;
  });
}

/// st.async and red.async: `rank` values of the form's type.
bool store_async(const BulkLane& lane) {
  const Op* op = lane.op;
  const std::uint64_t element = static_cast<std::uint64_t>(ptx::bits(lane.form.type)) / 8;
  const std::uint64_t bytes = element * lane.form.rank;
  std::array<std::byte, 32> values{};
  const std::uint32_t* lists = lane.warp.program->lists.data();
  for (std::uint32_t v = 0; v < lane.form.rank; ++v) {
    const std::uint32_t reg = lane.form.rank == 1 ? op->b : lists[op->b + v];
    std::memcpy(values.data() + v * element,
                lane.warp.frame + reg + static_cast<std::uint64_t>(lane.lane) * element, element);
  }
  std::vector<BulkTarget> targets;
  if (!lane.find_targets(lane.shared_address(op->a, 0), bytes, bytes, lane.shared_address(op->c, 1),
                         0, targets))
    return false;
  const Piece to{0, bytes};
  lane.note(targets, {&to, 1}, {});
  return lane.issue([lane = lane.later(), target = targets[0], values, bytes] {
    reduce_bytes(target.data, values.data(), bytes, lane.form.reduction, lane.form.type);
    return lane.now().complete(target, bytes);
  });
}

}  // namespace

const Op* bulk_copy(const Op* op, Warp& warp) {
  constexpr unsigned kBulkCost = 500;
  const BulkForm form = BulkForm::unpack(op->flags);
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const BulkLane lane{op, warp, std::countr_zero(m), form};
    bool ok = true;
    warp.charge(kBulkCost);
    switch (form.kind) {
      case BulkForm::to_shared:
      case BulkForm::between_shared: ok = to_shared(lane); break;
      case BulkForm::to_global: ok = to_global(lane); break;
      case BulkForm::tensor_to_shared: ok = tensor_to_shared(lane); break;
      case BulkForm::tensor_to_global: ok = tensor_to_global(lane); break;
      case BulkForm::tensor_prefetch: ok = tensor_prefetch(lane); break;
      case BulkForm::store: ok = store_async(lane); break;
      case BulkForm::prefetch: ok = in_units(lane, lane.word(op->b), lane.address(op->a, 0)); break;
    }
    if (!ok) return nullptr;
  }
  return op + 1;
}

const Op* bulk_commit(const Op* op, Warp& warp) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    warp.block->member->copies.commit(warp.thread(std::countr_zero(m)));
  }
  return op + 1;
}

const Op* bulk_wait(const Op* op, Warp& warp) {
  const std::uint32_t left = warp.reg<std::uint32_t>(op->a)[0];
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const auto thread = warp.thread(std::countr_zero(m));
    if (!warp.block->member->copies.wait(thread, left)) return nullptr;
  }
  return op + 1;
}

}  // namespace kernwright::sim
