// Accesses that the one in a word's write cell hides: atomic operations on the same word do not
// race with each other, so that several of them, and a plain write before them, may still race with
// what comes next.
#include "sim/check/block_check.h"
#include "sim/code/program.h"

#include <algorithm>
#include <iterator>

namespace kernwright::sim {
namespace {

/// Accesses of one word that are told apart where the program orders parts of blocks.
constexpr std::size_t kMostApart = 64;

}  // namespace

HiddenAccesses& BlockCheck::hidden(const Access& access) {
  if (access.global) return access.touch.region->hidden;
  return access.touch.owner != nullptr ? access.touch.owner->hidden_ : hidden_;
}

BlockCheck::Conduct BlockCheck::conduct_of(Cell cell) const {
  Conduct conduct;
  conduct.strong = (cell & kStrong) != 0;
  conduct.is_volatile = (cell & kVolatileWrite) != 0;
  if (const CheckedOp* const op = op_at(site_of(cell)); op != nullptr) {
    conduct.reads = op->kind == CheckKind::load;
    conduct.swaps = op->swaps;
    conduct.reach = op->reach;
  }
  return conduct;
}

bool BlockCheck::is_load(Cell write) const {
  return (write & kStrong) != 0 && conduct_of(write).reads;
}

/// Whether the access races with what the write cell tells of, where nothing orders the two.
bool BlockCheck::conflicts(Cell write, const Access& access) const {
  const Conduct other = conduct_of(write);
  if (other.reads && access.touch.mode == AccessKind::read) return false;
  if (other.swaps && access.info.kind == CheckKind::load) return false;
  if (other.reads && access.info.swaps) return false;
  if (!other.strong || !access.is_strong()) return true;
  const std::uint32_t owner = launch_.ticks.owner(tick_of(write));
  if (std::min(other.reach, access.info.reach) < reach_to(owner)) return true;
  const bool same_warp = owner == block_ && thread_of(write) / kLanes == access.warp.index;
  return same_warp && (other.is_volatile || access.info.is_volatile);
}

/// Whether whatever races with `cell` races with `by` too, unless something orders it and `by`.
bool BlockCheck::covers(Cell by, Cell cell) const {
  const Conduct mine = conduct_of(by), other = conduct_of(cell);
  if (mine.reads && !other.reads) return false;
  if (!mine.strong) return true;
  return other.strong && mine.reach <= other.reach && (mine.is_volatile || !other.is_volatile) &&
         (!mine.swaps || other.swaps);
}

/// Whether nobody comes after both `a` and `b` but not after `cell`, which came before them, where
/// only barriers of whole blocks and meetings of warps order anything.
bool BlockCheck::stand_for(Cell a, Cell b, Cell cell) const {
  const auto block_of = [&](Cell one) { return launch_.ticks.owner(tick_of(one)); };
  const std::uint32_t of_a = block_of(a), of_b = block_of(b), block = block_of(cell);
  if (of_a != of_b) return cluster_of(of_a) != cluster_of(of_b);
  if (of_a != block) return false;
  if (((a ^ b) & kWarpMask) != 0) return true;
  return ((a ^ cell) & kWarpMask) == 0 && ((a ^ b) & kThreadMask) != 0;
}

/// Leaves those out for which two later ones stand, that cover them. `across`: of other blocks too.
template <typename F>
void BlockCheck::leave_out(std::vector<Cell>& list, Cell now, bool across, F covers) const {
  std::vector<Cell> kept{now};  // the newest first
  const auto block_of = [&](Cell one) { return launch_.ticks.owner(tick_of(one)); };
  const auto is_told = [&](Cell cell) {
    for (std::size_t a = 0; a < kept.size(); ++a) {
      if (!covers(kept[a], cell) || (!across && block_of(kept[a]) != block_of(cell))) continue;
      for (std::size_t b = 0; b < a; ++b) {
        if (covers(kept[b], cell) && (across || block_of(kept[b]) == block_of(cell)) &&
            stand_for(kept[a], kept[b], cell))
          return true;
      }
    }
    return false;
  };
  for (std::size_t i = list.size(); i-- > 0;) {
    if (!is_told(list[i])) kept.push_back(list[i]);
  }
  list.assign(kept.rbegin(), std::prev(kept.rend()));
}

/// Where a program orders parts of blocks, two readers of each block stand for the others when
/// there are many, and where many blocks read, two of those.
void BlockCheck::make_room(std::vector<Cell>& list, Cell now) const {
  const auto covers_all = [](Cell, Cell) { return true; };
  if (list.size() <= kMostApart) return;
  leave_out(list, now, false, covers_all);
  if (list.size() > kMostApart / 2) leave_out(list, now, true, covers_all);
}

/// Leaves out of a word's hidden accesses those that tell nothing more beside `now`, the newest.
void BlockCheck::thin(const Access& access, std::vector<Cell>& list, Cell now) {
  std::erase_if(list, [&](Cell cell) {
    return is_forgotten(cell, access.global) ||
           (covers(now, cell) && is_write_ordered(cell, access.warp, access.lane, access.global));
  });
  const auto rule = [&](Cell by, Cell cell) { return covers(by, cell); };
  const bool exact = !parts && !launch_.program.has_volatile;
  if (exact && list.size() >= 2) return leave_out(list, now, true, rule);
  if (list.size() <= kMostApart) return;
  leave_out(list, now, false, rule);
  if (list.size() > kMostApart / 2) leave_out(list, now, true, rule);
}

/// Races of the access with those.
void BlockCheck::look_at_hidden(const Access& access, Cell& write) {
  if (!is_contended(write)) return;
  HiddenAccesses& all = hidden(access);
  if (is_forgotten(write, access.global)) {
    all.erase(&write);
    write = 0;
    return;
  }
  const auto found = all.find(&write);
  if (found == all.end()) return;
  const bool writes = access.touch.mode != AccessKind::read;
  Cell farthest = 0;
  for (const Cell cell : found->second) {
    if (is_write_ordered(cell, access.warp, access.lane, access.global) ||
        !conflicts(cell, access) || (writes && !is_load(cell) && same_value(access, cell)))
      continue;
    if (farthest == 0 || breadth_of(access, cell) > breadth_of(access, farthest)) farthest = cell;
  }
  if (farthest != 0) report_race(access, farthest, true, Missing::order, Told::hidden);
}

/// The access becomes the word's last write, or an atomic read of it.
void BlockCheck::note_write(const Access& access, Cell& write, Cell mine) {
  const Cell old = is_contended(write) ? write & ~kAside : write;
  const bool was_contended = is_contended(write);
  if (!access.info.strong) {  // who races with what this one hides races with this one
    if (was_contended) hidden(access).erase(&write);
    write = mine;
    return;
  }
  const Cell now = mine | kStrong | (access.info.is_volatile ? kVolatileWrite : Cell{0});
  const bool hides =
      old != 0 && !is_under_way(old) && !is_forgotten(old, access.global) &&
      !(covers(now, old) && is_write_ordered(old, access.warp, access.lane, access.global));
  write = now;
  if (!hides && !was_contended) return;
  HiddenAccesses& all = hidden(access);
  std::vector<Cell>& list = all[&write];
  if (hides) list.push_back(old);
  thin(access, list, now);
  if (list.empty()) {
    all.erase(&write);
  } else {
    write |= kAside;
  }
}

/// The last write that a write cell tells of, which an atomic read may hide; 0: none in this
/// launch.
Cell BlockCheck::last_write(const HiddenAccesses& all, const Cell& write) const {
  if (write == 0 || is_under_way(write) || !is_load(write)) return write;
  if (!is_contended(write)) return 0;
  const auto found = all.find(&write);
  if (found == all.end()) return 0;
  const auto last = std::find_if(found->second.rbegin(), found->second.rend(),
                                 [&](Cell cell) { return !is_load(cell); });
  return last == found->second.rend() ? 0 : *last;
}

/// The word's bytes get cells of their own, which hide what its write cell did.
void BlockCheck::spread_hidden(const Access& access, const Cell& write, Cell* bytes) {
  if (!is_contended(write)) return;
  HiddenAccesses& all = hidden(access);
  const auto found = all.find(&write);
  if (found == all.end()) return;
  const std::vector<Cell> list = std::move(found->second);
  all.erase(found);
  for (std::uint32_t b = 0; b < 4; ++b) {
    std::vector<Cell> own;
    for (const Cell cell : list) {
      if (const Cell byte = byte_of(cell, b); byte != 0) own.push_back(byte);
    }
    if (own.empty()) continue;
    all[bytes + b] = std::move(own);
    bytes[b] |= kAside;
  }
}

}  // namespace kernwright::sim
