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

TEST_CASE("clusters: the rank is above the offset, in a block's own addresses too") {
  HopperRunner runner;
  runner.grid = {4, 1, 1};
  runner.cluster = {4, 1, 1};
  runner.block = {1, 1, 1};
  runner.dynamic_shared = 64;
  const std::string body = R"(
mov.u32 %r10, %cluster_ctarank;
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r10, 32, %d1;
mov.u32 %r1, bar;
mov.u32 %r2, dynamic;
mapa.shared::cluster.u32 %r3, %r1, 2;
getctarank.shared::cluster.u32 %r4, %r3;
getctarank.shared::cluster.u32 %r5, %r1;
st.shared::cluster.u32 [%r2], %r10;
ld.shared.u32 %r6, [dynamic];
st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};
st.global.v2.u32 [%d1+16], {%r5, %r6};
)";
  const std::uint64_t out = runner.upload(std::vector<std::uint32_t>(32));
  require_fine(runner.run(body, {out}, kTileAndBarrier + ".extern .shared .b8 dynamic[];\n"));
  const auto got = runner.download<std::uint32_t>(out, 32);
  const std::uint32_t bar = 1024, dynamic = got[1], two = 2u << 24;
  CHECK((dynamic >= bar + 8 && dynamic < bar + 128));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const std::vector<std::uint32_t> own(got.begin() + 8 * rank, got.begin() + 8 * rank + 6);
    CHECK(own == std::vector<std::uint32_t>{bar + (rank << 24), dynamic + (rank << 24), bar + two,
                                            2, rank, rank});
  }
}

TEST_CASE("clusters: a descriptor of wgmma with a block's rank in its leading offset") {
  for (const bool masked : {true, false}) {
    HopperRunner runner;
    runner.grid = {2, 1, 1};
    runner.cluster = {2, 1, 1};
    runner.block = {128, 1, 1};
    const Fault report = runner.run(
        std::string("mov.u32 %r1, matrix;\n") + (masked ? "and.b32 %r1, %r1, 0x3ffff;\n" : "") + R"(
cvt.u64.u32 %d1, %r1;
shr.u64 %d1, %d1, 4;
or.b64 %d4, %d1, 0x1000080000;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
  {%f0, %f1, %f2, %f3}, {%r2, %r3, %r4, %r5}, %d4, 0, 1, 1, 0;
)",
        {}, ".shared .align 128 .b8 matrix[256];\n");
    INFO(report.to_string());
    CHECK((report.kind == FaultKind::none) == masked);
    if (!masked) CHECK(contains(report.message, "make descriptors of (address & 0x3ffff) >> 4"));
  }
}
