// Which accesses race with each other, and which of several need to be told apart.
#pragma once

#include "sim/check/block_place.h"
#include "sim/check/history/global_shadow.h"
#include "sim/check/order/block_order.h"
#include "sim/check/race/access.h"

#include <vector>

namespace kernwright::sim {

class RaceRules {
 public:
  /// `parts`: as CheckedProgram::kernel_orders_parts().
  RaceRules(const BlockPlace& place, const BlockOrder& order, bool parts)
      : place_(place), order_(order), parts_(parts) {}

  Conduct conduct_of(Shadow shadow) const;
  /// Whether a write shadow tells of an atomic read.
  bool is_load(Shadow write) const;
  /// Whether the access races with what the write shadow tells of, where nothing orders the two.
  bool conflicts(Shadow write, const WordAccess& access) const;
  /// Whether whatever races with `shadow` races with `by` too, unless something orders it and `by`.
  bool covers(Shadow by, Shadow shadow) const;
  /// The last write that a write shadow tells of, which an atomic read may hide; 0: none in this
  /// launch.
  Shadow last_write(const HiddenAccesses& all, const Shadow& write) const;
  /// Leaves out of a word's hidden accesses those that tell nothing more beside `now`, the newest.
  void thin(const WordAccess& access, std::vector<Shadow>& list, Shadow now) const;
  /// Where a program orders parts of blocks, two readers of each block stand for the others when
  /// there are many, and where many blocks read, two of those.
  void make_room(std::vector<Shadow>& list, Shadow now) const;

 private:
  bool stand_for(Shadow a, Shadow b, Shadow shadow) const;
  template <typename F>
  void leave_out(std::vector<Shadow>& list, Shadow now, bool across, F covers) const;
  template <typename F>
  void keep_apart(std::vector<Shadow>& list, Shadow now, F covers) const;

  const BlockPlace& place_;
  const BlockOrder& order_;
  const bool parts_;
};

}  // namespace kernwright::sim
