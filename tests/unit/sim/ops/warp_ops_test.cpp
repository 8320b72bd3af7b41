// Exchanges between lanes against the definitions of the PTX manual, computed lane by lane.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <bit>
#include <cstdint>

namespace kernwright::sim {
namespace {

/// Value of lane i in these tests.
std::uint32_t value_of(std::uint32_t lane) { return lane * 2654435761u + 12345; }

const std::string kValue =
    "mad.lo.u32 %r1, %r0, 2654435761, 12345;\n"
    "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 8; add.s64 %d9, %d9, %d8;\n";
const std::string kStore =
    "st.global.u32 [%d9], %r2; selp.u32 %r3, 1, 0, %p1; st.global.u32 [%d9+4], %r3;\n";

struct Pair {
  std::uint32_t value, flag;
};

std::vector<Pair> run_pairs(const std::string& body) {
  OpsRunner runner;
  const auto to = runner.upload(std::vector<std::uint64_t>(32, ~std::uint64_t{0}));
  REQUIRE(runner.run(kValue + body, {to}).message == "");
  return runner.download<Pair>(to, 32);
}

/// The segments of shfl stated as ranges of lanes rather than as masks: segments of `width` lanes,
/// reading outside the own segment fails.
Pair expected_shfl(const std::string& mode, int lane, int b, int width) {
  const int begin = lane / width * width, end = begin + width;
  int from = lane;
  if (mode == "up") from = lane - b;
  if (mode == "down") from = lane + b;
  if (mode == "bfly") from = lane ^ b;
  if (mode == "idx") from = begin + b % width;
  const bool inside = mode == "bfly" ? from < end : from >= begin && from < end;
  return {value_of(static_cast<std::uint32_t>(inside ? from : lane)), inside ? 1u : 0u};
}

TEST_CASE("shfl.sync: four modes, all distances, segments of 8, 16 and 32 lanes, with predicate") {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const int width : {8, 16, 32}) {
      const int c = ((32 - width) << 8) | (mode == "up" ? 0 : 31);
      for (const int b : {0, 1, 2, 5, 8, 16, 31}) {
        const auto result =
            run_pairs("shfl.sync." + mode + ".b32 %r2|%p1, %r1, " + std::to_string(b) + ", " +
                      std::to_string(c) + ", 0xffffffff;\n" + kStore);
        for (int lane = 0; lane < 32; ++lane) {
          const Pair expected = expected_shfl(mode, lane, b, width);
          INFO("shfl." << mode << " b " << b << " width " << width << " lane " << lane);
          CHECK(result[static_cast<std::size_t>(lane)].value == expected.value);
          CHECK(result[static_cast<std::size_t>(lane)].flag == expected.flag);
        }
      }
    }
  }
}

TEST_CASE("shfl.sync.idx: a lane index per lane, into its own source register") {
  const auto result = run_pairs(
      "mul.lo.u32 %r4, %r0, 7; shfl.sync.idx.b32 %r1, %r1, %r4, 31, 0xffffffff;\n"
      "mov.u32 %r2, %r1; setp.ne.u32 %p1, %r0, 99;\n" +
      kStore);
  for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i].value == value_of(i * 7 % 32));
}

TEST_CASE("shfl.sync gives 0 where the source takes no part: waits elsewhere, has exited") {
  for (const bool exits : {false, true}) {
    const std::string rest = exits ? "st.global.u64 [%d9], 0; ret;" : "bra DONE;";
    const auto result = run_pairs(
        "mov.u32 %r2, 0; setp.ge.u32 %p0, %r0, 20; setp.eq.u32 %p1, %r0, 32;\n@%p0 bra REST;\n"
        "shfl.sync.bfly.b32 %r2|%p1, %r1, 16, 31, 0xfffff; bra DONE;\nREST: " +
        rest + "\nDONE:\n" + kStore);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const bool has_source = lane < 4 || (lane >= 16 && lane < 20);
      INFO("lane ", lane, exits ? ", the rest has exited" : "");
      CHECK(result[lane].value == (has_source ? value_of(lane ^ 16) : 0));
      CHECK(result[lane].flag == (lane < 20 ? 1 : 0));
    }
  }
}

TEST_CASE("shfl.sync of half the warp in divergent code exchanges within that half") {
  const auto result = run_pairs(
      "mov.u32 %r2, 0; setp.eq.u32 %p1, %r0, 99; setp.ge.u32 %p2, %r0, 16; @%p2 bra HIGH;\n"
      "shfl.sync.bfly.b32 %r2|%p1, %r1, 3, 31, 0x0000ffff; bra DONE;\n"
      "HIGH: shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, 0xffff0000;\nDONE:\n" +
      kStore);
  for (std::uint32_t i = 0; i < 32; ++i)
    CHECK(result[i].value == value_of(i < 16 ? i ^ 3 : i == 31 ? 31 : i + 1));
}

TEST_CASE("vote.sync: all, any, uni and ballot over members") {
  const std::string predicate = "setp.lt.u32 %p2, %r0, 8; setp.lt.u32 %p3, %r0, 99;\n";
  auto all = run_pairs(predicate +
                       "vote.sync.all.pred %p1, %p3, 0xffffffff;\n"
                       "vote.sync.ballot.b32 %r2, %p2, 0xffffffff;\n" +
                       kStore);
  CHECK(all[31].value == 0xff);
  CHECK(all[31].flag == 1);
  all = run_pairs(predicate +
                  "vote.sync.all.pred %p1, %p2, 0xffffffff;\n"
                  "vote.sync.ballot.b32 %r2, !%p2, 0xffffffff;\n" +
                  kStore);
  CHECK(all[0].value == 0xffffff00);
  CHECK(all[0].flag == 0);
  // Each half of the warp is a group of its own.
  const std::string groups =
      predicate + "setp.lt.u32 %p4, %r0, 16; selp.b32 %r5, 0xffff, 0xffff0000, %p4;\n";
  const auto any = run_pairs(groups +
                             "vote.sync.any.pred %p1, %p2, %r5;\n"
                             "vote.sync.ballot.b32 %r2, %p3, %r5;\n" +
                             kStore);
  const auto uni =
      run_pairs(groups + "vote.sync.uni.pred %p1, %p2, %r5; mov.u32 %r2, 0;\n" + kStore);
  for (std::uint32_t i = 0; i < 32; ++i) {
    CHECK(any[i].flag == (i < 16 ? 1 : 0));
    CHECK(any[i].value == (i < 16 ? 0xffffu : 0xffff0000u));
    CHECK(uni[i].flag == (i < 16 ? 0 : 1));
  }
}

TEST_CASE("exchanges take their words in any order") {
  // Each pair of lines: the manual's order, then one that headers write.
  const std::string predicate = "setp.lt.u32 %p2, %r0, 8;\n";
  for (const auto& pair : std::vector<std::pair<std::string, std::string>>{
           {"vote.sync.ballot.b32 %r2, %p2, -1;", "vote.ballot.sync.b32 %r2, %p2, -1;"},
           {"vote.sync.any.pred %p1, %p2, -1;", "vote.any.sync.pred %p1, %p2, -1;"},
           {"vote.sync.all.pred %p1, !%p2, -1;", "vote.all.sync.pred %p1, !%p2, -1;"},
           {"vote.sync.uni.pred %p1, %p2, -1;", "vote.uni.sync.pred %p1, %p2, -1;"},
           {"match.any.sync.b32 %r2, %r4, -1;", "match.sync.any.b32 %r2, %r4, -1;"},
           {"shfl.sync.bfly.b32 %r2|%p1, %r1, 5, 31, -1;",
            "shfl.bfly.sync.b32 %r2|%p1, %r1, 5, 31, -1;"},
           {"redux.sync.add.u32 %r2, %r0, -1;", "redux.add.sync.u32 %r2, %r0, -1;"}}) {
    const std::string& other = pair.second;
    CAPTURE(other);
    const std::string before =
        predicate + "and.b32 %r4, %r0, 6; mov.u32 %r2, 3; setp.eq.u32 %p1, %r4, 2;\n";
    const auto expected = run_pairs(before + pair.first + "\n" + kStore);
    const auto got = run_pairs(before + other + "\n" + kStore);
    for (std::uint32_t i = 0; i < 32; ++i) {
      CHECK(got[i].value == expected[i].value);
      CHECK(got[i].flag == expected[i].flag);
    }
  }
}

TEST_CASE("match.sync: any finds equal lanes, all reports agreement") {
  const auto any = run_pairs(
      "and.b32 %r4, %r0, 6; match.any.sync.b32 %r2, %r4, 0xffffffff;\n"
      "setp.eq.u32 %p1, %r0, 0;\n" +
      kStore);
  for (std::uint32_t i = 0; i < 32; ++i) {
    std::uint32_t expected = 0;
    for (std::uint32_t j = 0; j < 32; ++j) expected |= ((i & 6) == (j & 6) ? 1u : 0u) << j;
    CHECK(any[i].value == expected);
  }
  const auto same = run_pairs(
      "mov.b64 %d1, 0x100000000; match.all.sync.b64 %r2|%p1, %d1, 0xffffffff;\n" + kStore);
  CHECK(same[9].value == 0xffffffff);
  CHECK(same[9].flag == 1);
  const auto differ = run_pairs(
      "cvt.u64.u32 %d1, %r0; shl.b64 %d1, %d1, 40; match.all.sync.b64 %r2|%p1, %d1, 0xffffffff;\n" +
      kStore);
  CHECK(differ[9].value == 0);
  CHECK(differ[9].flag == 0);
}

TEST_CASE("activemask shows who runs together") {
  const auto result = run_pairs(
      "setp.eq.u32 %p1, %r0, 99; setp.ge.u32 %p2, %r0, 12; @%p2 bra OTHER; activemask.b32 %r2; bra "
      "DONE;\n"
      "OTHER: activemask.b32 %r2;\nDONE:\n" +
      kStore);
  for (std::uint32_t i = 0; i < 32; ++i) CHECK(result[i].value == (i < 12 ? 0xfffu : 0xfffff000u));
}

TEST_CASE("redux.sync: integers over the members, each group apart") {
  std::uint32_t sum = 0, bits_and = ~0u, bits_or = 0, bits_xor = 0, low = ~0u, high = 0;
  std::int32_t signed_low = INT32_MAX, signed_high = INT32_MIN;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t v = value_of(i);
    sum += v;
    bits_and &= v | 1;
    bits_or |= v;
    bits_xor ^= v;
    low = std::min(low, v);
    high = std::max(high, v);
    signed_low = std::min(signed_low, static_cast<std::int32_t>(v));
    signed_high = std::max(signed_high, static_cast<std::int32_t>(v));
  }
  const auto reduce = [](const std::string& op, const std::string& source) {
    return run_pairs("or.b32 %r6, %r1, 1; redux.sync." + op + " %r2, " + source +
                     ", 0xffffffff; setp.eq.u32 %p1, %r0, 0;\n" + kStore)[17]
        .value;
  };
  CHECK(reduce("add.u32", "%r1") == sum);
  CHECK(reduce("add.s32", "%r1") == sum);
  CHECK(reduce("and.b32", "%r6") == bits_and);
  CHECK(reduce("or.b32", "%r1") == bits_or);
  CHECK(reduce("xor.b32", "%r1") == bits_xor);
  CHECK(reduce("min.u32", "%r1") == low);
  CHECK(reduce("max.u32", "%r1") == high);
  CHECK(reduce("min.s32", "%r1") == static_cast<std::uint32_t>(signed_low));
  CHECK(reduce("max.s32", "%r1") == static_cast<std::uint32_t>(signed_high));
  const auto groups = run_pairs(
      "shr.u32 %r4, %r0, 3; shl.b32 %r4, %r4, 3; mov.u32 %r5, 0xff; shl.b32 %r5, %r5, %r4;\n"
      "redux.sync.add.u32 %r2, %r0, %r5; setp.eq.u32 %p1, %r0, 0;\n" +
      kStore);
  for (std::uint32_t i = 0; i < 32; ++i) CHECK(groups[i].value == 28 + 64 * (i / 8));
}

TEST_CASE("lanes that have left the kernel are not waited for and do not vote") {
  OpsRunner runner;
  const auto to = runner.upload(std::vector<std::uint32_t>(32, 0));
  const auto report = runner.run(
      "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 4; add.s64 %d9, %d9, %d8;\n"
      "setp.ge.u32 %p1, %r0, 20; @%p1 exit; setp.lt.u32 %p2, %r0, 99;\n"
      "vote.sync.ballot.b32 %r2, %p2, 0xffffffff; st.global.u32 [%d9], %r2;\n",
      {to});
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint32_t>(to, 32);
  CHECK(result[0] == 0xfffff);
  CHECK(result[25] == 0);
}

TEST_CASE("a partial warp exchanges among the threads it has") {
  OpsRunner runner;
  runner.block = {20, 1, 1};
  const auto to = runner.upload(std::vector<std::uint32_t>(32, 7));
  const auto report = runner.run(
      "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 4; add.s64 %d9, %d9, %d8;\n"
      "redux.sync.add.u32 %r2, %r0, 0xffffffff; st.global.u32 [%d9], %r2;\n",
      {to});
  REQUIRE(report.message == "");
  const auto result = runner.download<std::uint32_t>(to, 32);
  CHECK(result[19] == 190);
  CHECK(result[20] == 7);
}

}  // namespace
}  // namespace kernwright::sim
