// Clusters: registers, shared memory of other blocks, the barrier, remote arrivals, deadlocks.
#include "unit/sim/device/hopper_runner.h"

#include <numeric>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// %r10 = rank, %r11 = blocks of the cluster, %d1 = &p0[global thread], 32 threads a block.
const std::string kWhoAmI = R"(
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r11, %cluster_nctarank;
mov.u32 %r12, %ctaid.x;
mad.lo.u32 %r13, %r12, 32, %r0;
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r13, 4, %d1;
)";
const std::string kClusterSync =
    "barrier.cluster.arrive.release.aligned;\n"
    "barrier.cluster.wait.acquire.aligned;\n";
const std::string kShared = ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";

}  // namespace

TEST_CASE("clusters: special registers in a grid of 4 x 6 x 2 with clusters of 2 x 3 x 1") {
  HopperRunner runner;
  runner.grid = {4, 6, 2};
  runner.cluster = {2, 3, 1};
  runner.block = {1, 1, 1};
  const std::vector<std::string> names{
      "%clusterid.x",     "%clusterid.y",      "%clusterid.z",      "%nclusterid.x",
      "%nclusterid.y",    "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y",
      "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z",
      "%cluster_ctarank", "%cluster_nctarank"};
  std::string body = R"(
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ctaid.y;
mov.u32 %r3, %ctaid.z;
mad.lo.u32 %r2, %r3, 6, %r2;
mad.lo.u32 %r1, %r2, 4, %r1;
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r1, 64, %d1;
)";
  for (std::size_t i = 0; i < names.size(); ++i)
    body +=
        "mov.u32 %r5, " + names[i] + ";\nst.global.u32 [%d1+" + std::to_string(4 * i) + "], %r5;\n";
  body +=
      "mov.pred %p1, %is_explicit_cluster;\nselp.u32 %r5, 1, 0, %p1;\nst.global.u32 [%d1+56], "
      "%r5;\n";
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(48 * 16));
  require_fine(runner.run(body, {out}));
  const auto got = runner.download<std::uint32_t>(out, 48 * 16);
  for (std::uint32_t z = 0; z < 2; ++z)
    for (std::uint32_t y = 0; y < 6; ++y)
      for (std::uint32_t x = 0; x < 4; ++x) {
        const std::uint32_t* at = got.data() + ((z * 6 + y) * 4 + x) * 16;
        const std::vector<std::uint32_t> expected{
            x / 2, y / 3, z, 2, 2, 2, x % 2, y % 3, 0, 2, 3, 1, x % 2 + 2 * (y % 3), 6, 1};
        CHECK(std::vector<std::uint32_t>(at, at + 15) == expected);
      }
}

TEST_CASE("clusters: every block reads its neighbour's shared memory in both address forms") {
  for (const int width : {1, 3}) {
    HopperRunner runner;
    runner.grid = {16, 1, 1};
    runner.cluster = {4, 1, 1};
    runner.width = width;
    const std::string body = kWhoAmI + R"(
mov.u32 %r1, tile;
mad.lo.u32 %r2, %r0, 4, %r1;
st.shared.u32 [%r2], %r13;
)" + kClusterSync + R"(
add.u32 %r3, %r10, 1;
rem.u32 %r3, %r3, %r11;
mapa.shared::cluster.u32 %r4, %r2, %r3;
ld.shared::cluster.u32 %r5, [%r4];
getctarank.shared::cluster.u32 %r6, %r4;
cvt.u64.u32 %d2, %r2;
cvta.shared.u64 %d2, %d2;
mapa.u64 %d3, %d2, %r3;
ld.u32 %r7, [%d3];
isspacep.shared::cluster %p1, %d3;
isspacep.shared::cta %p2, %d3;
selp.u32 %r8, 1, 0, %p1;
selp.u32 %r9, 2, 0, %p2;
shl.b32 %r6, %r6, 16;
sub.u32 %r7, %r7, %r5;
add.u32 %r5, %r5, %r6;
add.u32 %r5, %r5, %r7;
shl.b32 %r8, %r8, 24;
shl.b32 %r9, %r9, 24;
add.u32 %r5, %r5, %r8;
add.u32 %r5, %r5, %r9;
st.global.u32 [%d1], %r5;
)" + kClusterSync;
    const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(512));
    require_fine(runner.run(body, {out}, kShared));
    const auto got = runner.download<std::uint32_t>(out, 512);
    for (std::uint32_t i = 0; i < 512; ++i) {
      const std::uint32_t block = i / 32, next = block / 4 * 4 + (block + 1) % 4;
      CHECK(got[i] == next * 32 + i % 32 + ((block + 1) % 4 << 16) + (1u << 24));
    }
  }
}

TEST_CASE("clusters: atomics and stores in another block's shared memory") {
  HopperRunner runner;
  runner.grid = {8, 1, 1};
  runner.cluster = {8, 1, 1};
  const std::string body = kWhoAmI + R"(
mov.u32 %r1, tile;
mov.u32 %r20, 0;
setp.eq.u32 %p1, %r0, 0;
@%p1 st.shared.u32 [%r1], %r20;
)" + kClusterSync + R"(
mapa.shared::cluster.u32 %r4, %r1, 0;
atom.shared::cluster.add.u32 %r5, [%r4], 1;
red.shared::cluster.add.u32 [%r4], 2;
mad.lo.u32 %r6, %r10, 4, %r4;
@%p1 st.shared::cluster.u32 [%r6+64], %r10;
)" + kClusterSync + R"(
add.u32 %r7, %r0, 16;
mad.lo.u32 %r8, %r7, 4, %r1;
setp.eq.u32 %p2, %r10, 0;
@!%p2 bra END;
@%p1 ld.shared.u32 %r9, [%r1];
@!%p1 ld.shared.u32 %r9, [%r8+-4];
st.global.u32 [%d1], %r9;
END:
)";
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(256));
  require_fine(runner.run(body, {out}, kShared));
  const auto got = runner.download<std::uint32_t>(out, 9);
  CHECK(got[0] == 3 * 256);
  for (std::uint32_t i = 1; i < 9; ++i) CHECK(got[i] == i - 1);
}

TEST_CASE("clusters: remote arrivals with transactions and st.async complete a phase") {
  for (const std::uint64_t seed : {0, 5, 77}) {
    HopperRunner runner;
    runner.grid = {4, 1, 1};
    runner.cluster = {2, 1, 1};
    runner.seed = seed;
    const std::string body = kWhoAmI + R"(
mov.u32 %r1, tile;
mov.u32 %r2, bar;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 2;
fence.mbarrier_init.release.cluster;
)" + kClusterSync + R"(
xor.b32 %r3, %r10, 1;
mapa.shared::cluster.u32 %r4, %r1, %r3;
mapa.shared::cluster.u32 %r5, %r2, %r3;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
mad.lo.u32 %r6, %r0, 8, %r4;
mul.lo.u32 %r7, %r13, 3;
st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r6], {%r13, %r7}, [%r5];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
mad.lo.u32 %r8, %r0, 8, %r1;
ld.shared.v2.u32 {%r9, %r14}, [%r8];
add.u32 %r9, %r9, %r14;
st.global.u32 [%d1], %r9;
)" + kClusterSync;
    const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(128));
    require_fine(runner.run(body, {out}, kShared));
    const auto got = runner.download<std::uint32_t>(out, 128);
    for (std::uint32_t i = 0; i < 128; ++i) CHECK(got[i] == 4 * (i ^ 32));
  }
}

TEST_CASE(
    "st.async to the block's own shared memory, with and without naming the mbarrier's part") {
  for (const std::string words : {".shared::cta.mbarrier::complete_tx::bytes", ".shared::cta",
                                  ".weak.shared", ".mbarrier::complete_tx::bytes.shared"}) {
    HopperRunner runner;
    const std::string body = R"(
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r0, 4, %d1;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
bar.sync 0;
mad.lo.u32 %r6, %r0, 4, %r1;
mul.lo.u32 %r7, %r0, 3;
st.async)" + words + R"(.b32 [%r6], %r7, [%r2];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
xor.b32 %r6, %r6, 4;
ld.shared.u32 %r9, [%r6];
st.global.u32 [%d1], %r9;
)";
    INFO(words);
    const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(32));
    require_fine(runner.run(body, {out}, kShared));
    const auto got = runner.download<std::uint32_t>(out, 32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(got[i] == 3 * (i ^ 1));
  }
}

TEST_CASE("clusters: red.async adds in a neighbour's shared memory") {
  HopperRunner runner;
  runner.grid = {2, 1, 1};
  runner.cluster = {2, 1, 1};
  const std::string body = kWhoAmI + R"(
mov.u32 %r1, tile;
mov.u32 %r2, bar;
mov.u32 %r20, 100;
setp.eq.u32 %p1, %r0, 0;
@%p1 st.shared.u32 [%r1], %r20;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
)" + kClusterSync + R"(
xor.b32 %r3, %r10, 1;
mapa.shared::cluster.u32 %r4, %r1, %r3;
mapa.shared::cluster.u32 %r5, %r2, %r3;
red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.u32 [%r4], %r13, [%r5];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r9, [%r1];
st.global.u32 [%d1], %r9;
)" + kClusterSync;
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(64));
  require_fine(runner.run(body, {out}, kShared));
  const auto got = runner.download<std::uint32_t>(out, 64);
  CHECK(got[0] == 100 + 32 * 32 + 31 * 16);
  CHECK(got[32] == 100 + 31 * 16);
}

TEST_CASE("clusters: findings") {
  HopperRunner runner;
  runner.grid = {2, 1, 1};
  runner.cluster = {2, 1, 1};
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(64));
  const auto finding = [&](const std::string& body, FaultKind kind, const std::string& part) {
    const Fault report = runner.run(kWhoAmI + body, {out}, kShared);
    INFO(report.to_string());
    CHECK(report.kind == kind);
    CHECK(contains(report.message, part));
    CHECK(report.ptx_line > 0);
  };
  finding(R"(
mov.u32 %r1, tile;
setp.eq.u32 %p1, %r10, 1;
@%p1 ret;
mapa.shared::cluster.u32 %r4, %r1, 1;
bar.sync 0;
nanosleep.u32 100;
nanosleep.u32 100;
ld.shared::cluster.u32 %r5, [%r4];
)",
          FaultKind::bounds,
          "it belongs to block (1, 0, 0), rank 1 of the cluster, all of whose threads have exited");
  finding("mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r4, %r1, 2;\n", FaultKind::sync,
          "mapa: there is no block of rank 2 in a cluster of 2");
  finding("mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r4, %r1, 1;\nld.shared.u32 %r5, [%r4];\n" +
              kClusterSync,
          FaultKind::bounds, "at an address of block (1, 0, 0), rank 1 of the cluster: only");
  finding(
      "mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r4, %r1, 1;\nand.b32 %r4, %r4, 0xff000000;\n"
      "ld.shared::cluster.u32 %r5, [%r4+-4];\n" +
          kClusterSync,
      FaultKind::bounds, "it is 4 bytes before that of block (1, 0, 0), rank 1 of the cluster");
  finding(
      "mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r4, %r1, 1;\n"
      "ld.shared::cluster.u32 %r5, [%r4+4096];\n" +
          kClusterSync,
      FaultKind::bounds, "bytes of block (1, 0, 0), rank 1 of the cluster");
  finding("barrier.cluster.wait;\n", FaultKind::sync, "without a barrier.cluster.arrive");
  finding("barrier.cluster.arrive;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
          FaultKind::sync, "again without");
  finding(R"(
setp.eq.u32 %p1, %r10, 1;
@%p1 bra STAY;
barrier.cluster.arrive;
barrier.cluster.wait;
STAY:
bar.sync 0, 64;
)",
          FaultKind::sync, "threads wait");
}

TEST_CASE("mbarrier: a phase that never ends is a finding, with seeds and in clusters") {
  for (const std::uint32_t blocks : {1u, 2u}) {
    for (const std::uint64_t seed : {0, 3}) {
      HopperRunner runner;
      runner.grid = {blocks, 1, 1};
      if (blocks > 1) runner.cluster = {blocks, 1, 1};
      runner.seed = seed;
      const Fault report = runner.run(R"(
mov.u32 %r2, bar;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
)",
                                      {}, kShared);
      CHECK(report.kind == FaultKind::sync);
      CHECK(contains(report.message, "never ends"));
      CHECK(contains(report.opcode, "mbarrier.try_wait"));
    }
  }
}

TEST_CASE("mbarrier: try_wait gives up when nobody can go on, so that a program may count") {
  HopperRunner runner;
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(32));
  require_fine(runner.run(R"(
mov.u32 %r2, bar;
mov.u32 %r5, 0;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 2;
bar.sync 0;
@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p3, %r5, 10;
@%p2 bra END;
@%p3 bra WAIT;
END:
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r0, 4, %d1;
st.global.u32 [%d1], %r5;
)",
                          {out}, kShared));
  CHECK(runner.download<std::uint32_t>(out, 32) == std::vector<std::uint32_t>(32, 10));
}

TEST_CASE("elect: one lane of the members leads") {
  HopperRunner runner;
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(32));
  require_fine(runner.run(R"(
elect.sync %r5|%p1, 0xffffffff;
elect.sync _|%p2, 0xffffffff;
selp.u32 %r6, 100, 0, %p1;
add.u32 %r6, %r6, %r5;
@%p2 add.u32 %r6, %r6, 1000;
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r0, 4, %d1;
st.global.u32 [%d1], %r6;
)",
                          {out}));
  const auto got = runner.download<std::uint32_t>(out, 32);
  CHECK(got[0] == 1100);
  for (std::size_t i = 1; i < 32; ++i) CHECK(got[i] == 0);
}

namespace {

/// Each block leaves 1000 * block + thread in its shared memory; its neighbour in the cluster
/// writes that to x. Behind a barrier of the grid, as cooperative groups compile it, y gets x
/// reversed.
const std::string kGridOfClusters = kWhoAmI + R"(
mov.u32 %r1, tile;
mad.lo.u32 %r2, %r0, 4, %r1;
mad.lo.u32 %r3, %r12, 1000, %r0;
st.shared.u32 [%r2], %r3;
)" + kClusterSync + R"(
add.u32 %r4, %r10, 1;
rem.u32 %r4, %r4, %r11;
mapa.shared::cluster.u32 %r5, %r2, %r4;
ld.shared::cluster.u32 %r6, [%r5];
st.global.u32 [%d1], %r6;
)" + kClusterSync + R"(
mov.u32 %r14, %envreg2;
cvt.u64.u32 %d2, %r14;
mov.u32 %r15, %envreg1;
cvt.u64.u32 %d3, %r15;
bfi.b64 %d2, %d3, %d2, 32, 32;
mov.u32 %r16, %nctaid.x;
mov.u32 %r17, %nctaid.y;
mul.lo.u32 %r16, %r16, %r17;
barrier.sync 0;
setp.ne.u32 %p1, %r0, 0;
@%p1 bra ARRIVED;
add.s64 %d4, %d2, 4;
mov.u32 %r18, %ctaid.x;
mov.u32 %r19, %ctaid.y;
or.b32 %r18, %r18, %r19;
setp.eq.u32 %p2, %r18, 0;
sub.u32 %r20, 0x80000001, %r16;
selp.b32 %r20, %r20, 1, %p2;
atom.add.release.gpu.u32 %r21, [%d4], %r20;
SPIN:
ld.acquire.gpu.u32 %r22, [%d4];
xor.b32 %r22, %r22, %r21;
setp.gt.s32 %p3, %r22, -1;
@%p3 bra SPIN;
ARRIVED:
barrier.sync 0;
ld.param.u64 %d5, [p0];
ld.param.u64 %d6, [p1];
mov.u32 %r23, %nctaid.x;
mad.lo.u32 %r23, %r23, 32, -1;
sub.u32 %r23, %r23, %r13;
mad.wide.u32 %d5, %r23, 4, %d5;
ld.volatile.global.u32 %r24, [%d5];
mad.wide.u32 %d6, %r13, 4, %d6;
st.global.u32 [%d6], %r24;
)";

}  // namespace

TEST_CASE("clusters: in a cooperative grid, on any number of threads and in any order") {
  constexpr std::uint32_t kBlocks = 24, kCount = kBlocks * 32;
  for (const std::uint32_t of : {1u, 2u, 4u, 8u}) {
    for (const int width : {1, 2, 5}) {
      HopperRunner runner;
      runner.grid = {kBlocks, 1, 1};
      runner.cluster = {of, 1, 1};
      runner.width = width;
      runner.cooperative = true;
      runner.seed = static_cast<std::uint64_t>(width) % 2;
      const std::uint64_t used = runner.memory.used();
      const std::uint64_t x = runner.upload(std::vector<std::uint32_t>(kCount));
      const std::uint64_t y = runner.upload(std::vector<std::uint32_t>(kCount));
      CAPTURE(of);
      CAPTURE(width);
      require_fine(runner.run(kGridOfClusters, {x, y}, kShared));
      const auto got = runner.download<std::uint32_t>(y, kCount);
      for (std::uint32_t i = 0; i < kCount; ++i) {
        const std::uint32_t from = kCount - 1 - i, block = from / 32;
        const std::uint32_t neighbour = block / of * of + (block % of + 1) % of;
        CHECK(got[i] == 1000 * neighbour + from % 32);
      }
      CHECK(runner.memory.used() > used);
      runner.memory.free(x);
      runner.memory.free(y);
      CHECK(runner.memory.used() == used);  // the workspace is gone
    }
  }
}

TEST_CASE("clusters: a block of a cooperative grid that never arrives is found") {
  HopperRunner runner;
  runner.grid = {4, 1, 1};
  runner.cluster = {2, 1, 1};
  runner.width = 2;
  runner.cooperative = true;
  const std::uint64_t x = runner.upload(std::vector<std::uint32_t>(128));
  // The second block of each cluster skips the cluster's barrier and waits at one of its own.
  const Fault report = runner.run(kWhoAmI + R"(
setp.eq.u32 %p1, %r10, 1;
@%p1 bra OWN;
barrier.cluster.arrive;
barrier.cluster.wait;
bra END;
OWN:
setp.eq.u32 %p2, %r0, 0;
@%p2 mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;
@!%p3 bra WAIT;
END:
)",
                                  {x}, kShared);
  INFO(report.to_string());
  CHECK(report.kind == FaultKind::sync);
}
