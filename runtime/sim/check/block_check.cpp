// The race check word by word, where a glance at the shadows did not settle it.
#include "sim/check/block_check.h"

#include "sim/check/report/finding_text.h"
#include "sim/code/program.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/lane_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kernwright::sim {
using ptx::Space;

BlockCheck::BlockCheck(CheckedLaunch& launch, const WatchedBlocks& blocks)
    : ops(launch.program.ops.data()),
      init(launch.checks.init),
      race(launch.checks.race),
      sync(launch.checks.sync),
      parts(launch.program.kernel_orders_parts(blocks.kernel)),
      alone(launch.alone),
      defers(race && !parts),
      pauses(launch.seed != 0),
      written(blocks.shared_bytes),
      where(launch),
      order(where, blocks.warps),
      rules(where, order, parts),
      findings(where),
      regions(launch.shadow),
      unwritten(where, regions, findings),
      copies(*this),
      schedule_(blocks.warps),
      site_store_(launch.program.site_ops.size() + 1),
      shared_bytes_(blocks.shared_bytes),
      warps_(blocks.warps) {
  if (race && !defers) read_epoch = 0;
  if (defers) late.reserve();
  sites = site_store_.data();
  if (launch.program.site_ops.size() > kMostSites) {
    site_store_.resize(kMostSites + 1);
    sites = site_store_.data();
  }
  if (race) {
    const std::size_t words = shared_bytes_ / 4 + 1;
    shared_shadows_.resize(2 * words);
    shared_write = shared_shadows_.data();
    shared_read = shared_write + words;
  }
  if (init) unwritten.enable(shared_bytes_, blocks.local_bytes);
}

BlockCheck::~BlockCheck() {
  forget_stores();
  findings.hand_over();
}

void BlockCheck::begin(const Block& block) {
  copies.forget();
  forget_stores();
  fenced_maps_.clear();
  unwritten.begin();
  lost_.clear();
  speculated_.clear();
  speculating = false;
  note_followed();
  products_.clear();
  where.begin(block);
  cluster_.clear();
  // Shadows of blocks before would be taken for accesses from elsewhere in the cluster.
  if (where.clustered) {
    std::fill(shared_shadows_.begin(), shared_shadows_.end(), 0);
    std::fill(shared_exact_.begin(), shared_exact_.end(), 0);
    copies.forget_origins();
  }
  schedule_.begin(where.launch.seed, block.linear_index);
  if (!order.begin(parts)) race = false;
  begin_phase();
  block_epoch = read_epoch;
  hidden_.clear();
  if (!parts) return;
  readers_.clear();
  arrivals_.fill({});
}

/// All that was done to shared memory before is past.
void BlockCheck::begin_phase() noexcept {
  new_epoch();
  late.clear();
  written.forget();
}

/// Whether a store leaves what the other access wrote.
bool BlockCheck::same_value(const WordAccess& access, Shadow other) const {
  if (access.info.kind != CheckKind::store) return false;
  // What an atomic operation left is right by this order alone: in another it adds to the store.
  if ((other & kStrong) != 0 && (other & kVolatileWrite) == 0) return false;
  const LaneTouch& touch = access.touch;
  const std::array<std::byte, 16> mine =
      stored_value(access.op, access.warp, access.info, access.lane);
  const std::uint64_t begin = std::max(touch.address, access.begin);
  const std::uint64_t end = std::min(touch.address + touch.bytes, access.begin + 4);
  const auto at = static_cast<std::size_t>(begin - touch.address);
  const auto count = static_cast<std::size_t>(end - begin);
  const std::uint32_t thread = thread_of(other);
  const auto lane = static_cast<int>(thread % kLanes);
  const bool same_instruction = thread / kLanes == access.warp.index &&
                                tick_of(other) == order.tick() &&
                                site_of(other) == access.info.site &&
                                (access.warp.mask >> lane & 1) != 0 && touch.addresses != nullptr;
  if (same_instruction && touch.addresses[lane] == touch.addresses[access.lane]) {
    const auto theirs = stored_value(access.op, access.warp, access.info, lane);
    return std::memcmp(mine.data() + at, theirs.data() + at, count) == 0;
  }
  LaneTouch there = touch;
  there.address = begin;
  there.bytes = static_cast<std::uint32_t>(count);
  const std::byte* const memory = host_bytes(access.warp, access.lane, there);
  return memory == nullptr || std::memcmp(mine.data() + at, memory, count) == 0;
}

void BlockCheck::report_race(const WordAccess& access, Shadow other, bool other_wrote,
                             Missing missing, Told told) {
  findings.race({access, other, other_wrote && !rules.is_load(other), missing, told, order.tick()});
}

ReaderLists& BlockCheck::readers(const WordAccess& access) {
  if (access.global) return access.touch.region->readers;
  return access.touch.owner != nullptr ? access.touch.owner->readers_ : readers_;
}

void BlockCheck::examine(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  const CheckedOp& info = ops[warp.op_index(op)];
  const bool global = touch.region != nullptr;
  const Shadow mine = stamp_of(info, warp.thread(lane));
  const bool far = touch.owner != nullptr;
  WordAccess access{
      op, warp, lane, touch, info, global, global || where.clustered, far ? mine | kAside : mine,
      0,  0};
  BlockCheck& owner = far ? *touch.owner : *this;
  if (!global && touch.mode != AccessKind::read) {
    const std::uint64_t at = far ? touch.address % (1u << kRankShift) : touch.address;
    look_at_async_reads(access, owner, at, at + touch.bytes);
  }
  if (global && touch.mode != AccessKind::read) look_at_sources(access);
  const std::uint64_t end = touch.address + touch.bytes;
  if (!global && defers) {
    settle_reads();
    if (touch.mode != AccessKind::read) written.mark(touch.address, end);
    if (((touch.address | touch.bytes) & 3) != 0) note_narrow_read(touch.address, end);
    new_epoch();
  }
  // Until the last word, not until `end`: that is 0 behind the last address of all.
  const std::uint64_t last = (end - 1) & ~std::uint64_t{3};
  for (std::uint64_t at = touch.address & ~std::uint64_t{3};; at += 4) {
    std::uint32_t bytes = 15;
    if (at < touch.address) bytes &= 15u << (touch.address - at);
    if (at == last) bytes &= 15u >> (at + 4 - end);
    access.word = (global ? at % kRegionBytes : far ? at % (1u << kRankShift) : at) / 4;
    access.begin = at;
    if (global) touch.region->by_word(access.word);
    Shadow* const write = global ? touch.region->write : owner.shared_write;
    Shadow* const read = global ? touch.region->read : owner.shared_read;
    examine_word(access, write[access.word], read[access.word], bytes);
    if (at == last) break;
  }
}

void BlockCheck::examine_shadows(const WordAccess& access, Shadow& write, Shadow& read,
                                 Shadow mine) {
  if (looking_ != nullptr) return look_at_writes(access, write);
  if (taking_) return note_late_reader(access, read, mine);
  const bool writes = access.touch.mode != AccessKind::read;
  const auto before = [&](Shadow shadow) {
    return shadow == 0 || order.is_write_ordered(shadow, access.warp, access.lane, access.global);
  };
  const bool repeats = copies.is_copying() && copies.is_twin(access, write);
  if (!repeats) look_at_hidden(access, write);
  if (!repeats && !before(write)) {
    const bool under_way = is_under_way(write);
    if (under_way || (rules.conflicts(write, access) &&
                      !(writes && !rules.is_load(write) && same_value(access, write)))) {
      report_race(access, write, true, under_way ? Missing::wait : Missing::order);
    }
  }
  if (!writes && !access.is_strong()) return note_reader(access, read, mine);
  if (writes) look_at_readers(access, read);
  if (writes || access.info.site < kMostSites) note_write(access, write, mine);
}

/// Copies read global memory until somebody waits for them.
void BlockCheck::look_at_sources(const WordAccess& access) {
  const std::uint64_t begin = access.touch.address, end = begin + access.touch.bytes;
  if (!copies.sources.meets(begin, end)) return;
  const AsyncCopy* const copy = copies.reader_of(begin, end);
  if (copy != nullptr) report_race(access, copy->stamp, false, Missing::wait);
}

/// Plain reads that a write comes after. Of several the one farthest away is named.
void BlockCheck::look_at_readers(const WordAccess& access, Shadow& read) {
  if (read == 0 || access.info.swaps) return;
  const auto unordered = [&](Shadow shadow) {
    return shadow != 0 && !order.is_ordered(shadow, access.warp, access.lane, access.global);
  };
  Shadow farthest = unordered(read) ? read : 0;
  Breadth breadth = farthest == 0 ? Breadth::none : where.breadth_of(access, read);
  Told told = Told::itself;
  if (parts) {
    ReaderLists& lists = readers(access);
    const auto list = hides_readers(access, read) ? lists.find(&read) : lists.end();
    if (list != lists.end()) {
      for (const Shadow shadow : list->second) {
        if (!unordered(shadow) || where.breadth_of(access, shadow) <= breadth) continue;
        farthest = shadow;
        breadth = where.breadth_of(access, shadow);
      }
      if (farthest != 0) lists.erase(list);
    }
  } else if (hides_readers(access, read) && hidden_breadth(access, read) > breadth) {
    farthest = read;
    told = Told::one_of_several;
  }
  if (farthest == 0) return;
  report_race(access, farthest, false, Missing::order, told);
  read = 0;
}

/// Whether others read beside the one that the shadow names, and may have come later than the
/// floor.
bool BlockCheck::hides_readers(const WordAccess& access, Shadow read) const {
  if ((read & kMany) == 0 || (access.global && read < order.launch_floor)) return false;
  const bool of_this_block =
      !access.mixed || ((read & kManyBlocks) == 0 && where.owner(read) == where.block);
  return !of_this_block || read >= order.floor;  // none of them came later than the shadow says
}

/// How far away an unordered one of them is. They are not known one by one, but nothing can have
/// ordered them: only barriers of whole blocks and meetings of warps do in this program.
Breadth BlockCheck::hidden_breadth(const WordAccess& access, Shadow read) const {
  if ((read & (kManyWarps | kManyBlocks)) != 0)
    return where.breadth_of(access, read, Told::one_of_several);
  if (order.has_met(access.warp.index, access.lane, tick_of(read))) return Breadth::none;
  return where.breadth_of(access, read, Told::one_of_several);
}

void BlockCheck::note_reader(const WordAccess& access, Shadow& read, Shadow mine) {
  const Shadow old = read;
  Shadow flags = 0;
  const bool other = old != 0 && ((old ^ mine) & kThreadMask) != 0;
  const bool stale = order.is_forgotten(old, access.global);
  const bool other_block = !stale && access.mixed && where.owner(old) != where.block;
  if (!stale && (other || other_block) &&
      !order.is_ordered(old, access.warp, access.lane, access.global)) {
    flags |= old & kMany;
    flags |= other_block ? kManyBlocks : ((old ^ mine) & kWarpMask) != 0 ? kManyWarps : kManyLanes;
    if (parts) {
      auto& list = readers(access)[&read];
      std::erase_if(list, [&](Shadow shadow) {
        return shadow == 0 || order.is_ordered(shadow, access.warp, access.lane, access.global);
      });
      list.push_back(old & ~kMany);
      rules.make_room(list, mine);
    }
  } else if (!stale) {
    // The reader that is named came before. So did all others of the block where a barrier lies
    // between, and those of its warp where all lanes met; not what other blocks read.
    const bool past = !other_block && tick_of(old) < tick_of(order.floor);
    const bool met = other && !parts && tick_of(old) < order.warp_floor(access.warp.index);
    flags |= old & (past ? kManyBlocks : met ? kManyWarps | kManyBlocks : kMany);
  }
  const bool keep =
      !parts && (flags & kMany) != 0 && (other_block || tick_of(old) == tick_of(mine));
  // The owner's barriers say nothing of readers in other blocks.
  if (!access.global && (flags & kManyBlocks) != 0) flags |= kAside;
  read = (keep ? old : mine) | flags;
}

}  // namespace kernwright::sim
