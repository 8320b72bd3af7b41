// Which turns of a block count as waiting, and for how much.
#include "sim/exec/block_waits.h"

#include <doctest/doctest.h>

#include <vector>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// Two warps, whose turns take as many instructions as the test says.
struct Turns {
  BlockWaits waits;
  std::vector<Warp> warps = std::vector<Warp>(2);

  Turns() { waits.begin(warps.size()); }
  void take(TurnKind kind, std::uint64_t instructions, int count = 1, bool met = false) {
    for (int i = 0; i < count; ++i) {
      warps[0].executed += instructions;
      waits.count(kind, met, warps);
    }
  }
};

}  // namespace

TEST_CASE("block waits: only turns in loops that wait make a block seem to wait") {
  Turns turns;
  turns.take(TurnKind::idle, 32, 255);
  CHECK_FALSE(turns.waits.seem_long());
  turns.take(TurnKind::idle, 32);
  CHECK(turns.waits.seem_long());
  CHECK(turns.waits.instructions() == 256 * 32);
  turns.take(TurnKind::work, 32);
  CHECK_FALSE(turns.waits.seem_long());
  CHECK(turns.waits.instructions() == 0);
  turns.take(TurnKind::idle, 32, 255);
  turns.take(TurnKind::idle, 1 << 20);  // so long a turn is work
  CHECK_FALSE(turns.waits.seem_long());
}

TEST_CASE("block waits: barriers between idle turns do not end a wait, many in a row do") {
  Turns turns;
  for (int i = 0; i < 256; ++i) {
    turns.take(TurnKind::idle, 8);
    turns.take(TurnKind::plain, 8, 3, true);
  }
  CHECK(turns.waits.seem_long());
  CHECK(turns.waits.instructions() == 256 * (8 + 3));  // a turn with a barrier counts an eighth
  turns.take(TurnKind::plain, 8, 1025, true);
  CHECK_FALSE(turns.waits.seem_long());
  CHECK(turns.waits.instructions() == 0);
}

TEST_CASE("block waits: long loops that may wait count an eighth") {
  Turns turns;
  turns.take(TurnKind::idle, 16384, 256);
  CHECK(turns.waits.seem_long());
  CHECK(turns.waits.instructions() == 256 * 16384 / 8);
}

TEST_CASE("block waits: a warp's turn is idle where it yields soon in a loop that may wait") {
  BlockWaits waits;
  waits.begin(1);
  Warp::Schedule schedule;
  Warp warp;
  warp.schedule = &schedule;
  warp.may_wait = true;
  warp.executed = 100;
  CHECK(waits.kind_of_turn(warp, WarpStatus::yielded) == TurnKind::idle);
  warp.executed += 1 << 20;
  CHECK(waits.kind_of_turn(warp, WarpStatus::yielded) == TurnKind::work);
  warp.executed += 100;
  warp.may_wait = false;
  CHECK(waits.kind_of_turn(warp, WarpStatus::yielded) == TurnKind::work);
  schedule.count = 2;
  schedule.splits[0].state = schedule.splits[1].state = SplitState::barrier;
  CHECK(waits.kind_of_turn(warp, WarpStatus::waiting) == TurnKind::plain);
  schedule.splits[1].state = SplitState::sync;
  CHECK(waits.kind_of_turn(warp, WarpStatus::waiting) == TurnKind::work);
  // The next block begins anew.
  waits.begin(1);
  warp.may_wait = true;
  warp.executed = 32000;
  CHECK(waits.kind_of_turn(warp, WarpStatus::yielded) == TurnKind::idle);
}
