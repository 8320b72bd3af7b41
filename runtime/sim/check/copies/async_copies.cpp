// Asynchronous copies: in flight from their issue until a thread waits for them.
#include "sim/check/copies/async_copies.h"

#include "sim/check/block_check.h"
#include "sim/check/history/poison.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/block/mbarrier.h"
#include "sim/exec/warp/scheduler.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

namespace kernwright::sim {
namespace {

using ptx::Space;

constexpr std::uint32_t kMbarrierBytes = 8;

}  // namespace

void AsyncCopies::issue(const Op* op, Warp& warp, int lane, AsyncCopy copy) {
  check_.lanes.touch(op, warp, lane, AccessKind::read, copy.from, copy.source, Space::global);
  if (copy.to > warp.shared_bytes || copy.bytes > warp.shared_bytes - copy.to) return;
  if (copy.to % copy.bytes != 0) return;  // it will fault
  copy.op = warp.op_index(op);
  if (check_.race) note_target(op, warp, lane, copy);
  groups_.add(warp.thread(lane), copy);
  sources.add(copy.from, copy.from + copy.source);
  ++under_way_;
}

/// The race check of a copy's target.
void AsyncCopies::note_target(const Op* op, Warp& warp, int lane, AsyncCopy& copy) {
  if (origins_.empty()) origins_.resize(check_.shared.words() + 1);
  copying_ = &copy;
  priors_.fill(0);
  check_.races.examine(op, warp, lane, {AccessKind::write, Space::shared, copy.to, copy.bytes});
  copying_ = nullptr;
  copy.stamp = kUnderWay | kAllBytes | check_.get_stamp(check_.ops[copy.op], warp.thread(lane));
  for (std::uint64_t word = copy.to / 4; word < (copy.to + copy.bytes) / 4; ++word) {
    check_.shared.stamp_word(word, copy.stamp);
    origins_[word] = CopyOrigin(copy, priors_[word - copy.to / 4]);
  }
  if (copy.twins != 0) {
    CopyTwins& twins = twins_[copy.to];
    twins.stamp = copy.stamp;
    twins.under_way.push_back(copy.stamp);
  }
  if (check_.shared.defers) check_.shared.written.hold(copy.to, copy.to + copy.bytes);
}

/// The copy with this value in its shadows that repeats the current one, or null.
AsyncCopy* AsyncCopies::copy_under_way(Shadow said) {
  const auto is_it = [&](const AsyncCopy& one) {
    return one.stamp == said && one.repeats(*copying_);
  };
  if (AsyncCopy* const found = groups_.find(is_it); found != nullptr) return found;
  for (auto& entry : mbarriers_) {
    for (MbarrierState::Tracked& tracked : entry.second.copies) {
      if (is_it(tracked.copy)) return &tracked.copy;
    }
  }
  return nullptr;
}

bool AsyncCopies::is_twin(const WordAccess& access, Shadow& write) {
  const CheckedOp* const writer = check_.where.op_at(get_site(write));
  Shadow& prior = priors_[access.word - copying_->to / 4];
  const CopyOrigin& origin = origins_[access.word];
  if (write == 0 || check_.order.is_forgotten(write, false)) return false;
  if (writer == nullptr || writer->kind != CheckKind::copy || !origin.is_repeated_by(*copying_)) {
    prior = std::max(prior, is_under_way(write) ? 0 : write & ~kContended);  // of the word's bytes
    return false;
  }
  prior = std::max(prior, origin.prior);
  if (origin.prior != 0 &&
      !check_.order.is_write_ordered(origin.prior, access.warp, access.lane, false)) {
    check_.races.report(access, origin.prior, true);
  }
  if (is_contended(write) || !check_.order.is_write_ordered(write, access.warp, access.lane, false))
    join_twins(write);
  return true;
}

/// Adds the current copy to those named by the shadow.
void AsyncCopies::join_twins(Shadow& write) {
  const Shadow said = uncontended(write) | kAllBytes;
  CopyTwins& twins = twins_[copying_->to];
  if (copying_->twins != 0) return;  // by another word
  if (twins.number == 0 || twins.stamp != said) {
    twins = {++last_twins_, said, {}, {}};
    AsyncCopy* const other = is_under_way(write) ? copy_under_way(said) : nullptr;
    if (other != nullptr) {
      other->twins = twins.number;
      twins.under_way.push_back(said);
    } else if (!is_under_way(write)) {
      twins.over.push_back(said);
    }
    if (const auto found = check_.shared.hidden.find(&write);
        is_contended(write) && found != check_.shared.hidden.end()) {
      twins.over.insert(twins.over.end(), found->second.begin(), found->second.end());
    }
  }
  copying_->twins = twins.number;
}

void AsyncCopies::end_group(const Warp& warp) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    groups_.commit(warp.thread(std::countr_zero(m)));
  }
}

/// One of `twins` ended; its shadows had the value `before`, and `shadow` gives its end. `shadow`
/// gets the new value: the stamp of another twin, or after the last one its end, with the others
/// left in `twins`.
void AsyncCopies::end_twin(CopyTwins& twins, Shadow before, Shadow* shadow) {
  // The last two lanes of a warp stand for all of it: a lane's own accesses need the other one.
  const auto same_warp = [&](Shadow one) { return ((one ^ *shadow) & (kWarpMask | kAsync)) == 0; };
  const auto beside = std::find_if(twins.over.rbegin(), twins.over.rend(), [&](Shadow one) {
    return same_warp(one) && !is_by_copy(*shadow) && get_thread(one) != get_thread(*shadow);
  });
  const Shadow second = beside == twins.over.rend() ? 0 : *beside;
  std::erase_if(twins.over, same_warp);
  if (second != 0) twins.over.insert(twins.over.begin(), second);
  if (*shadow != 0) twins.over.push_back(*shadow);
  const auto twin = std::find(twins.under_way.begin(), twins.under_way.end(), before);
  if (twin != twins.under_way.end()) twins.under_way.erase(twin);
  if (!twins.under_way.empty()) {
    *shadow = before == twins.stamp ? twins.under_way.back() : twins.stamp;
    return;
  }
  // The end of a copy with an mbarrier cannot stand beside others: its bit would mean that the copy
  // is still under way.
  const auto plain = std::find_if(twins.over.rbegin(), twins.over.rend(),
                                  [](Shadow one) { return !is_by_copy(one); });
  if (*shadow != 0 && plain != twins.over.rend()) *shadow = *plain;
  std::erase(twins.over, *shadow);
  if (is_by_copy(*shadow) || *shadow == 0) twins.over.clear();
}

/// The copy ended: its shadows get the value `shadow`, once all its twins ended too.
void AsyncCopies::restamp(const AsyncCopy& copy, Shadow shadow) {
  if (--under_way_ == 0) sources = {};
  if (copy.read != 0) {
    auto& reader = static_cast<BlockCheck&>(*copy.reader);
    reader.proxy.reads.drop(copy.read);
  }
  if (check_.init) check_.unwritten.write_target(copy);
  check_.shared.new_epoch();
  if (!check_.race) return;
  if (check_.shared.defers) check_.shared.written.release(copy.to, copy.to + copy.bytes);
  Shadow before = copy.stamp;
  std::vector<Shadow> others;
  const auto found = copy.twins == 0 ? twins_.end() : twins_.find(copy.to);
  if (found != twins_.end() && found->second.number == copy.twins) {  // else others overwrote them
    CopyTwins& twins = found->second;
    before = twins.stamp;
    end_twin(twins, copy.stamp, &shadow);
    if (twins.under_way.empty()) {
      others = std::move(twins.over);
      twins_.erase(found);
    } else if (std::exchange(twins.stamp, shadow) == shadow) {
      return;
    }
  }
  restamp_words(copy, before, shadow, others);
}

/// Its shadows with the value `before` get the value `shadow`, with `others` beside it.
void AsyncCopies::restamp_words(const AsyncCopy& copy, Shadow before, Shadow shadow,
                                const std::vector<Shadow>& others) {
  for (std::uint64_t word = copy.to / 4; word < (copy.to + copy.bytes) / 4; ++word) {
    Shadow& write = check_.shared.write[word];
    check_.shared.restamp(write, before, shadow, others);
    if (!is_by_bytes(write)) continue;
    Shadow* const bytes = check_.shared.find_bytes(word);
    for (int b = 0; b < 4; ++b) {
      const bool over = shadow != 0 && !is_under_way(shadow);
      const Shadow byte = over ? (shadow & ~kAllBytes) | Shadow{1} << (kBytesShift + b) : shadow;
      check_.shared.restamp(bytes[b], before, byte, others);
    }
  }
}

/// Before another block begins. Copies without a wait end with the block.
void AsyncCopies::forget() {
  if (under_way_ != 0) {
    groups_.clear([&](const AsyncCopy& copy) { restamp(copy, 0); });
    for (auto& [offset, state] : mbarriers_) {
      for (const MbarrierState::Tracked& tracked : state.copies) restamp(tracked.copy, 0);
    }
  }
  arriving_.clear();
  mbarriers_.clear();
  twins_.clear();
  tracks_ = false;
}

/// After its thread waited.
void AsyncCopies::finish(Warp& warp, int lane, const AsyncCopy& copy) {
  restamp(copy, check_.get_stamp(check_.ops[copy.op], warp.thread(lane)) | kAllBytes);
  // It may have read until now: an order after its issue alone is not enough.
  if (!check_.race || copy.source == 0 ||
      (!check_.parts && get_tick(copy.stamp) >= get_tick(check_.order.floor)))
    return;
  check_.regions.each(copy.from, copy.source, AccessKind::read, [&](const LaneTouch& part) {
    check_.races.examine(warp.code + copy.op, warp, lane, part);
  });
}

void AsyncCopies::wait(Warp& warp, std::size_t left, bool all) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint32_t thread = warp.thread(lane);
    const auto end = [&](const AsyncCopy& copy) { finish(warp, lane, copy); };
    if (all) {
      groups_.take_all(thread, end);
    } else {
      groups_.wait(thread, left, end);
    }
    if (tracks_) finish_tracked(warp, thread);
  }
}

void AsyncCopies::track(const Warp& warp, int lane, MbarrierState& state) {
  const std::uint32_t thread = warp.thread(lane);
  groups_.take_all(thread, [&](const AsyncCopy& copy) { state.copies.push_back({thread, copy}); });
  tracks_ = true;
}

/// Ends the copies chosen by `is`, as the mbarrier tells. Returns whether there were any.
template <typename F>
bool AsyncCopies::end_tracked(MbarrierState& state, F is) {
  return std::erase_if(state.copies, [&](const MbarrierState::Tracked& tracked) {
           if (!is(tracked)) return false;
           const CheckedOp& info = check_.ops[tracked.copy.op];
           restamp(tracked.copy,
                   check_.get_stamp(info, state.place - kMostWarps) | kAllBytes | kAsync);
           return true;
         }) != 0;
}

/// Orders the warp after the mbarrier's copies.
void AsyncCopies::learn(const Warp& warp, const MbarrierState& state) {
  check_.new_tick();
  check_.order.learn(warp.index, state.place);
}

/// A thread itself waited for copies with an mbarrier: it already knows their end.
void AsyncCopies::finish_tracked(const Warp& warp, std::uint32_t thread) {
  for (auto& entry : mbarriers_) {
    MbarrierState& state = entry.second;
    const bool any = end_tracked(
        state, [&](const MbarrierState::Tracked& tracked) { return tracked.thread == thread; });
    if (any && check_.race) learn(warp, state);
  }
}

/// The phase of the mbarrier at `offset` of shared memory.
bool AsyncCopies::phase_at(std::uint64_t offset) const {
  std::uint64_t word = 0;
  std::memcpy(&word, check_.where.in->warps[0].shared + offset, sizeof word);
  return MbarrierObject::unpack(word).phase;
}

MbarrierState& AsyncCopies::mbarrier_at(std::uint64_t offset) {
  const auto [found, is_new] = mbarriers_.try_emplace(offset);
  if (is_new) {
    const auto number = static_cast<std::uint32_t>(mbarriers_.size() - 1);
    found->second.place = kMostWarps + number % kBarrierPlaces;
  }
  return found->second;
}

void AsyncCopies::pass(Warp& warp, std::uint32_t lanes, MbarrierState& state, bool acquire) {
  end_tracked(state, [](const MbarrierState::Tracked& tracked) { return tracked.done; });
  if (!check_.race) return;
  learn(warp, state);
  if (acquire) return check_.order.absorb(warp, lanes, state.complete);
  check_.order.defer(warp.index, state.complete);
}

/// Lanes by their mbarrier.
AsyncCopies::NamedBarriers AsyncCopies::named_barriers(const Op* op, Warp& warp,
                                                       const std::uint64_t* address) {
  NamedBarriers named;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t at = address[lane] & ~kWindowMask, offset = at & kOffsetMask;
    const std::uint64_t rank = (at >> kRankShift & kRankMask) - 1;
    BlockCheck* const owner = at == offset ? &check_ : check_.peer(rank);
    if (owner == nullptr || !owner->shared.has(offset, kMbarrierBytes)) continue;
    const auto end = named.all.begin() + static_cast<std::ptrdiff_t>(named.count);
    const auto one = std::find_if(named.all.begin(), end, [&](const Named& known) {
      return known.owner == owner && known.offset == offset;
    });
    if (one == end) named.all[named.count++] = {owner, offset, 0, owner->copies.phase_at(offset)};
    one->lanes |= 1u << lane;
    if (owner != &check_ && check_.race) {
      check_.cluster.visit(
          op, warp, lane,
          {AccessKind::atomic, Space::cluster, at, kMbarrierBytes, nullptr, nullptr, owner});
    }
  }
  return named;
}

/// Before the instruction. `past`: released by the arriving threads; null: nothing.
void AsyncCopies::arrive(const Op* op, Warp& warp, const Named& one, const SharedPast& past) {
  const CheckedOp& info = check_.ops[warp.op_index(op)];
  if (check_.init) set_poison<false>(one.owner->unwritten.shared, one.offset, kMbarrierBytes);
  MbarrierState& state = one.owner->copies.mbarrier_at(one.offset);
  const int lane = std::countr_zero(one.lanes);
  if (info.role == BarrierRole::begin) {
    state.open = state.complete = nullptr;
    state.made = check_.get_stamp(info, warp.thread(lane));
  } else if (check_.race && one.owner == &check_ && state.made != 0 &&
             !check_.order.is_ordered(state.made, warp, lane, false)) {
    const LaneTouch touch{AccessKind::atomic, Space::shared, one.offset, kMbarrierBytes};
    WordAccess access = check_.races.get_access(op, warp, lane, touch);
    access.begin = one.offset;
    check_.races.report(access, state.made, true);
  }
  if (past != nullptr) state.open = join(state.open, past);
  for (std::uint32_t m = info.role == BarrierRole::track ? one.lanes : 0; m != 0; m &= m - 1) {
    track(warp, std::countr_zero(m), state);
  }
}

const Op* AsyncCopies::mbarrier(const Op* op, Warp& warp, const std::uint64_t* address, OpFn run) {
  const CheckedOp& info = check_.ops[warp.op_index(op)];
  const NamedBarriers named = named_barriers(op, warp, address);
  const std::span barriers(named.all.data(), named.count);
  SharedPast past;
  if (check_.race && info.role == BarrierRole::arrive) {
    if (info.release) check_.new_tick();
    past = info.release ? check_.order.snapshot(warp.index)
                        : check_.order.fenced(warp.index, Reach::block);
  }
  for (const Named& one : barriers) arrive(op, warp, one, past);
  const Op* const next = run(op, warp);
  if (warp.stop == Stop::fault || info.role == BarrierRole::begin) return next;
  const std::uint32_t done = info.role == BarrierRole::wait ? warp.pred(op->d) & warp.mask : 0;
  for (const Named& one : barriers) {
    if (one.owner->copies.phase_at(one.offset) != one.phase) one.owner->end_phase(one.offset);
    if ((one.lanes & done) != 0 && one.owner == &check_) {
      pass(warp, one.lanes & done, mbarrier_at(one.offset), info.acquire);
    }
  }
  return next;
}

void AsyncCopies::begin_bulk(AsyncCopy& copy, const Piece& from, bool local) {
  ++under_way_;
  if (!local || from.bytes == 0) return;
  copy.source = static_cast<std::uint32_t>(from.bytes);
  sources.add(from.begin, from.begin + from.bytes);
}

void AsyncCopies::end_bulk(std::uint64_t mbarrier, const AsyncCopy& copy) {
  MbarrierState& state = mbarrier_at(mbarrier);
  state.copies.push_back({kNoThread, copy});
  if (copy.stamp == 0) return;
  const auto arrived = std::find_if(arriving_.begin(), arriving_.end(), [&](const AsyncCopy& one) {
    return one.stamp == copy.stamp && one.from == copy.from && one.source == copy.source;
  });
  if (arrived != arriving_.end()) arriving_.erase(arrived);
  // A waiting thread comes after the copy's read of its source, even if its thread arrived before.
  auto past = std::make_shared<Past>();
  (*past)[check_.where.owner(copy.stamp)].places[get_thread(copy.stamp) / kLanes] =
      get_tick(copy.stamp) + 1;
  state.open = join(state.open, past);
}

const AsyncCopy* AsyncCopies::get_reader(std::uint64_t begin, std::uint64_t end) {
  const auto reads = [&](const AsyncCopy& one) { return one.reads(begin, end); };
  if (const AsyncCopy* const copy = groups_.find(reads); copy != nullptr) return copy;
  const auto arriving = std::find_if(arriving_.begin(), arriving_.end(), reads);
  if (arriving != arriving_.end()) return &*arriving;
  for (const auto& entry : mbarriers_) {
    const AsyncCopy* const copy = entry.second.get_reader(begin, end);
    if (copy != nullptr) return copy;
  }
  return nullptr;
}

}  // namespace kernwright::sim
