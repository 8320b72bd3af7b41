// Bulk copies by the asynchronous proxy: under way until a wait.
#include "sim/check/copies/async_proxy.h"

#include "sim/check/block_check.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/warp/warpgroup.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {

using ptx::Space;

AsyncCopy AsyncProxy::copy_to(const Op* op, Warp& warp, int lane, std::uint64_t rank,
                              const Piece& to, const Piece& from) {
  AsyncCopy copy{.to = to.begin, .from = from.begin, .op = warp.op_index(op)};
  copy.bytes = static_cast<std::uint32_t>(to.bytes);
  each_piece(from.begin, from.bytes, [&](std::uint64_t at, std::uint32_t bytes) {
    check_.lanes.touch(op, warp, lane, AccessKind::read, at, bytes, Space::global);
  });
  before_ = 0;
  check_.regions.each(from.begin, check_.race ? from.bytes : 0, AccessKind::read,
                      [&](const LaneTouch& part) { look_at_source(op, warp, lane, part); });
  BlockCheck* const owner = check_.peer(rank);
  if (owner == nullptr) return copy;
  owner->copies.begin_bulk(copy, from, owner == &check_);
  if (!check_.race) return copy;
  const CheckedOp& info = check_.ops[copy.op];
  const Shadow elsewhere = owner == &check_ ? 0 : kContended;
  copy.stamp = check_.get_stamp(info, warp.thread(lane)) | kAllBytes |
               (info.strong ? kStrong | elsewhere : kUnderWay);
  if (copy.source != 0) check_.copies.begin_read(copy);
  if (to.bytes != 0) write_by_copy(op, warp, lane, rank, to, copy.stamp);
  check_.new_tick();  // the copy's end tells nothing of what the warp does from now on
  return copy;
}

/// The target of a copy, in shared memory of the block with this rank.
void AsyncProxy::write_by_copy(const Op* op, Warp& warp, int lane, std::uint64_t rank,
                               const Piece& to, Shadow copy_stamp) {
  BlockCheck* const owner = check_.peer(rank);
  const CheckedOp& info = check_.ops[warp.op_index(op)];
  LaneTouch touch{info.strong ? AccessKind::atomic : AccessKind::write,
                  owner == &check_ ? Space::shared : Space::cluster};
  if (owner != &check_) touch.owner = owner;
  each_piece(to.begin, to.bytes, [&](std::uint64_t at, std::uint32_t bytes) {
    touch.address = owner == &check_ ? at : (rank + 1) << kRankShift | at;
    touch.bytes = bytes;
    check_.races.examine(op, warp, lane, touch);
    if (info.strong) return;
    for (std::uint64_t word = (at + 3) / 4; word < (at + bytes) / 4; ++word) {
      owner->shared.stamp_word(word, copy_stamp);
    }
  });
  if (owner != &check_) check_.cluster.visit(op, warp, lane, touch);
}

void AsyncProxy::copy_from(const Op* op, Warp& warp, int lane, BulkStore store) {
  const std::uint32_t thread = warp.thread(lane);
  store.op = warp.op_index(op);
  const CheckedOp& info = check_.ops[store.op];
  store.stamp = kUnderWay | kAllBytes | check_.get_stamp(info, thread);
  if (check_.race) store.read = reads.begin(check_.get_stamp(info, thread) | kAllBytes);
  before_ = 0;
  const bool moves =
      !info.strong && !store.is_tensor && store.source.size() == 1 && store.to.size() == 1;
  for (const Piece& piece : store.source) {
    each_piece(piece.begin, piece.bytes, [&](std::uint64_t at, std::uint32_t bytes) {
      read(op, warp, lane, at, bytes, moves ? &store : nullptr);
    });
    if (check_.race) reads.add(store.read, piece.begin, piece.bytes);
  }
  const AccessKind mode = info.strong ? AccessKind::atomic : AccessKind::write;
  for (const Piece& piece : store.to) {
    each_piece(piece.begin, piece.bytes, [&](std::uint64_t at, std::uint32_t bytes) {
      check_.lanes.touch(op, warp, lane, mode, at, bytes, Space::global);
    });
    if (check_.race && !info.strong) {
      restamp_global(
          piece, [](Shadow) { return true; }, store.stamp);
    }
  }
  check_.unwritten.end_copies(warp);
  stores_.add(thread, std::move(store));
}

/// Replaces the write shadows of whole words of global memory if `is` accepts them.
template <typename F>
void AsyncProxy::restamp_global(const Piece& piece, F is, Shadow shadow) {
  check_.regions.each(piece.begin, piece.bytes, AccessKind::write, [&](const LaneTouch& part) {
    const std::uint64_t end = part.address % kRegionBytes + part.bytes;
    for (std::uint64_t word = (part.address % kRegionBytes + 3) / 4; word < end / 4; ++word) {
      part.region->by_word(word);
      Shadow& write = part.region->write[word];
      if (!is_by_bytes(write) && is(write)) write = shadow;
    }
  });
}

void AsyncProxy::end_bulk_group(const Warp& warp) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    stores_.commit(warp.thread(std::countr_zero(m)));
  }
}

/// Its source may be written again by accesses ordered after the thread.
void AsyncProxy::end_read(Warp& warp, int lane, BulkStore& store) {
  if (!check_.race || store.read == 0) return;
  reads.drop(std::exchange(store.read, 0));
  for (const Piece& piece : store.source) {
    each_piece(piece.begin, piece.bytes, [&](std::uint64_t at, std::uint32_t bytes) {
      check_.races.examine(warp.code + store.op, warp, lane,
                           {AccessKind::read, Space::shared, at, bytes});
    });
  }
}

void AsyncProxy::wait_for_stores(Warp& warp, std::size_t left, bool reads_only) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint32_t thread = warp.thread(lane);
    if (reads_only) {
      stores_.each(thread, left, [&](BulkStore& store) { end_read(warp, lane, store); });
      continue;
    }
    stores_.wait(thread, left, [&](BulkStore& store) {
      end_read(warp, lane, store);
      end_store(store, check_.get_stamp(check_.ops[store.op], thread) | kAllBytes);
    });
  }
}

void AsyncProxy::end_store(const BulkStore& store, Shadow shadow) {
  if (!check_.race || check_.ops[store.op].strong) return;
  for (const Piece& piece : store.to) {
    restamp_global(
        piece, [&](Shadow write) { return write == store.stamp; }, shadow);
  }
}

void AsyncProxy::forget_stores() {
  stores_.clear([&](const BulkStore& store) { end_store(store, store.stamp & ~kUnderWay); });
  reads.clear();
}

/// Shared memory of this block, at most a piece of it.
void AsyncProxy::read(const Op* op, Warp& warp, int lane, std::uint64_t at, std::uint32_t bytes,
                      const BulkStore* to) {
  if (!check_.shared.has(at, bytes)) return;
  const LaneTouch touch{AccessKind::read, Space::shared, at, bytes};
  if (check_.init) check_.unwritten.read_by_proxy(op, warp, lane, touch, to);
  if (!check_.race) return;
  WordAccess access = check_.races.get_access(op, warp, lane, touch);
  for (std::uint64_t word = at / 4; word < (at + bytes + 3) / 4; ++word) {
    const Shadow write = check_.rules.last_write(check_.shared.hidden, check_.shared.write[word]);
    if (write == before_) continue;  // of a word that was looked at just now
    access.word = word;
    access.begin = 4 * word;
    if (write != 0 && !is_one_thread(write)) {
      for (const Shadow one : byte_writes(touch, word, write)) is_readable(access, one);
    } else if (is_readable(access, write)) {
      before_ = write;
    }
  }
}

/// Whether the write comes before a read by the asynchronous proxy; a proxy fence between the two
/// is needed as well.
bool AsyncProxy::is_readable(const WordAccess& access, Shadow write) {
  if (write == 0 || (!check_.where.clustered && get_tick(write) < check_.order.begin_tick()))
    return true;
  if (is_under_way(write) ||
      !check_.order.is_write_ordered(write, access.warp, access.lane, false)) {
    check_.races.report(access, write, true, is_under_way(write) ? Missing::wait : Missing::order);
    return false;
  }
  if (!needs_fence(write, access.warp)) return true;
  check_.races.report(access, write, true, Missing::proxy_fence);
  return false;
}

/// Whether a thread wrote it directly, without a later proxy fence known to the warp.
bool AsyncProxy::needs_fence(Shadow write, const Warp& warp) const {
  const CheckedOp* const writer = check_.where.op_at(get_site(write));
  const bool generic =
      writer != nullptr && (writer->kind == CheckKind::store || writer->kind == CheckKind::atomic ||
                            writer->kind == CheckKind::tile_store);
  return generic && !check_.order.is_proxied(write, warp);
}

/// The known last writes of a word's bytes; the word's shadow is `write`.
std::array<Shadow, 4> AsyncProxy::byte_writes(const LaneTouch& touch, std::uint64_t word,
                                              Shadow write) {
  std::array<Shadow, 4> bytes{};
  AccessHistory& there = check_.races.history(touch);
  const Shadow* const shadows = is_by_bytes(write) ? there.find_bytes(word) : nullptr;
  for (std::uint32_t b = 0; b < 4; ++b)
    bytes[b] = shadows != nullptr ? check_.rules.last_write(there.hidden, shadows[b])
                                  : byte_shadow(write, b);
  return bytes;
}

/// Global memory, of one region, read by a copy to shared memory: the rest of the race check, after
/// the check of their order.
void AsyncProxy::look_at_source(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  WordAccess access = check_.races.get_access(op, warp, lane, touch);
  const auto look = [&](Shadow write) {
    if (write == before_ || check_.order.is_forgotten(write, true) || is_under_way(write)) return;
    before_ = write;
    if (needs_fence(write, warp) && check_.order.is_write_ordered(write, warp, lane, true)) {
      check_.races.report(access, write, true, Missing::proxy_fence);
    }
  };
  const std::uint64_t begin = touch.address & ~std::uint64_t{3};
  for (std::uint64_t at = begin; at < touch.address + touch.bytes; at += 4) {
    access.word = at % kRegionBytes / 4;
    access.begin = at;
    const Granule& granule = touch.region->granules[access.word / kGranuleWords];
    if (granule.write < check_.order.launch_floor) continue;
    touch.region->by_word(access.word);
    const Shadow write =
        check_.rules.last_write(touch.region->hidden, touch.region->write[access.word]);
    if (write == 0 || is_one_thread(write)) {
      look(write);
      continue;
    }
    for (const Shadow one : byte_writes(touch, access.word, write)) look(one);
  }
}

void AsyncProxy::copy_between(const Op* op, Warp& warp, int lane, const Piece& from,
                              AsyncCopy& copy) {
  before_ = 0;
  each_piece(from.begin, from.bytes,
             [&](std::uint64_t at, std::uint32_t bytes) { read(op, warp, lane, at, bytes); });
  if (!check_.race) return;
  copy.reader = &check_;
  copy.read = reads.begin(check_.get_stamp(check_.ops[copy.op], warp.thread(lane)) | kAllBytes);
  reads.add(copy.read, from.begin, from.bytes);
  check_.new_tick();
}

void AsyncProxy::fence_maps(const Op* op, const Warp& warp) {
  if (!check_.race) return;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const std::uint64_t address =
        warp.reg<std::uint64_t>(op->a)[std::countr_zero(m)] + static_cast<std::uint64_t>(op->imm);
    if (window_space(address) != Space::global) continue;
    auto& shadows = fenced_maps_[address];
    for (std::uint64_t i = 0; i < shadows.size(); ++i) shadows[i] = map_write(address + 4 * i);
  }
}

/// The write shadow of a word of a tensor map, without flags beside the access.
Shadow AsyncProxy::map_write(std::uint64_t address) {
  GlobalRegion& there = *check_.regions.at(address);
  const std::lock_guard lock(there);
  const std::uint64_t word = address % kRegionBytes / 4;
  there.by_word(word);
  const Shadow write = check_.rules.last_write(there.hidden, there.write[word]);
  if (write == 0 || is_one_thread(write)) return write & ~kLookCloser;
  Shadow last = 0;
  for (const Shadow one : byte_writes({.region = &there}, word, write))
    last = std::max(last, one & ~kLookCloser);
  return last;
}

/// A tensor copy sees threads' writes to its map in this launch after a fence by any thread of its
/// block.
void AsyncProxy::use_map(const Op* op, Warp& warp, int lane, std::uint64_t address) {
  if (!check_.race || window_space(address) != Space::global) return;
  const auto fenced = fenced_maps_.find(address);
  for (std::uint64_t i = 0; i < kTensorMapBytes / 4; ++i) {
    const std::uint64_t at = address + 4 * i;
    const Shadow write = map_write(at);
    if (write < check_.order.launch_floor ||
        (fenced != fenced_maps_.end() && fenced->second[i] == write))
      continue;
    const LaneTouch touch{AccessKind::read, Space::global, at, 4, check_.regions.at(at)};
    WordAccess access = check_.races.get_access(op, warp, lane, touch);
    access.begin = at;
    return check_.races.report(access, write, true, Missing::map_fence);
  }
}

void AsyncProxy::look_at_write(const WordAccess& access, const BlockCheck& owner,
                               std::uint64_t begin, std::uint64_t end) {
  if (!owner.proxy.reads.span.meets(begin, end)) return;
  const std::uint32_t w = access.warp.index;
  const AsyncRead* const found = owner.proxy.reads.find(begin, end, [&](const AsyncRead& read) {
    if (read.ended == 0) return true;
    const std::uint32_t writer_warp = get_thread(read.stamp) / kLanes;
    const std::uint32_t leader = writer_warp / kWarpgroupWarps * kWarpgroupWarps;
    // Whether this warp comes after one with a wait for the read.
    const auto comes_after = [&](const auto& knows) {
      for (std::uint32_t i = 0; i < kWarpgroupWarps; ++i) {
        if (read.waited[i] != 0 && knows(read.waited[i], leader + i)) return true;
      }
      return false;
    };
    if (&owner == &check_) {
      return read.ended >= get_tick(check_.order.floor) &&
             !comes_after([&](std::uint32_t tick, std::uint32_t warp) {
               return warp == w || check_.order.knows(w, warp, tick);
             });
    }
    const BlockPast* const known = check_.order.get_past(w, owner.where.block);
    return known == nullptr || !comes_after([&](std::uint32_t tick, std::uint32_t warp) {
             return known->covers(tick, warp);
           });
  });
  if (found == nullptr) return;
  check_.races.report(access, found->stamp, false,
                      found->ended == 0 ? Missing::wait : Missing::order);
}

}  // namespace kernwright::sim
