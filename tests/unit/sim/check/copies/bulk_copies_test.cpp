// The race and init checks on bulk copies and wgmma: copies in progress, and proxy fences.
#include "unit/sim/device/hopper_runner.h"

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

const std::string kShared =
    ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 bar2;\n"
    ".shared .align 8 .b64 bar3;\n";
/// %p1 = thread 0; %r1 = tile, %r2 = its mbarrier, %r5 = the thread's word of the tile, %r6 = that
/// of a thread in another warp; %d1 and %d2 = global memory, %d3 and %d4 the thread's words there.
const std::string kHead = R"(
mov.u32 %r1, tile;
mov.u32 %r2, bar;
mov.u32 %r3, bar2;
mov.u32 %r4, bar3;
setp.eq.u32 %p1, %r0, 0;
ld.param.u64 %d1, [p0];
ld.param.u64 %d2, [p1];
mad.lo.u32 %r5, %r0, 4, %r1;
xor.b32 %r6, %r0, 32;
mad.lo.u32 %r6, %r6, 4, %r1;
mul.wide.u32 %d3, %r0, 4;
add.u64 %d4, %d3, %d2;
add.u64 %d3, %d3, %d1;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
@%p1 mbarrier.init.shared::cta.b64 [%r3], 64;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
fence.mbarrier_init.release.cluster;
bar.sync 0;
)";
const std::string kBarrier = "bar.sync 0;\n";
const std::string kFence = "fence.proxy.async;\n";
const std::string kRead = "ld.shared.u32 %r10, [%r5];\n";
const std::string kReadOther = "ld.shared.u32 %r10, [%r6];\n";
const std::string kWrite = "st.shared.u32 [%r5], %r0;\n";

std::string only_first(const std::string& body, const std::string& label) {
  return "@!%p1 bra " + label + ";\n" + body + label + ":\n";
}
std::string load(const std::string& label, const std::string& mbarrier = "%r2") {
  return only_first("mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + mbarrier +
                        "], 512;\ncp.async.bulk.shared::cluster.global"
                        ".mbarrier::complete_tx::bytes [%r1], [%d1], 512, [" +
                        mbarrier + "];\n",
                    label);
}
const std::string kWait =
    "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra WAIT;\n";
const std::string kLoad = load("LOADED");
const std::string kIssueStore =
    "cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r1], 512;\n"
    "cp.async.bulk.commit_group;\n";

std::vector<Finding> found(const std::string& body, CheckSet checks = {false, true, false}) {
  HopperRunner runner;
  runner.block = {128, 1, 1};
  runner.checks = checks;
  const std::uint64_t from = runner.upload(std::vector<std::uint32_t>(256));
  const std::uint64_t to = runner.upload(std::vector<std::uint32_t>(256));
  require_fine(runner.run(kHead + body, {from, to}, kShared));
  return runner.findings;
}

bool races(const std::string& body) {
  const auto findings = found(body);
  for (const Finding& finding : findings) CHECK(finding.fault.kind == FaultKind::race);
  return !findings.empty();
}

}  // namespace

TEST_CASE(
    "check bulk: a loaded tile is read by who waited for its mbarrier, and who knows of that") {
  CHECK(!races(kLoad));
  CHECK(races(kLoad + kRead));
  CHECK(races(kLoad + kBarrier + kRead));
  CHECK(!races(kLoad + kWait + kRead));
  CHECK(!races(kLoad + kWait + kReadOther));
  CHECK(!races(kLoad + only_first(kWait, "SKIP") + kBarrier + kRead));
  CHECK(races(kLoad + only_first(kWait, "SKIP") + kRead));
  // Another barrier's phase before its first says nothing.
  CHECK(races(kLoad + "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3], 1;\n" + kRead));
  // Past the 512 bytes nothing was copied.
  CHECK(!races(kLoad + "ld.shared.u32 %r10, [%r5+512];\n"));
}

TEST_CASE("check bulk: the next load waits for the readers of the last one") {
  const std::string first = kLoad + kWait + kReadOther;
  CHECK(races(first + load("AGAIN", "%r4")));
  CHECK(!races(first + kBarrier + load("AGAIN", "%r4")));
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r3];\n";
  const std::string wait_for_readers =
      "FREE:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;\n@!%p3 bra FREE;\n";
  const std::string half = "setp.lt.u32 %p5, %r0, 64;\n@%p5 bra HALF;\n";  // the count is 64
  const std::string readers = kLoad + half + kWait + kReadOther + arrive + "HALF:\n";
  CHECK(!races(readers + only_first(wait_for_readers, "GO") + load("AGAIN", "%r4")));
  CHECK(races(readers + load("AGAIN", "%r4")));
  CHECK(races(kLoad + half + kWait + arrive + kReadOther + "HALF:\n" +
              only_first(wait_for_readers, "GO") + load("AGAIN", "%r4")));
}

TEST_CASE("check bulk: a load's source may be overwritten after the wait") {
  CHECK(races(kLoad + "st.global.u32 [%d3], %r0;\n"));
  CHECK(races(kLoad + only_first("st.global.u32 [%d3], %r0;\n", "SKIP")));
  CHECK(!races(kLoad + kWait + kBarrier + "st.global.u32 [%d3], %r0;\n"));
  CHECK(!races(kLoad + "st.global.u32 [%d3+512], %r0;\n"));
  for (const Finding& finding : found(kLoad + "st.global.u32 [%d3], %r0;\n"))
    CHECK(contains(finding.hint, "wait for the phase of the mbarrier"));
  // A waiting thread comes after the read of the source, though its arrival was before it.
  CHECK(!races(kLoad + kWait + "st.global.u32 [%d3], %r0;\n"));
  CHECK(races(kLoad + only_first(kWait, "WAITED") + "st.global.u32 [%d3], %r0;\n"));
}

TEST_CASE("check bulk: a load sees what threads wrote to global memory after a proxy fence") {
  const std::string write = "st.global.u32 [%d3], %r0;\n";
  CHECK(!races(write + kFence + kBarrier + kLoad));
  CHECK(!races(write + kBarrier + kFence + kLoad));
  CHECK(races(write + kBarrier + kLoad));
  CHECK(races(kFence + write + kBarrier + kLoad));
  CHECK(!races("st.global.u32 [%d3+512], %r0;\n" + kBarrier + kLoad));
  // The fence of another thread, in front of a barrier.
  CHECK(!races(write + kBarrier + "setp.ne.u32 %p6, %r0, 64;\n@%p6 bra ON;\n" + kFence + "ON:\n" +
               kBarrier + kLoad));
  CHECK(races(write + "setp.ne.u32 %p6, %r0, 64;\n@%p6 bra ON;\n" + kFence + "ON:\n" + kBarrier +
              kLoad));
  const auto findings = found(write + kBarrier + kLoad);
  REQUIRE(findings.size() == 1);
  CHECK(contains(findings[0].fault.message, "no proxy fence lies between them"));
  CHECK(contains(findings[0].hint, "fence.proxy.async"));
  CHECK(findings[0].space == "global memory");
  CHECK(findings[0].what == "asynchronous read");
  REQUIRE(findings[0].other);
  CHECK(findings[0].other->opcode == "st.global.u32");
  // Single bytes, and atomic operations.
  CHECK(races("st.global.u8 [%d3], %r0;\n" + kBarrier + kLoad));
  CHECK(!races("st.global.u8 [%d3], %r0;\n" + kFence + kBarrier + kLoad));
  CHECK(races("red.global.add.u32 [%d3], 1;\n" + kBarrier + kLoad));
  // Results of a copy need none.
  const std::string stored = kWrite + kFence + kBarrier +
                             only_first(
                                 "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 512;\n"
                                 "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                                 "STORED");
  CHECK(!races(stored + kBarrier + kLoad));
}

TEST_CASE("check bulk: a store's tile and target are free after the waits") {
  const std::string filled = kWrite + kFence + kBarrier;
  const std::string waits = "cp.async.bulk.wait_group 0;\n",
                    waits_read = "cp.async.bulk.wait_group.read 0;\n";
  const auto store = [&](const std::string& after) {
    return filled + only_first(kIssueStore + after, "STORED");
  };
  CHECK(!races(store("")));
  CHECK(!races(store(waits)));
  CHECK(races(store("") + kBarrier + kWrite));
  CHECK(!races(store(waits_read) + kBarrier + kWrite));
  CHECK(!races(store(waits) + kBarrier + kWrite));
  CHECK(races(store(waits_read) + kWrite));
  CHECK(!races(store("") + kBarrier + kRead));
  const std::string read_target = "ld.global.u32 %r10, [%d4];\n";
  CHECK(races(store(waits_read) + kBarrier + read_target));
  CHECK(!races(store(waits) + kBarrier + read_target));
  CHECK(races(store(waits) + read_target));
  CHECK(races(store("") + "st.global.u32 [%d4], %r0;\n"));
  CHECK(races(filled +
              only_first("cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r1], 512;\n"
                         "cp.async.bulk.wait_group 0;\n",
                         "STORED") +
              kBarrier + read_target));  // no group was closed
  CHECK(races(filled +
              only_first(kIssueStore + kIssueStore + "cp.async.bulk.wait_group 1;\n", "STORED") +
              kBarrier + kWrite));
}

TEST_CASE("check bulk: a store sees what threads wrote after a proxy fence") {
  const std::string store = only_first(kIssueStore, "STORED");
  CHECK(!races(kWrite + kFence + kBarrier + store));
  CHECK(!races(kWrite + kBarrier + kFence + store));
  CHECK(races(kWrite + kBarrier + store));
  CHECK(races(kFence + kWrite + kBarrier + store));
  CHECK(races(kWrite + kFence + store));  // other warps' words
  const auto findings = found(kWrite + kBarrier + store);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].what == "asynchronous read");
  CHECK(contains(findings[0].hint, "fence.proxy.async"));
  // Results of a load need none.
  CHECK(!races(kLoad + kWait + kBarrier + store));
}

TEST_CASE("check bulk: fences of one direction are proxy fences for writes, not those of reads") {
  const std::string store = only_first(kIssueStore, "STORED");
  const auto fenced = [&](const std::string& words, bool before) {
    const std::string fence = "fence.proxy.async::generic." + words + ";\n";
    return !races(kWrite + (before ? fence + kBarrier : kBarrier + fence) + store);
  };
  CHECK(fenced("release.sync_restrict::shared::cta.cluster", true));
  CHECK(fenced("acquire.sync_restrict::shared::cluster.cluster", false));
  CHECK(!fenced("release.sync_restrict::shared::cluster::read.cta", true));
  CHECK(!fenced("release.sync_restrict::shared::cluster::read.cluster", true));
  CHECK(races(kWrite + "fence.proxy.alias.release.sys;\n" + kBarrier + store));
  CHECK(fenced("cluster.release.sync_restrict::shared::cta", true));  // in any order
}

TEST_CASE(
    "check bulk: bytes of a load are written when it was waited for, a store reads its tile") {
  const auto finds = [](const std::string& body) {
    return !found(body, {true, false, false}).empty();
  };
  CHECK(finds(kLoad + kRead));
  CHECK(!finds(kLoad + kWait + kRead));
  CHECK(finds(kLoad + kWait + "ld.shared.u32 %r10, [%r5+512];\n"));
  CHECK(finds(only_first(kIssueStore, "STORED")));
  CHECK(!finds(kWrite + kBarrier + only_first(kIssueStore, "STORED")));
}

TEST_CASE("check bulk: reductions do not race with each other, but with reads before the wait") {
  const std::string reduce =
      kWrite + kFence + kBarrier +
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d2], [%r1], 512;\n"
      "cp.async.bulk.commit_group;\n";
  CHECK(!races(reduce));
  CHECK(races(reduce + "ld.global.u32 %r10, [%d4];\n"));
  CHECK(
      !races(reduce + "cp.async.bulk.wait_group 0;\n" + kBarrier + "ld.global.u32 %r10, [%d4];\n"));
}

TEST_CASE("check bulk: wgmma reads its matrices until the wait for its group") {
  // A: 64 rows of 32 bytes, B: 8 columns of 32 bytes behind it, in blocks of 8 times 16 bytes.
  const std::string own = "mad.lo.u32 %r7, %r0, 16, %r1;\nmov.b32 %r8, 0;\n";
  const std::string fill =
      "st.shared.v4.u32 [%r7], {%r8, %r8, %r8, %r8};\n"
      "st.shared.v4.u32 [%r7+2048], {%r8, %r8, %r8, %r8};\n";
  const std::string multiply = R"(
shr.u32 %r9, %r1, 4;
cvt.u64.u32 %d10, %r9;
or.b64 %d10, %d10, 0x0000001000080000;
add.u64 %d11, %d10, 128;
setp.ne.u32 %p6, %r0, %r0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
 {%f0, %f1, %f2, %f3}, %d10, %d11, %p6, 1, 1, 0, 0;
)";
  const std::string commit = "wgmma.commit_group.sync.aligned;\n";
  const std::string wait_all = "wgmma.wait_group.sync.aligned 0;\n";
  const std::string ready = own + fill + kFence + kBarrier + multiply + commit;
  CHECK(!races(ready));
  CHECK(!races(ready + wait_all + kBarrier + fill));
  CHECK(races(ready + kBarrier + fill));
  CHECK(!races(ready + wait_all + fill));  // a group is the warpgroup's: all four warps are done
  // Of the threads without a wait, only those behind a barrier may write.
  CHECK(races(ready + "setp.ge.u32 %p5, %r0, 32;\n@%p5 bra NEXT;\n" + wait_all + "NEXT:\n" + fill));
  CHECK(!races(ready + "setp.lt.u32 %p5, %r0, 32;\n@%p5 bra NEXT;\n" + wait_all + "NEXT:\n" +
               kBarrier + fill));
  CHECK(races(ready + "wgmma.wait_group.sync.aligned 1;\n" + kBarrier + fill));
  CHECK(races(ready + kBarrier + kLoad));
  CHECK(!races(ready + wait_all + kBarrier + kLoad));
  CHECK(races(own + fill + kBarrier + multiply + commit));
  CHECK(races(own + fill + kFence + multiply + commit));
  // Matrices written by a load.
  const std::string brought = own + fill + kFence + kBarrier + kLoad;
  CHECK(!races(brought + kWait + multiply + commit));
  CHECK(races(brought + multiply + commit));
  CHECK(races(brought + kBarrier + multiply + commit));
  CHECK(!found(own + kBarrier + multiply, {true, false, false}).empty());
  CHECK(found(own + fill + kBarrier + multiply, {true, false, false}).empty());
  const auto findings = found(ready + kBarrier + fill);
  REQUIRE(!findings.empty());
  REQUIRE(findings[0].other);
  CHECK(findings[0].other->what == "asynchronous read");
  CHECK(contains(findings[0].hint, "wgmma.wait_group"));
}

TEST_CASE("check bulk: a multicast writes all blocks' tiles; each waits at its own mbarrier") {
  const auto racing = [](const std::string& middle, const std::string& after) {
    HopperRunner runner;
    runner.grid = runner.cluster = {2, 1, 1};
    runner.block = {64, 1, 1};
    runner.checks = {true, true, false};
    const std::uint64_t from = runner.upload(std::vector<std::uint32_t>(256));
    const std::string sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
    const std::string issue =
        "mov.u32 %r20, %cluster_ctarank;\nmov.u16 %h1, 3;\n"
        "setp.eq.u32 %p7, %r20, 0;\nand.pred %p7, %p7, %p1;\n@!%p7 bra SENT;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%r1], [%d1], 512, [%r2], %h1;\nSENT:\n";
    require_fine(runner.run(kHead +
                                "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n" +
                                middle + sync + issue + after + sync,
                            {from, from}, kShared));
    return !runner.findings.empty();
  };
  CHECK(!racing("", kWait + kRead));
  CHECK(racing("", kRead + kWait));
  CHECK(racing("", "bar.sync 0;\n" + kRead + kWait));
  CHECK(!racing(kWrite, kWait + kRead));
  // Written by the other block while the copy may arrive.
  CHECK(racing("", kWrite + kWait));
}

TEST_CASE("check bulk: st.async arrives at its mbarrier") {
  const std::string store = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n";
  const std::string send =
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r0, [%r2];\n";
  const std::string expect = only_first(store, "EXPECTED") + kBarrier;
  CHECK(!races(expect + send + kWait + kReadOther));
  CHECK(races(expect + send + kReadOther));
  CHECK(races(expect + send + kRead));
}
