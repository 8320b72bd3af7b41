// Cells of words, and of their bytes where those have some of their own.
#include "sim/check/block_check.h"

#include <algorithm>

namespace kernwright::sim {

Cell* BlockCheck::byte_cells(const LaneTouch& touch, std::uint64_t word) {
  if (touch.region != nullptr) return touch.region->bytes_of_word(word);
  if (touch.owner != nullptr) {
    LaneTouch own = touch;
    own.owner = nullptr;
    return touch.owner->byte_cells(own, word);
  }
  if (shared_exact_.empty()) shared_exact_.resize(8 * (shared_bytes_ / 4 + 1));
  return shared_exact_.data() + 8 * word;
}

/// Gives the bytes cells of their own where one pair cannot say who touched which.
void BlockCheck::examine_word(const WordAccess& access, Cell& write, Cell& read,
                              std::uint32_t bytes) {
  if ((write & kExact) != 0) return examine_bytes(access, write, read, bytes);
  const auto differs = [&](Cell cell) {
    if (bytes == 15 && bytes_of(cell) == 15) return false;
    if (order.is_forgotten(cell, access.global)) return false;
    const bool same_time =
        thread_of(cell) == thread_of(access.mine) && tick_of(cell) == tick_of(access.mine);
    return bytes_of(cell) != bytes || !same_time;
  };
  const bool aligned = (kOneThread >> bytes & 1) != 0;
  if (aligned && !differs(write) && !differs(read)) {
    return examine_cells(access, write, read, access.mine | Cell{bytes} << kBytesShift);
  }
  Cell* const cells = byte_cells(access.touch, access.word);
  for (std::uint32_t b = 0; b < 4; ++b) {
    cells[b] = byte_of(write, b);
    cells[4 + b] = byte_of(read, b);
    if (!parts || (cells[4 + b] & kMany) == 0) continue;
    ReaderLists& lists = readers(access);
    if (const auto list = lists.find(&read); list != lists.end()) {
      std::vector<Cell> same = list->second;
      lists[&cells[4 + b]] = std::move(same);
    }
  }
  spread_hidden(access, write, cells);
  write = kExactWord;
  read = 0;
  if (defers && !access.global) written.keep(access.begin);
  examine_bytes(access, write, read, bytes);
}

void BlockCheck::examine_bytes(const WordAccess& access, Cell& write, Cell& read,
                               std::uint32_t bytes) {
  Cell* const cells = byte_cells(access.touch, access.word);
  const std::size_t before = findings.size();
  for (std::uint32_t b = 0; b < 4; ++b) {
    if ((bytes >> b & 1) == 0) continue;
    examine_cells(access, cells[b], cells[4 + b], access.mine | Cell{1u << b} << kBytesShift);
    if (findings.size() != before) break;
  }
  if (bytes != 15 || access.touch.mode == AccessKind::read) return;
  // One pair says it all again, but for bytes that different threads read: another thread's write
  // may race with those alone, where it repeats this one or both are atomic.
  const auto same = [](const Cell* four) {
    return std::all_of(four, four + 4,
                       [&](Cell cell) { return ((cell ^ four[0]) & ~kAllBytes) == 0; });
  };
  const bool unread = std::all_of(
      cells + 4, cells + 8, [&](Cell cell) { return order.is_forgotten(cell, access.global); });
  const bool one_reader = same(cells + 4) && (!parts || (cells[4] & kMany) == 0);
  if (is_contended(cells[0]) || !same(cells) || (!unread && !one_reader)) return;
  write = cells[0] | kAllBytes;
  read = unread ? 0 : cells[4] | kAllBytes;
}

bool BlockCheck::forget_bytes(GlobalRegion* there, std::uint64_t begin, std::uint64_t count) {
  const LaneTouch touch{.region = there};
  Cell* const writes = there != nullptr ? there->write : shared_write;
  Cell* const reads = there != nullptr ? there->read : shared_read;
  bool changed = false;
  for (std::uint64_t word = begin; word < begin + count; ++word) {
    if ((writes[word] & kExact) == 0) continue;
    const Cell* const cells = byte_cells(touch, word);
    const auto past = [&](Cell cell) { return order.is_forgotten(cell, there != nullptr); };
    if (!std::all_of(cells, cells + 8, past)) continue;
    writes[word] = reads[word] = 0;
    changed = true;
  }
  return changed;
}

/// The word's write cells say that a copy is under way, which examine() was asked about.
void BlockCheck::stamp_word(std::uint64_t word, Cell stamp_of_copy) {
  Cell& write = shared_write[word];
  if ((write & kExact) == 0) {
    write = stamp_of_copy;
  } else {
    std::fill_n(shared_exact_.data() + 8 * word, 4, stamp_of_copy);
  }
}

/// A cell that says `before` says `now` from here on, with `others` of other warps beside it.
void BlockCheck::restamp_cell(Cell& write, Cell before, Cell now, const std::vector<Cell>& others) {
  if (write != before) return;
  write = now;
  if (others.empty()) {
    if (!hidden_.empty()) hidden_.erase(&write);
    return;
  }
  hidden_[&write] = others;
  write |= kAside;
}

bool BlockCheck::has_shared(std::uint64_t offset, std::uint64_t bytes) const {
  return offset <= shared_bytes_ && bytes <= shared_bytes_ - offset;
}

}  // namespace kernwright::sim
