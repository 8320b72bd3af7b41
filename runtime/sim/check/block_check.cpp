// The race check word by word, where a glance at the cells did not settle it.
#include "sim/check/block_check.h"

#include "sim/check/poison.h"
#include "sim/code/program.h"
#include "sim/exec/cluster.h"
#include "sim/exec/lane_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kernwright::sim {
namespace {

using ptx::Space;

constexpr std::uint32_t kLastChunk = Ticks::kChunks - 1;

Cell cell_at(std::uint32_t tick) { return Cell{tick} << kTickShift; }

}  // namespace

BlockCheck::BlockCheck(CheckedLaunch& launch, const WatchedBlocks& blocks)
    : ops(launch.program.ops.data()),
      init(launch.checks.init),
      race(launch.checks.race),
      sync(launch.checks.sync),
      parts(launch.program.kernel_orders_parts(blocks.kernel)),
      alone(launch.alone),
      defers(race && !parts),
      pauses(launch.seed != 0),
      launch_floor(cell_at(launch.first_tick)),
      written(blocks.shared_bytes),
      launch_(launch),
      site_store_(launch.program.site_ops.size() + 1),
      shared_bytes_(blocks.shared_bytes),
      warps_(blocks.warps) {
  static_assert(Ticks::kChunks <= 1u << (31 - Ticks::kChunkShift), "kAside is a tick's bit");
  if (race && !defers) read_epoch = 0;
  if (defers) late.reserve();
  sites = site_store_.data();
  if (launch.program.site_ops.size() > kMostSites) {
    site_store_.resize(kMostSites + 1);
    sites = site_store_.data();
  }
  if (race) {
    const std::size_t words = shared_bytes_ / 4 + 1;
    shared_cells_.resize(2 * words);
    shared_write = shared_cells_.data();
    shared_read = shared_write + words;
  }
  if (init) {
    shared_poison_.resize(shared_bytes_ / 64 + 2);
    local_poison_.resize(blocks.local_bytes / 64 + 2);
    shared_poison = shared_poison_.data();
    local_poison = local_poison_.data();
  }
}

BlockCheck::~BlockCheck() {
  forget_stores();
  launch_.collect(found_);
}

void BlockCheck::begin(const Block& block) {
  forget_copies();
  forget_stores();
  fenced_maps_.clear();
  doubts_.clear();
  lost_.clear();
  speculated_.clear();
  speculating = false;
  note_doubts();
  products_.fill({});
  block_ = static_cast<std::uint32_t>(block.linear_index);
  ctaid_ = block.ctaid;
  in_ = &block;
  clustered_ = launch_.program.spans_cluster && block.member->cluster->members.size() > 1;
  visits_.clear();
  cluster_open_ = cluster_complete_ = nullptr;
  cluster_relaxed_ = cluster_has_begun_ = false;
  cluster_arrivals_.fill(0);
  // Cells of blocks before would be taken for accesses from elsewhere in the cluster.
  if (clustered_) {
    std::fill(shared_cells_.begin(), shared_cells_.end(), 0);
    std::fill(shared_exact_.begin(), shared_exact_.end(), 0);
    origins_.clear();
  }
  grid_shape_ = block.warps[0].worker->launch->grid;
  cluster_shape_ = block.warps[0].worker->launch->cluster;
  random_ = launch_.seed ^ (block.linear_index + 1) * 0x9e3779b97f4a7c15u;
  std::fill(shared_poison_.begin(), shared_poison_.end(), ~std::uint64_t{0});
  std::fill(local_poison_.begin(), local_poison_.end(), ~std::uint64_t{0});
  tick_ = launch_.ticks.take(block_);
  if (tick_ >> Ticks::kChunkShift == kLastChunk) race = false;  // ticks have run out
  stamp = floor = first = cell_at(tick_);
  begin_phase();
  block_epoch = read_epoch;
  scattered = false;
  begin_tick_ = tick_;
  warp_floor_.fill(tick_);
  hidden_.clear();
  if (!parts) return;
  for (auto& row : known_) row.fill(0);
  past_.fill(nullptr);
  fenced_.fill({});
  pending_.fill({});
  readers_.clear();
  arrivals_.fill({});
}

/// All that was done to shared memory before is past.
void BlockCheck::begin_phase() noexcept {
  new_epoch();
  late.clear();
  written.forget();
}

void BlockCheck::new_tick() {
  if (speculating && parts) [[unlikely]]
    look_at_speculated(nullptr);
  new_epoch();
  ++tick_;
  if (tick_ % (1u << Ticks::kChunkShift) == 0) {
    const std::uint32_t next = launch_.ticks.take(block_);
    if (next != tick_) {  // older cells are looked up one by one
      first = cell_at(next);
      scattered = true;
    }
    if (next >> Ticks::kChunkShift == kLastChunk) race = false;
    tick_ = next;
  }
  stamp = cell_at(tick_);
}

GlobalRegion* BlockCheck::region(std::uint64_t address) {
  const std::uint64_t number = address >> kRegionShift;
  RegionSlot& slot = regions_[number % kRegionSlots];
  if (slot.number != number) slot = {number, &launch_.shadow.region(address)};
  return slot.region;
}

/// Whether the cell is of long ago, whoever asks.
bool BlockCheck::is_forgotten(Cell cell, bool global) const {
  const Cell when = is_contended(cell) ? cell & ~kAside : cell;
  return cell == 0 || (global ? when < launch_floor : !clustered_ && when < floor);
}

/// `copied`: the cell of a copy whose end an mbarrier told.
bool BlockCheck::is_ordered(Cell cell, const Warp& warp, int lane, bool global, bool copied) const {
  const std::uint32_t tick = tick_of(cell);
  if (is_forgotten(cell, global)) return true;
  const std::uint32_t thread = thread_of(cell), w = warp.index;
  const std::uint32_t of_warp = copied ? kMostWarps + thread : thread / kLanes;
  const std::uint32_t of_lane = thread % kLanes;
  if (global || clustered_) {
    const std::uint32_t owner = launch_.ticks.owner(tick);
    if (owner != block_) {
      if (past_[w] == nullptr) return false;
      const auto known = past_[w]->find(owner);
      return known != past_[w]->end() && known->second.covers(tick, of_warp);
    }
  }
  if (tick < tick_of(floor)) return true;
  if (of_warp != w) return tick < known_[w][of_warp];
  if (of_lane == static_cast<std::uint32_t>(lane) || tick < warp_floor_[w]) return true;
  const LaneMatrix* const matrix = lane_known_[w].get();
  return matrix != nullptr && tick < (*matrix)[static_cast<std::size_t>(lane)][of_lane];
}

/// The same for the cell of a write, which may be a copy's.
bool BlockCheck::is_write_ordered(Cell cell, const Warp& warp, int lane, bool global) const {
  if ((cell & kAsync) == 0) return is_ordered(cell, warp, lane, global);
  return (cell & kAside) == 0 && is_ordered(cell, warp, lane, global, true);
}

const CheckedOp* BlockCheck::op_at(std::uint32_t site) const {
  const std::vector<std::uint32_t>& places = launch_.program.site_ops;
  return site != 0 && site < places.size() ? &ops[places[site]] : nullptr;
}

ReaderLists& BlockCheck::readers(const Access& access) {
  if (access.global) return access.touch.region->readers;
  return access.touch.owner != nullptr ? access.touch.owner->readers_ : readers_;
}

void BlockCheck::examine(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  const CheckedOp& info = ops[warp.op_index(op)];
  const bool global = touch.region != nullptr;
  const Cell mine = stamp_of(info, warp.thread(lane));
  const bool far = touch.owner != nullptr;
  Access access{
      op, warp, lane, touch, info, global, global || clustered_, far ? mine | kAside : mine, 0, 0};
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
    Cell* const write = global ? touch.region->write : owner.shared_write;
    Cell* const read = global ? touch.region->read : owner.shared_read;
    examine_word(access, write[access.word], read[access.word], bytes);
    if (at == last) break;
  }
}

void BlockCheck::examine_cells(const Access& access, Cell& write, Cell& read, Cell mine) {
  if (looking_ != nullptr) return look_at_writes(access, write);
  if (taking_) return note_late_reader(access, read, mine);
  const bool writes = access.touch.mode != AccessKind::read;
  const auto before = [&](Cell cell) {
    return cell == 0 || is_write_ordered(cell, access.warp, access.lane, access.global);
  };
  const bool repeats = copying_ != nullptr && is_twin(access, write);
  if (!repeats) look_at_hidden(access, write);
  if (!repeats && !before(write)) {
    const bool under_way = is_under_way(write);
    if (under_way ||
        (conflicts(write, access) && !(writes && !is_load(write) && same_value(access, write)))) {
      report_race(access, write, true, under_way ? Missing::wait : Missing::order);
    }
  }
  if (!writes && !access.is_strong()) return note_reader(access, read, mine);
  if (writes) look_at_readers(access, read);
  if (writes || access.info.site < kMostSites) note_write(access, write, mine);
}

/// Copies read global memory until somebody waits for them.
void BlockCheck::look_at_sources(const Access& access) {
  const std::uint64_t begin = access.touch.address, end = begin + access.touch.bytes;
  if (!sources.meets(begin, end)) return;
  const auto reads = [&](const AsyncCopy& one) { return one.reads(begin, end); };
  const AsyncCopy* copy = copies_.find(reads);
  const auto arriving = std::find_if(arriving_.begin(), arriving_.end(), reads);
  if (copy == nullptr && arriving != arriving_.end()) copy = &*arriving;
  for (const auto& [offset, state] : mbarriers_) {
    if (copy == nullptr) copy = state.reader_of(begin, end);
  }
  if (copy != nullptr) report_race(access, copy->stamp, false, Missing::wait);
}

/// Plain reads that a write comes after. Of several the one farthest away is named.
void BlockCheck::look_at_readers(const Access& access, Cell& read) {
  if (read == 0 || access.info.swaps) return;
  const auto unordered = [&](Cell cell) {
    return cell != 0 && !is_ordered(cell, access.warp, access.lane, access.global);
  };
  Cell farthest = unordered(read) ? read : 0;
  Breadth breadth = farthest == 0 ? Breadth::none : breadth_of(access, read);
  Told told = Told::itself;
  if (parts) {
    ReaderLists& lists = readers(access);
    const auto list = hides_readers(access, read) ? lists.find(&read) : lists.end();
    if (list != lists.end()) {
      for (const Cell cell : list->second) {
        if (!unordered(cell) || breadth_of(access, cell) <= breadth) continue;
        farthest = cell;
        breadth = breadth_of(access, cell);
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

/// Whether others read beside the one that the cell names, and may have come later than `floor`.
bool BlockCheck::hides_readers(const Access& access, Cell read) const {
  if ((read & kMany) == 0 || (access.global && read < launch_floor)) return false;
  const bool of_this_block =
      !access.mixed || ((read & kManyBlocks) == 0 && launch_.ticks.owner(tick_of(read)) == block_);
  return !of_this_block || read >= floor;  // none of them came later than the cell says
}

/// How far away an unordered one of them is. They are not known one by one, but nothing can have
/// ordered them: only barriers of whole blocks and meetings of warps do in this program.
Breadth BlockCheck::hidden_breadth(const Access& access, Cell read) const {
  if ((read & (kManyWarps | kManyBlocks)) != 0)
    return breadth_of(access, read, Told::one_of_several);
  const std::uint32_t tick = tick_of(read), w = access.warp.index;
  if (tick < warp_floor_[w]) return Breadth::none;
  if (const LaneMatrix* const matrix = lane_known_[w].get(); matrix != nullptr) {
    const auto& row = (*matrix)[static_cast<std::size_t>(access.lane)];
    if (std::any_of(row.begin(), row.end(), [&](std::uint32_t known) { return tick < known; }))
      return Breadth::none;
  }
  return breadth_of(access, read, Told::one_of_several);
}

void BlockCheck::note_reader(const Access& access, Cell& read, Cell mine) {
  const Cell old = read;
  Cell flags = 0;
  const bool other = old != 0 && ((old ^ mine) & kThreadMask) != 0;
  const bool stale = is_forgotten(old, access.global);
  const bool other_block = !stale && access.mixed && launch_.ticks.owner(tick_of(old)) != block_;
  if (!stale && (other || other_block) &&
      !is_ordered(old, access.warp, access.lane, access.global)) {
    flags |= old & kMany;
    flags |= other_block ? kManyBlocks : ((old ^ mine) & kWarpMask) != 0 ? kManyWarps : kManyLanes;
    if (parts) {
      auto& list = readers(access)[&read];
      std::erase_if(list, [&](Cell cell) {
        return cell == 0 || is_ordered(cell, access.warp, access.lane, access.global);
      });
      list.push_back(old & ~kMany);
      make_room(list, mine);
    }
  } else if (!stale) {
    // The reader that is named came before. So did all others of the block where a barrier lies
    // between, and those of its warp where all lanes met; not what other blocks read.
    const bool past = !other_block && tick_of(old) < tick_of(floor);
    const bool met = other && !parts && tick_of(old) < warp_floor_[access.warp.index];
    flags |= old & (past ? kManyBlocks : met ? kManyWarps | kManyBlocks : kMany);
  }
  const bool keep =
      !parts && (flags & kMany) != 0 && (other_block || tick_of(old) == tick_of(mine));
  // The owner's barriers say nothing of readers in other blocks.
  if (!access.global && (flags & kManyBlocks) != 0) flags |= kAside;
  read = (keep ? old : mine) | flags;
}

}  // namespace kernwright::sim
