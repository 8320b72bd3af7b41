// The rules for races between accesses, and for the accesses to keep of several.
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

  Conduct get_conduct(Shadow shadow) const;
  /// Whether a write shadow tells of an atomic read.
  bool is_load(Shadow write) const;
  /// Whether the access races with the write shadow's accesses, if nothing orders the two.
  bool conflicts(Shadow write, const WordAccess& access) const;
  /// Whether `later`, an atomic operation with a result, got its value from `earlier` or from
  /// atomic operations after that. Then what comes after `later` comes after `earlier`, too.
  bool observes(Shadow later, Shadow earlier) const;
  /// Whether whatever races with `shadow` races with `by` too, unless something orders it and `by`.
  bool covers(Shadow by, Shadow shadow) const;
  /// The last write in a write shadow, possibly hidden by an atomic read; 0: none in this launch.
  Shadow last_write(const HiddenAccesses& all, const Shadow& write) const;
  /// Drops a word's hidden accesses that add nothing to `now`, the newest.
  void thin(const WordAccess& access, std::vector<Shadow>& list, Shadow now) const;
  /// If a program orders parts of blocks, two readers of each block stand for the others when there
  /// are many, and for many reading blocks, two of those.
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
