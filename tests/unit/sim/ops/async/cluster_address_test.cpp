// Clusters: addresses of other blocks' shared memory in generic form, and sums of 64 bits there.
#include "unit/sim/device/hopper_runner.h"

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// %r10 = rank, %d1 = &p0[global thread], 32 threads a block.
const std::string kOwnPlace = R"(
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r12, %ctaid.x;
mad.lo.u32 %r13, %r12, 32, %r0;
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r13, 4, %d1;
)";
const std::string kMeet =
    "barrier.cluster.arrive.release.aligned;\n"
    "barrier.cluster.wait.acquire.aligned;\n";
const std::string kTileAndBarrier =
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";

}  // namespace

TEST_CASE("clusters: red.async adds 64 bits, signed or not") {
  for (const char* type : {"u64", "s64"}) {
    CAPTURE(type);
    HopperRunner runner;
    runner.grid = {2, 1, 1};
    runner.cluster = {2, 1, 1};
    const std::string body = kOwnPlace + R"(
mov.u32 %r1, tile;
mov.u32 %r2, bar;
mov.u64 %d20, 0x100000000;
setp.eq.u32 %p1, %r0, 0;
@%p1 st.shared.u64 [%r1], %d20;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
)" + kMeet + R"(
xor.b32 %r3, %r10, 1;
mapa.shared::cluster.u32 %r4, %r1, %r3;
mapa.shared::cluster.u32 %r5, %r2, %r3;
cvt.s64.s32 %d21, %r0;
neg.s64 %d21, %d21;
red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.)" +
                             type + R"( [%r4], %d21, [%r5];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
ld.shared.u64 %d22, [%r1];
@%p1 st.global.u64 [%d1], %d22;
)" + kMeet;
    const std::uint64_t out = runner.upload(std::vector<std::uint64_t>(64));
    require_fine(runner.run(body, {out}, kTileAndBarrier));
    CHECK(runner.download<std::uint64_t>(out, 1)[0] == 0x100000000 - 31 * 16);
  }
}

TEST_CASE("clusters: addresses of the cluster become generic ones and come back") {
  HopperRunner runner;
  runner.grid = {2, 1, 1};
  runner.cluster = {2, 1, 1};
  const std::string body = kOwnPlace + R"(
mov.u32 %r1, tile;
mov.u32 %r2, %cluster_ctarank;
st.shared.u32 [%r1], %r2;
)" + kMeet + R"(
xor.b32 %r3, %r2, 1;
mapa.shared::cluster.u32 %r4, %r1, %r3;
cvt.u64.u32 %d20, %r4;
cvta.shared::cluster.u64 %d21, %d20;
ld.u32 %r5, [%d21];
isspacep.shared::cluster %p1, %d21;
isspacep.shared::cta %p2, %d21;
selp.u32 %r6, 10, 0, %p1;
selp.u32 %r7, 100, 0, %p2;
cvta.to.shared::cluster.u64 %d22, %d21;
setp.eq.u64 %p3, %d22, %d20;
selp.u32 %r8, 1000, 0, %p3;
add.u32 %r5, %r5, %r6;
add.u32 %r5, %r5, %r7;
add.u32 %r5, %r5, %r8;
ld.param.u64 %d24, [p0];
mad.wide.u32 %d23, %r2, 4, %d24;
st.global.u32 [%d23], %r5;
)" + kMeet;
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(2));
  require_fine(runner.run(body, {out}, kTileAndBarrier));
  const auto got = runner.download<std::uint32_t>(out, 2);
  CHECK(got[0] == 1011);
  CHECK(got[1] == 1010);
}
