// The race check word by word, where the quick test of the shadows did not settle it.
#include "sim/check/race/race_check.h"

#include "sim/check/block_check.h"
#include "sim/check/report/finding_text.h"
#include "sim/exec/block/cluster.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kernwright::sim {

RaceCheck::RaceCheck(BlockCheck& check)
    : check_(check),
      where_(check.where),
      order_(check.order),
      rules_(check.rules),
      shared_(check.shared) {}

/// Whether a store writes the same value as the other access.
bool RaceCheck::same_value(const WordAccess& access, Shadow other) const {
  if (access.info.kind != CheckKind::store) return false;
  // An atomic operation's result is right only in this order: in another order it would add to the
  // store.
  if (is_strong(other) && !is_volatile_write(other)) return false;
  const LaneTouch& touch = access.touch;
  const std::array<std::byte, 16> tag =
      stored_value(access.op, access.warp, access.info, access.lane);
  const std::uint64_t begin = std::max(touch.address, access.begin);
  const std::uint64_t end = std::min(touch.address + touch.bytes, access.begin + 4);
  const auto at = static_cast<std::size_t>(begin - touch.address);
  const auto count = static_cast<std::size_t>(end - begin);
  const std::uint32_t thread = get_thread(other);
  const auto lane = static_cast<int>(thread % kLanes);
  const bool same_instruction = thread / kLanes == access.warp.index &&
                                get_tick(other) == order_.tick() &&
                                get_site(other) == access.info.site &&
                                (access.warp.mask >> lane & 1) != 0 && touch.addresses != nullptr;
  if (same_instruction && touch.addresses[lane] == touch.addresses[access.lane]) {
    const auto theirs = stored_value(access.op, access.warp, access.info, lane);
    return std::memcmp(tag.data() + at, theirs.data() + at, count) == 0;
  }
  LaneTouch there = touch;
  there.address = begin;
  there.bytes = static_cast<std::uint32_t>(count);
  const std::byte* const memory = host_bytes(access.warp, access.lane, there);
  return memory == nullptr || std::memcmp(tag.data() + at, memory, count) == 0;
}

void RaceCheck::report(const WordAccess& access, Shadow other, bool other_wrote, Missing missing,
                       Told told) {
  check_.findings.race(
      {access, other, other_wrote && !rules_.is_load(other), missing, told, order_.tick()});
}

AccessHistory& RaceCheck::history(const LaneTouch& touch) {
  if (touch.region != nullptr) return *touch.region;
  return touch.owner != nullptr ? touch.owner->shared : shared_;
}

WordAccess RaceCheck::get_access(const Op* op, Warp& warp, int lane, const LaneTouch& touch) const {
  const CheckedOp& info = check_.ops[warp.op_index(op)];
  const bool global = touch.space == ptx::Space::global;
  const Shadow tag = check_.get_stamp(info, warp.thread(lane));
  return {op,
          warp,
          lane,
          touch,
          info,
          global,
          global || where_.clustered,
          touch.owner != nullptr ? tag | kLookCloser : tag};
}

void RaceCheck::examine(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  WordAccess access = get_access(op, warp, lane, touch);
  const bool global = access.global, far = touch.owner != nullptr;
  BlockCheck& owner = far ? *touch.owner : check_;
  if (!global && touch.mode != AccessKind::read) {
    const std::uint64_t at = far ? touch.address % (1u << kRankShift) : touch.address;
    check_.proxy.look_at_write(access, owner, at, at + touch.bytes);
  }
  if (global && touch.mode != AccessKind::read) look_at_sources(access);
  const AccessHistory& there = history(touch);
  const std::uint64_t end = touch.address + touch.bytes;
  if (!global && shared_.defers) {
    check_.settle_reads();
    if (touch.mode != AccessKind::read) shared_.written.mark(touch.address, end);
    if (((touch.address | touch.bytes) & 3) != 0) shared_.note_narrow_read(touch.address, end);
    shared_.new_epoch();
  }
  // Until the last word, not until `end`: `end` is 0 after the highest address.
  const std::uint64_t last = (end - 1) & ~std::uint64_t{3};
  for (std::uint64_t at = touch.address & ~std::uint64_t{3};; at += 4) {
    std::uint32_t bytes = 15;
    if (at < touch.address) bytes &= 15u << (touch.address - at);
    if (at == last) bytes &= 15u >> (at + 4 - end);
    access.word = (global ? at % kRegionBytes : far ? at % (1u << kRankShift) : at) / 4;
    access.begin = at;
    if (global) touch.region->by_word(access.word);
    examine_word(access, there.write[access.word], there.read[access.word], bytes);
    if (at == last) break;
  }
}

void RaceCheck::examine_shadows(const WordAccess& access, Shadow& write, Shadow& read, Shadow tag) {
  if (looking != nullptr) return look_at_writes(access, write);
  if (taking) return note_late_reader(access, read, tag);
  const bool writes = access.touch.mode != AccessKind::read;
  const auto before = [&](Shadow shadow) {
    return shadow == 0 || order_.is_write_ordered(shadow, access.warp, access.lane, access.global);
  };
  const bool repeats = check_.copies.is_copying() && check_.copies.is_twin(access, write);
  if (!repeats) look_at_hidden(access, write);
  if (!repeats && !before(write)) {
    const bool under_way = is_under_way(write);
    if (under_way || (rules_.conflicts(write, access) &&
                      !(writes && !rules_.is_load(write) && same_value(access, write)))) {
      report(access, write, true, under_way ? Missing::wait : Missing::order);
    }
  }
  if (!writes && !access.is_strong()) return note_reader(access, read, tag);
  if (writes) look_at_readers(access, read);
  if (writes || access.info.site < kMostSites) note_write(access, write, tag);
}

/// Copies read global memory until a thread waits for them.
void RaceCheck::look_at_sources(const WordAccess& access) {
  const std::uint64_t begin = access.touch.address, end = begin + access.touch.bytes;
  if (!check_.copies.sources.meets(begin, end)) return;
  const AsyncCopy* const copy = check_.copies.get_reader(begin, end);
  if (copy != nullptr) report(access, copy->stamp, false, Missing::wait);
}

/// Checks the plain reads before a write. Of several the farthest one is named.
void RaceCheck::look_at_readers(const WordAccess& access, Shadow& read) {
  if (read == 0 || access.info.swaps) return;
  const auto unordered = [&](Shadow shadow) {
    return shadow != 0 && !order_.is_ordered(shadow, access.warp, access.lane, access.global);
  };
  Shadow farthest = unordered(read) ? read : 0;
  Breadth breadth = farthest == 0 ? Breadth::none : where_.get_breadth(access, read);
  Told told = Told::itself;
  if (check_.parts) {
    ReaderLists& lists = history(access.touch).readers;
    const auto list = hides_readers(access, read) ? lists.find(&read) : lists.end();
    if (list != lists.end()) {
      for (const Shadow shadow : list->second) {
        if (!unordered(shadow) || where_.get_breadth(access, shadow) <= breadth) continue;
        farthest = shadow;
        breadth = where_.get_breadth(access, shadow);
      }
      if (farthest != 0) lists.erase(list);
    }
  } else if (hides_readers(access, read) && hidden_breadth(access, read) > breadth) {
    farthest = read;
    told = Told::several;
  }
  if (farthest == 0) return;
  report(access, farthest, false, Missing::order, told);
  read = 0;
}

/// Whether there are more readers than the one in the shadow, possibly later than the floor.
bool RaceCheck::hides_readers(const WordAccess& access, Shadow read) const {
  if (!is_by_many(read) || (access.global && read < order_.launch_floor)) return false;
  const bool same_block =
      !access.mixed || (!is_by_many_blocks(read) && where_.owner(read) == where_.block);
  // Else none of them came later than the shadow says.
  return !same_block || read >= order_.floor;
}

/// How far away an unordered one of them is. They are not known one by one, but nothing can have
/// ordered them: only barriers of whole blocks and meetings of warps do in this program.
Breadth RaceCheck::hidden_breadth(const WordAccess& access, Shadow read) const {
  if ((read & (kManyWarps | kManyBlocks)) != 0)
    return where_.get_breadth(access, read, Told::several);
  if (order_.has_met(access.warp.index, access.lane, get_tick(read))) return Breadth::none;
  return where_.get_breadth(access, read, Told::several);
}

void RaceCheck::note_reader(const WordAccess& access, Shadow& read, Shadow tag) {
  const Shadow old = read;
  Shadow flags = 0;
  const bool other = old != 0 && ((old ^ tag) & kThreadMask) != 0;
  const bool stale = order_.is_forgotten(old, access.global);
  const bool other_block = !stale && access.mixed && where_.owner(old) != where_.block;
  if (!stale && (other || other_block) &&
      !order_.is_ordered(old, access.warp, access.lane, access.global)) {
    flags |= old & kMany;
    flags |= other_block ? kManyBlocks : ((old ^ tag) & kWarpMask) != 0 ? kManyWarps : kManyLanes;
    if (check_.parts) {
      auto& list = history(access.touch).readers[&read];
      std::erase_if(list, [&](Shadow shadow) {
        return shadow == 0 || order_.is_ordered(shadow, access.warp, access.lane, access.global);
      });
      list.push_back(old & ~kMany);
      rules_.make_room(list, tag);
    }
  } else if (!stale) {
    // The named reader came before. So did all others of the block if a barrier lies between, and
    // those of its warp if all lanes met; not the reads of other blocks.
    const bool past = !other_block && get_tick(old) < get_tick(order_.floor);
    const bool met = other && !check_.parts && get_tick(old) < order_.warp_floor(access.warp.index);
    flags |= old & (past ? kManyBlocks : met ? kManyWarps | kManyBlocks : kMany);
  }
  const bool keep =
      !check_.parts && (flags & kMany) != 0 && (other_block || get_tick(old) == get_tick(tag));
  // The owner's barriers say nothing of readers in other blocks.
  if (!access.global && (flags & kManyBlocks) != 0) flags |= kReadElsewhere;
  read = (keep ? old : tag) | flags;
}

/// Checks one word of it. An access possibly ordered after the load is no race.
void RaceCheck::look_at_writes(const WordAccess& access, const Shadow& write) {
  const std::uint32_t lane = 1u << access.lane;
  const auto races = [&](Shadow shadow) {
    if (shadow == 0 || order_.is_write_ordered(shadow, access.warp, access.lane, access.global))
      return false;
    if (!is_under_way(shadow) && !rules_.conflicts(shadow, access)) return false;
    const bool same_owner = !access.mixed || where_.owner(shadow) == where_.block;
    const bool same_warp = same_owner && get_thread(shadow) / kLanes == access.warp.index;
    return !((looking->closed & lane) != 0 && (same_owner || check_.parts)) &&
           !((looking->met & lane) != 0 && same_warp);
  };
  Shadow other = races(write) ? write : 0;
  if (other == 0 && is_contended(write)) {
    const HiddenAccesses& all = history(access.touch).hidden;
    const auto found = all.find(&write);
    if (found != all.end()) {
      const auto one = std::find_if(found->second.begin(), found->second.end(), races);
      if (one != found->second.end()) other = *one;
    }
  }
  if (other == 0) return;
  looking->pending |= lane;
  looking->other[static_cast<std::size_t>(access.lane)] = other;
}

/// Records a read at the tick of `mine`, possibly before the one in the shadow.
void RaceCheck::note_late_reader(const WordAccess& access, Shadow& read, Shadow tag) {
  const Shadow old = read;
  const bool is_older = !order_.is_forgotten(old, access.global) && get_tick(old) > get_tick(tag) &&
                        (!access.mixed || where_.owner(old) == where_.block);
  if (!is_older) return note_reader(access, read, tag);
  if (((old ^ tag) & kThreadMask) == 0) return;
  const bool same_warp = ((old ^ tag) & kWarpMask) == 0;
  if (same_warp && get_tick(tag) < order_.warp_floor(access.warp.index)) return;
  read |= same_warp ? kManyLanes : kManyWarps;
  if (check_.parts) history(access.touch).readers[&read].push_back(tag);
}

}  // namespace kernwright::sim
