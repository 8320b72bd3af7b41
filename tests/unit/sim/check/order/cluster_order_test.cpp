// The race and init checks on the shared memory of other blocks of a cluster.
#include "unit/sim/device/hopper_runner.h"

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// %r10 = rank, %r1 = the thread's word, %r2 = the same in the next block of the cluster, %d2 = in
/// generic form.
const std::string kHead = R"(
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r11, %cluster_nctarank;
mov.u32 %r1, tile;
mad.lo.u32 %r1, %r0, 4, %r1;
add.u32 %r3, %r10, 1;
rem.u32 %r3, %r3, %r11;
mapa.shared::cluster.u32 %r2, %r1, %r3;
mov.u32 %r4, bar;
mapa.shared::cluster.u32 %r5, %r4, %r3;
setp.eq.u32 %p1, %r0, 0;
cvt.u64.u32 %d1, %r1;
cvta.shared.u64 %d1, %d1;
mapa.u64 %d2, %d1, %r3;
)";
const std::string kShared = ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";
const std::string kArrive = "barrier.cluster.arrive.aligned;\n";
const std::string kRelaxed = "barrier.cluster.arrive.relaxed.aligned;\n";
const std::string kWait = "barrier.cluster.wait.aligned;\n";
const std::string kSync = kArrive + kWait;
const std::string kWriteOwn = "st.shared.u32 [%r1], %r10;\n";
const std::string kReadOwn = "ld.shared.u32 %r6, [%r1];\n";
const std::string kWriteFar = "st.shared::cluster.u32 [%r2], %r10;\n";
const std::string kReadFar = "ld.shared::cluster.u32 %r7, [%r2];\n";
const std::string kReadGeneric = "ld.u32 %r7, [%d2];\n";

std::vector<Finding> found(const std::string& body, unsigned cluster = 2,
                           CheckSet checks = {false, true, false}) {
  HopperRunner runner;
  runner.grid = {2 * cluster, 1, 1};
  runner.cluster = {cluster, 1, 1};
  runner.block = {64, 1, 1};
  runner.checks = checks;
  require_fine(runner.run(kHead + body, {}, kShared));
  return runner.findings;
}

bool races(const std::string& body, unsigned cluster = 2) {
  const auto findings = found(body, cluster);
  for (const Finding& finding : findings) CHECK(finding.fault.kind == FaultKind::race);
  return !findings.empty();
}

}  // namespace

TEST_CASE(
    "check cluster: the barrier of the cluster orders accesses to each other's shared memory") {
  for (const unsigned blocks : {2u, 4u}) {
    INFO(blocks, " blocks");
    CHECK(!races(kWriteOwn + kSync + kReadFar + kSync, blocks));
    CHECK(!races(kWriteOwn + kSync + kReadGeneric + kSync, blocks));
    CHECK(races(kSync + kWriteOwn + kReadFar + kSync, blocks));
    CHECK(races(kSync + kWriteOwn + kReadGeneric + kSync, blocks));
    CHECK(races(kSync + kWriteOwn + "bar.sync 0;\n" + kReadFar + kSync, blocks));
    CHECK(!races(kSync + kWriteFar + kSync + kReadOwn, blocks));
    CHECK(races(kSync + kWriteFar + "bar.sync 0;\n" + kReadOwn + kSync, blocks));
    CHECK(races(kSync + kReadFar + kWriteOwn + kSync, blocks));
    CHECK(races(kSync + kWriteFar + kWriteOwn + kSync, blocks));
    CHECK(!races(kSync + kReadFar + kReadOwn + kSync, blocks));
    CHECK(!races(kWriteOwn + kSync + kReadFar + kSync + kWriteOwn + kSync + kReadFar + kSync,
                 blocks));
    CHECK(races(kWriteOwn + kSync + kReadFar + kWriteOwn + kSync + kReadFar + kSync, blocks));
  }
}

TEST_CASE(
    "check cluster: arrival releases and the wait acquires, between them nothing is ordered") {
  CHECK(!races(kWriteOwn + kArrive + "mov.u32 %r8, 1;\n" + kWait + kReadFar + kSync));
  CHECK(races(kSync + kArrive + kWriteOwn + kWait + kReadFar + kSync));
  CHECK(races(kSync + kWriteOwn + kArrive + kReadFar + kWait + kSync));
  CHECK(races(kSync + kWriteOwn + kRelaxed + kWait + kReadFar + kSync));
  CHECK(
      !races(kSync + kWriteOwn + "fence.acq_rel.cluster;\n" + kRelaxed + kWait + kReadFar + kSync));
  CHECK(!races(kSync + kWriteOwn + "fence.release.sync_restrict::shared::cta.cluster;\n" +
               kRelaxed + kWait + "fence.acquire.sync_restrict::shared::cluster.cluster;\n" +
               kReadFar + kSync));
  CHECK(!races(kSync + kWriteOwn + "fence.alias.sync_restrict::read.release.sys;\n" + kRelaxed +
               kWait + kReadFar + kSync));
  CHECK(races(kSync + kWriteOwn + "fence.proxy.alias.release.sys;\n" + kRelaxed + kWait + kReadFar +
              kSync));
  CHECK(races(kSync + kWriteOwn + "fence.acq_rel.cta;\n" + kRelaxed + kWait + kReadFar + kSync));
  CHECK(
      races(kSync + "fence.acq_rel.cluster;\n" + kWriteOwn + kRelaxed + kWait + kReadFar + kSync));
  // Warps of one block as well.
  const std::string other_warp =
      "xor.b32 %r8, %r0, 32;\nmov.u32 %r9, tile;\n"
      "mad.lo.u32 %r8, %r8, 4, %r9;\nld.shared.u32 %r6, [%r8];\n";
  CHECK(!races(kWriteOwn + kSync + other_warp));
  CHECK(races(kWriteOwn + kRelaxed + kWait + other_warp));
  CHECK(races(kSync + kArrive + other_warp + kWait + kWriteOwn + kSync));
  CHECK(!races(kSync + other_warp + kArrive + kWait + kWriteOwn + kSync));
  const std::string other_lane =
      "xor.b32 %r8, %r0, 1;\nmov.u32 %r9, tile;\n"
      "mad.lo.u32 %r8, %r8, 4, %r9;\nld.shared.u32 %r6, [%r8];\n";
  CHECK(races(kSync + kArrive + other_lane + kWait + kWriteOwn + kSync));
  CHECK(!races(kSync + other_lane + kArrive + kWait + kWriteOwn + kSync));
}

TEST_CASE("check cluster: bytes of a word that different threads of other blocks touch") {
  const std::string far = "mad.lo.u32 %r8, %r0, -2, %r2;\n";  // two bytes for each thread
  const std::string write = far + "st.shared::cluster.u16 [%r8], %h1;\n";
  const std::string read = far + "ld.shared::cluster.u16 %h2, [%r8];\n";
  const std::string read_byte = far + "ld.shared::cluster.u8 %h2, [%r8+2];\n";
  CHECK(!races(kSync + write + read + kSync));
  CHECK(races(kSync + write + read_byte + kSync));
  CHECK(!races(kSync + write + kSync + read_byte + kSync));
  CHECK(races(kSync + write + kReadOwn + kSync));
  CHECK(!races(kSync + write + kSync + kReadOwn + kSync));
}

TEST_CASE("check cluster: an mbarrier in another block orders who arrives before who waits") {
  const std::string set_up = "@%p1 mbarrier.init.shared::cta.b64 [%r4], 64;\n" + kSync;
  const std::string arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];\n";
  const std::string wait =
      "W:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r4], 0;\n@!%p2 bra W;\n";
  CHECK(!races(set_up + kWriteFar + arrive + wait + kReadOwn));
  CHECK(races(set_up + kWriteFar + arrive + kReadOwn + wait));
  CHECK(races(set_up + arrive + kWriteFar + wait + kReadOwn));
}

TEST_CASE("check cluster: atomic operations meet at a word of another block") {
  const std::string count = "red.relaxed.cluster.shared::cluster.add.u32 [%r2], 1;\n";
  CHECK(!races(kSync + count + "red.relaxed.cluster.shared.add.u32 [%r1], 1;\n" + kSync));
  CHECK(races(kSync + count + kReadOwn + kSync));
  CHECK(races(kSync +
              "red.relaxed.cta.shared::cluster.add.u32 [%r2], 1;\n"
              "red.relaxed.cta.shared.add.u32 [%r1], 1;\n" +
              kSync));
  const std::string flag = R"(
setp.eq.u32 %p3, %r10, 0;
@%p3 bra SEND;
WAIT: ld.acquire.cluster.shared.u32 %r8, [%r1+512];
setp.eq.u32 %p4, %r8, 0;
@%p4 bra WAIT;
ld.shared.u32 %r6, [%r1];
bra END;
SEND:
st.shared::cluster.u32 [%r2], 5;
)";
  const std::string zero = "st.shared.u32 [%r1+512], 0;\n" + kSync;
  CHECK(
      !races(zero + flag + "st.release.cluster.shared::cluster.u32 [%r2+512], 1;\nEND:\n" + kSync));
  CHECK(
      races(zero + flag + "st.relaxed.cluster.shared::cluster.u32 [%r2+512], 1;\nEND:\n" + kSync));
}

TEST_CASE("check cluster: a block's shared memory is used after it began and before it ends") {
  const auto texts = [](const std::string& body) {
    std::string text;
    for (const Finding& finding : found(body)) text += finding.to_string() + "\n";
    return text;
  };
  CHECK(contains(texts(kWriteFar + kSync + kReadOwn), "may not have begun"));
  CHECK(contains(texts(kSync + kReadFar), "keeps from ending"));
  CHECK(texts(kSync + kReadFar + kSync).empty());
  CHECK(texts(kRelaxed + kWait + kReadFar + kSync).empty());
  // A wait of one thread is enough, with arrivals of all others.
  CHECK(texts(kSync + kReadFar + kArrive + "@!%p1 bra END;\n" + kWait + "END:\n").empty());
  CHECK(contains(texts(kSync + kReadFar + kRelaxed + kWait), "keeps from ending"));
}

TEST_CASE("check cluster: reads of another block's unwritten shared memory are found") {
  const CheckSet init{true, false, false};
  CHECK(found(kSync + kReadFar + kSync, 2, init).size() == 1);
  CHECK(found(kSync + kReadGeneric + kSync, 2, init).size() == 1);
  CHECK(found(kWriteOwn + kSync + kReadFar + kSync, 2, init).empty());
  CHECK(found(kSync + kWriteFar + kSync + kReadOwn, 2, init).empty());
  const auto findings = found(kSync + "ld.shared::cluster.u32 %r7, [%r2+512];\n" + kSync, 2, init);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].space == "another block's shared memory");
  CHECK(contains(findings[0].fault.message, "of the shared memory of block ("));
  CHECK(findings[0].count == 4 * 64);
}

TEST_CASE("check cluster: a finding names both blocks") {
  const auto findings = found(kSync + kWriteFar + kReadOwn + kSync);
  REQUIRE(!findings.empty());
  for (const Finding& finding : findings) {
    REQUIRE(finding.other);
    CHECK(finding.fault.block[0] / 2 == finding.other->block[0] / 2);
    CHECK(finding.fault.block[0] != finding.other->block[0]);
    CHECK(finding.fault.thread[0] == finding.other->thread[0]);
    CHECK(contains(finding.hint, "cluster.sync()"));
    // The owner of the memory: the other block where this one accesses it.
    const bool far = finding.space == "another block's shared memory";
    const std::string owner = "of the same shared memory of block (" +
                              std::to_string(finding.other->block[0]) + ", 0, 0)";
    CHECK(contains(finding.fault.message, far ? owner : "of the same shared memory at offset"));
  }
}
