// Which rounds of a block count as waiting, and for how much.
#include "sim/exec/block/block_waits.h"

#include <doctest/doctest.h>

#include <vector>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// Two warps, whose rounds take as many instructions as the test says.
struct Rounds {
  BlockWaits waits;
  std::vector<Warp> warps = std::vector<Warp>(2);

  Rounds() { waits.begin(warps.size()); }
  void take(RoundKind kind, std::uint64_t instructions, int count = 1, bool met = false) {
    for (int i = 0; i < count; ++i) {
      warps[0].executed += instructions;
      waits.count(kind, met, warps);
    }
  }
};

}  // namespace

TEST_CASE("block waits: only rounds in loops that wait make a block seem to wait") {
  Rounds rounds;
  rounds.take(RoundKind::idle, 32, 255);
  CHECK_FALSE(rounds.waits.seem_long());
  rounds.take(RoundKind::idle, 32);
  CHECK(rounds.waits.seem_long());
  CHECK(rounds.waits.instructions() == 256 * 32);
  rounds.take(RoundKind::work, 32);
  CHECK_FALSE(rounds.waits.seem_long());
  CHECK(rounds.waits.instructions() == 0);
  rounds.take(RoundKind::idle, 32, 255);
  rounds.take(RoundKind::idle, 1 << 20);  // so long a round is work
  CHECK_FALSE(rounds.waits.seem_long());
}

TEST_CASE("block waits: barriers between idle rounds do not end a wait, many in a row do") {
  Rounds rounds;
  for (int i = 0; i < 256; ++i) {
    rounds.take(RoundKind::idle, 8);
    rounds.take(RoundKind::plain, 8, 3, true);
  }
  CHECK(rounds.waits.seem_long());
  CHECK(rounds.waits.instructions() == 256 * (8 + 3));  // a round with a barrier counts an eighth
  rounds.take(RoundKind::plain, 8, 1025, true);
  CHECK_FALSE(rounds.waits.seem_long());
  CHECK(rounds.waits.instructions() == 0);
}

TEST_CASE("block waits: long loops that may wait count an eighth") {
  Rounds rounds;
  rounds.take(RoundKind::idle, 16384, 256);
  CHECK(rounds.waits.seem_long());
  CHECK(rounds.waits.instructions() == 256 * 16384 / 8);
}

TEST_CASE("block waits: a warp's slice is idle where it yields soon in a loop that may wait") {
  BlockWaits waits;
  waits.begin(1);
  Warp::Schedule schedule;
  Warp warp;
  warp.schedule = &schedule;
  warp.may_wait = true;
  warp.executed = 100;
  CHECK(waits.slice_kind(warp, WarpStatus::yielded) == RoundKind::idle);
  warp.executed += 1 << 20;
  CHECK(waits.slice_kind(warp, WarpStatus::yielded) == RoundKind::work);
  warp.executed += 100;
  warp.may_wait = false;
  CHECK(waits.slice_kind(warp, WarpStatus::yielded) == RoundKind::work);
  schedule.count = 2;
  schedule.splits[0].state = schedule.splits[1].state = SplitState::barrier;
  CHECK(waits.slice_kind(warp, WarpStatus::waiting) == RoundKind::plain);
  schedule.splits[1].state = SplitState::sync;
  CHECK(waits.slice_kind(warp, WarpStatus::waiting) == RoundKind::work);
  // The next block begins anew.
  waits.begin(1);
  warp.may_wait = true;
  warp.executed = 32000;
  CHECK(waits.slice_kind(warp, WarpStatus::yielded) == RoundKind::idle);
}
