// cp.async.bulk in every direction, its groups, multicast, reductions and findings.
#include "unit/sim/device/hopper_runner.h"
#include "unit/sim/exec/copy/tile_kernels.h"

#include <bit>
#include <numeric>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

const std::string kShared = ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n";
const std::string kSetUp = R"(
mov.u32 %r1, tile;
mov.u32 %r2, bar;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
bar.sync 0;
ld.param.u64 %d1, [p0];
ld.param.u64 %d2, [p1];
)";

std::vector<std::uint32_t> counted(std::size_t count, std::uint32_t first = 0) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("bulk copies: global to shared and back, eager and deferred") {
  for (const std::uint64_t seed : {0, 1, 9}) {
    HopperRunner runner;
    runner.seed = seed;
    const std::uint64_t in = runner.upload(counted(512, 7));
    const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(512));
    require_fine(runner.run(kSetUp + R"(
@!%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 1024, [%r2];
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1+1024], [%d1+1024],
 1024, [%r2], %d9;
)" + kWait + R"(
@!%p1 bra END;
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r1], 512;
cp.async.bulk.commit_group;
cp.async.bulk.global.shared::cta.bulk_group [%d2+512], [%r1+512], 1536;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 1;
cp.async.bulk.wait_group 0;
END:
)",
                            {in, out}, kShared));
    CHECK(runner.download<std::uint32_t>(out, 512) == counted(512, 7));
  }
}

TEST_CASE("bulk copies: deferred ones show a read without a wait") {
  const std::string body = kSetUp + R"(
@!%p1 bra END;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 16, [%r2];
ld.shared.u32 %r5, [%r1];
st.global.u32 [%d2], %r5;
cp.async.bulk.global.shared::cta.bulk_group [%d2+16], [%r1], 16;
cp.async.bulk.commit_group;
ld.global.u32 %r6, [%d2+16];
st.global.u32 [%d2+4], %r6;
END:
)";
  HopperRunner runner;
  const std::uint64_t in = runner.upload(counted(4, 42));
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(8));
  require_fine(runner.run(body, {in, out}, kShared));
  CHECK(runner.download<std::uint32_t>(out, 2) == std::vector<std::uint32_t>{42, 42});
  runner.seed = 4;
  const std::uint64_t late = runner.upload(std::vector<std::uint32_t>(8));
  require_fine(runner.run(body, {in, late}, kShared));
  CHECK(runner.download<std::uint32_t>(late, 2) == std::vector<std::uint32_t>{0xcdcdcdcd, 0});
}

TEST_CASE("bulk copies: to a neighbour's shared memory, and to several blocks at once") {
  for (const std::uint64_t seed : {0, 2}) {
    HopperRunner runner;
    runner.grid = runner.cluster = {4, 1, 1};
    runner.seed = seed;
    const std::uint64_t in = runner.upload(counted(64, 100));
    const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(4 * 32));
    require_fine(runner.run(kSetUp + R"(
mov.u32 %r10, %cluster_ctarank;
setp.eq.u32 %p3, %r10, 1;
setp.eq.u32 %p4, %r10, 2;
and.pred %p3, %p3, %p1;
and.pred %p4, %p4, %p1;
mov.b32 %r20, 0;
setp.eq.u32 %p5, %r10, 2;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u16 %h1, 11;
@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
 [%r1], [%d1], 128, [%r2], %h1;
@!%p3 bra NEXT;
MINE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra MINE;
mapa.shared::cluster.u32 %r4, %r1, 2;
mapa.shared::cluster.u32 %r5, %r2, 2;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [%r1], 128, [%r5];
NEXT:
)" + kWait + R"(
mad.lo.u32 %r6, %r0, 4, %r1;
ld.shared.u32 %r7, [%r6];
add.u32 %r7, %r7, %r10;
mad.lo.u32 %r8, %r10, 32, %r0;
mad.wide.u32 %d3, %r8, 4, %d2;
st.global.u32 [%d3], %r7;
barrier.cluster.arrive;
barrier.cluster.wait;
)",
                            {in, out}, kShared));
    const auto got = runner.download<std::uint32_t>(out, 128);
    for (std::uint32_t i = 0; i < 128; ++i) CHECK(got[i] == 100 + i % 32 + i / 32);
  }
}

TEST_CASE("bulk copies: reductions in global memory by several blocks") {
  struct Case {
    std::string word, type;
    std::uint32_t old, value, expected;
  };
  const std::vector<Case> cases{
      {"add", "u32", 5, 7, 5 + 4 * 7},
      {"min", "s32", 3, 0xfffffff0, 0xfffffff0},
      {"max", "u32", 3, 0xfffffff0, 0xfffffff0},
      {"inc", "u32", 2, 3, 2},
      {"dec", "u32", 1, 9, 7},
      {"and", "b32", 0xff, 0x3c, 0x3c},
      {"or", "b32", 0xf0, 0x0c, 0xfc},
      {"xor", "b32", 0xf0, 0x0c, 0xf0},
      {"add", "f32", std::bit_cast<std::uint32_t>(1.5f), std::bit_cast<std::uint32_t>(2.0f),
       std::bit_cast<std::uint32_t>(9.5f)},
      {"add.noftz", "f16", 0x3c003c00, 0x3c004000, 0x45004880},
      {"add.noftz", "bf16", 0x3f803f80, 0x3f804000, 0x40a04110},
      {"max.noftz", "f16", 0x3c003c00, 0x40003800, 0x40003c00},
  };
  for (const Case& one : cases) {
    CAPTURE(one.word);
    CAPTURE(one.type);
    HopperRunner runner;
    runner.grid = {4, 1, 1};
    runner.width = 2;
    const std::uint64_t in = runner.upload(std::vector<std::uint32_t>(32, one.value));
    const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(32, one.old));
    const std::string op = one.word.substr(0, one.word.find('.'));
    const std::string noftz = one.word.find('.') == std::string::npos ? "" : ".noftz";
    require_fine(runner.run(kSetUp + R"(
mad.wide.u32 %d3, %r0, 4, %d1;
mad.lo.u32 %r4, %r0, 4, %r1;
ld.global.u32 %r5, [%d3];
st.shared.u32 [%r4], %r5;
bar.sync 0;
@!%p1 bra END;
cp.reduce.async.bulk.global.shared::cta.bulk_group.)" +
                                op + noftz + "." + one.type + R"( [%d2], [%r1], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
)",
                            {in, out}, kShared));
    CHECK(runner.download<std::uint32_t>(out, 32) == std::vector<std::uint32_t>(32, one.expected));
  }
}

TEST_CASE("bulk copies: findings") {
  HopperRunner runner;
  const std::uint64_t in = runner.upload(counted(512));
  const auto finding = [&](const std::string& copy, FaultKind kind, const std::string& part) {
    const Fault report =
        runner.run(kSetUp + "@!%p1 bra END;\n" + copy + "\nEND:\n", {in, in}, kShared);
    INFO(report.to_string());
    CHECK(report.kind == kind);
    CHECK(contains(report.message, part));
  };
  const std::string load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ";
  finding(load + "[%r1+8], [%d1], 16, [%r2];", FaultKind::alignment, "multiple of 16");
  finding(load + "[%r1], [%d1+4], 16, [%r2];", FaultKind::alignment, "multiple of 16");
  finding(load + "[%r1], [%d1], 24, [%r2];", FaultKind::alignment, "multiple of 16");
  finding(load + "[%r1], [%d1], 16, [%r1+2052];", FaultKind::alignment, "multiple of 8");
  const std::string fetch = "cp.async.bulk.prefetch.L2.global ";
  finding(fetch + "[%d1], 24;", FaultKind::alignment, "multiple of 16");
  finding(fetch + "[%d1+8], 16;", FaultKind::alignment, "multiple of 16");
  finding(load + "[%r1], [%d1+2032], 32, [%r2];", FaultKind::bounds, "out of bounds");
  finding(load + "[%r1+4080], [%d1], 64, [%r2];", FaultKind::bounds, "out of bounds");
  finding(load + "[%r1], [%d1], 16, [%r1+512];", FaultKind::sync, "was not initialised");
  finding(
      "mov.u16 %h1, 6;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%r1], [%d1], 16, [%r2], %h1;",
      FaultKind::bounds, "multicast");
  finding("cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1+4056], 16;",
          FaultKind::alignment, "multiple of 16");
}
