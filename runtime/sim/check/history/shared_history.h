// What the race check remembers of a block's shared memory.
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

  /// Another one whenever a read that was looked at must be looked at again: after writes to shared
  /// memory, at each tick. 0, where that is not counted or there are no more numbers: always.
  std::uint32_t read_epoch = 1;
  std::uint32_t block_epoch = 1;  ///< when the block began
  const bool defers;
  LateReads late;
  WrittenGranules written;  ///< kept where reads are put off

  /// Nothing of what other blocks did is left.
  void clear();
  /// All that was done before is past.
  void begin_phase() noexcept {
    new_epoch();
    late.clear();
    written.forget();
  }
  void new_epoch() noexcept { read_epoch += read_epoch != 0; }
  /// Reads of words that follow those of bytes are not put off: one shadow could not tell of both.
  void note_narrow_read(std::uint64_t begin, std::uint64_t end) noexcept {
    if (defers) written.mark(begin, end);
  }
  bool has(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  std::uint64_t words() const noexcept { return bytes_ / 4; }
  Shadow* bytes_of_word(std::uint64_t word) override;
  /// The word's write shadows say that a copy is under way.
  void stamp_word(std::uint64_t word, Shadow stamp_of_copy);
  /// A shadow that says `before` says `now` from here on, with `others` of other warps beside it.
  void restamp(Shadow& shadow, Shadow before, Shadow now, const std::vector<Shadow>& others);

 private:
  std::uint64_t bytes_;
  ReaderLists reader_lists_;
  HiddenAccesses hidden_accesses_;
  std::vector<Shadow> shadows_;
  std::vector<Shadow> exact_;  ///< made when needed
};

}  // namespace kernwright::sim
