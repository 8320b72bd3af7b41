// The race check's data about a block's shared memory.
#include "sim/check/history/shared_history.h"

#include <algorithm>

namespace kernwright::sim {

SharedHistory::SharedHistory(std::uint64_t bytes, bool race, bool its_defers)
    : AccessHistory(reader_lists_, hidden_accesses_),
      defers(its_defers),
      written(bytes),
      bytes_(bytes) {
  if (defers) late.reserve();
  if (!race) return;
  if (!defers) read_epoch = 0;
  shadows_.resize(2 * (words() + 1));
  write = shadows_.data();
  read = write + words() + 1;
}

void SharedHistory::clear() {
  std::fill(shadows_.begin(), shadows_.end(), 0);
  std::fill(exact_.begin(), exact_.end(), 0);
}

Shadow* SharedHistory::find_bytes(std::uint64_t word) {
  if (exact_.empty()) exact_.resize(8 * (words() + 1));
  return exact_.data() + 8 * word;
}

void SharedHistory::stamp_word(std::uint64_t word, Shadow copy_stamp) {
  if (!is_by_bytes(write[word])) {
    write[word] = copy_stamp;
  } else {
    std::fill_n(find_bytes(word), 4, copy_stamp);
  }
}

void SharedHistory::restamp(Shadow& shadow, Shadow before, Shadow now,
                            const std::vector<Shadow>& others) {
  if (shadow != before) return;
  shadow = now;
  if (others.empty()) {
    if (!hidden.empty()) hidden.erase(&shadow);
    return;
  }
  hidden[&shadow] = others;
  shadow |= kContended;
}

}  // namespace kernwright::sim
