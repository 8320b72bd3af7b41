// The checks' data about an mbarrier: its arrivals' releases, and its tracked copies.
#pragma once

#include "sim/check/copies/copy_groups.h"
#include "sim/check/history/shadow.h"
#include "sim/check/order/clock.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace kernwright::sim {

struct MbarrierState {
  /// A copy that reports its end to the barrier.
  struct Tracked {
    std::uint32_t thread = 0;
    AsyncCopy copy;
    bool done = false;  ///< in a phase before
  };

  SharedPast open;      ///< released in the phase under way
  SharedPast complete;  ///< in the phases before
  std::vector<Tracked> copies;
  std::uint32_t place = 0;  ///< in Known
  Shadow made = 0;          ///< by whom and when: mbarrier.init or inval; 0: it is not known

  const AsyncCopy* get_reader(std::uint64_t begin, std::uint64_t end) const {
    const auto found = std::find_if(copies.begin(), copies.end(), [&](const Tracked& tracked) {
      return tracked.copy.reads(begin, end);
    });
    return found == copies.end() ? nullptr : &found->copy;
  }
  void end_phase() {
    complete = join(complete, std::exchange(open, nullptr));
    for (Tracked& tracked : copies) tracked.done = true;
  }
};

}  // namespace kernwright::sim
