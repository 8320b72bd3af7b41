// The race check word by word, where the quick test of the shadows does not settle it.
#pragma once

#include "sim/check/block_place.h"
#include "sim/check/history/global_shadow.h"
#include "sim/check/history/shared_history.h"
#include "sim/check/order/block_order.h"
#include "sim/check/race/access.h"
#include "sim/check/race/rules.h"
#include "sim/check/race/speculated.h"
#include "sim/check/report/findings.h"

#include <cstdint>

namespace kernwright::sim {

class BlockCheck;

/// The race check of one block's accesses.
class RaceCheck {
 public:
  explicit RaceCheck(BlockCheck& check);

  /// The purpose of checking a lane's access.
  Speculated* looking = nullptr;  ///< its races are looked for, and nothing else is done
  bool taking = false;            ///< a read of before is noted

  /// Checks one access and notes it.
  void examine(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  void report(const WordAccess& access, Shadow other, bool other_wrote,
              Missing missing = Missing::order, Told told = Told::itself);
  /// Words, of the region or of shared memory, need no shadows for their bytes where all of those
  /// are of long ago. Whether there were any.
  bool forget_bytes(GlobalRegion* region, std::uint64_t begin, std::uint64_t count);
  /// The history of the accessed memory.
  AccessHistory& history(const LaneTouch& touch);
  /// The access, of no word yet. `touch` has to outlive it.
  WordAccess get_access(const Op* op, Warp& warp, int lane, const LaneTouch& touch) const;

 private:
  void examine_word(const WordAccess& access, Shadow& write, Shadow& read, std::uint32_t bytes);
  void examine_bytes(const WordAccess& access, Shadow& write, Shadow& read, std::uint32_t bytes);
  void examine_shadows(const WordAccess& access, Shadow& write, Shadow& read, Shadow tag);
  bool same_value(const WordAccess& access, Shadow other) const;
  void look_at_sources(const WordAccess& access);
  void look_at_readers(const WordAccess& access, Shadow& read);
  bool hides_readers(const WordAccess& access, Shadow read) const;
  Breadth hidden_breadth(const WordAccess& access, Shadow read) const;
  void look_at_hidden(const WordAccess& access, Shadow& write);
  void look_at_writes(const WordAccess& access, const Shadow& write);
  void note_reader(const WordAccess& access, Shadow& read, Shadow tag);
  void note_late_reader(const WordAccess& access, Shadow& read, Shadow tag);
  void note_write(const WordAccess& access, Shadow& write, Shadow tag);
  void spread_hidden(const WordAccess& access, const Shadow& write, Shadow* bytes);

  BlockCheck& check_;
  const BlockPlace& where_;
  const BlockOrder& order_;
  const RaceRules& rules_;
  SharedHistory& shared_;
};

}  // namespace kernwright::sim
