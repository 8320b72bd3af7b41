// The race check's data about a block's shared memory.
#pragma once

#include "sim/check/history/global_shadow.h"
#include "sim/check/history/late_reads.h"
#include "sim/check/history/shadow.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

class SharedHistory final : public AccessHistory {
 public:
  /// `its_defers`: reads may be put off. No shadows where there is no race check.
  SharedHistory(std::uint64_t bytes, bool race, bool its_defers);

  /// Changes when checked reads must be checked again: after writes to shared memory, at each tick.
  /// 0, without such counting or when numbers run out: always.
  std::uint32_t read_epoch = 1;
  std::uint32_t block_epoch = 1;  ///< when the block began
  const bool defers;
  LateReads late;
  WrittenGranules written;  ///< kept where reads are put off

  /// Forgets other blocks' accesses.
  void clear();
  /// Marks all earlier accesses as past.
  void begin_phase() noexcept {
    new_epoch();
    late.clear();
    written.forget();
  }
  void new_epoch() noexcept { read_epoch += read_epoch != 0; }
  /// Reads of words after reads of bytes are not postponed: one shadow could not hold both.
  void note_narrow_read(std::uint64_t begin, std::uint64_t end) noexcept {
    if (defers) written.mark(begin, end);
  }
  bool has(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  std::uint64_t words() const noexcept { return bytes_ / 4; }
  Shadow* find_bytes(std::uint64_t word) override;
  /// Marks the word's write shadows with a copy under way.
  void stamp_word(std::uint64_t word, Shadow copy_stamp);
  /// Replaces `before` by `now` in a shadow, with `others` of other warps beside it.
  void restamp(Shadow& shadow, Shadow before, Shadow now, const std::vector<Shadow>& others);

 private:
  std::uint64_t bytes_;
  ReaderLists reader_lists_;
  HiddenAccesses hidden_accesses_;
  std::vector<Shadow> shadows_;
  std::vector<Shadow> exact_;  ///< made when needed
};

}  // namespace kernwright::sim
