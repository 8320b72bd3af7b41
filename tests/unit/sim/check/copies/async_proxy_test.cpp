// The race check on reads of the asynchronous proxy beyond a block's own tiles: tensor maps changed
// by a kernel, and copies between the blocks of a cluster.
#include "unit/sim/device/hopper_runner.h"

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

const std::string kMapShared =
    ".shared .align 128 .b8 proxy_tile[1024];\n.shared .align 128 .b8 proxy_map[128];\n"
    ".shared .align 8 .b64 proxy_bar;\n";
/// %d1 = a map in global memory, %d2 the same of the thread's word, %r4 the map's word.
const std::string kMapHead = R"(
ld.param.u64 %d1, [p0];
mov.b64 %d6, map;
cvta.param.u64 %d6, %d6;
mul.wide.u32 %d2, %r0, 4;
add.u64 %d3, %d6, %d2;
add.u64 %d2, %d2, %d1;
ld.u32 %r4, [%d3];
mov.u32 %r1, proxy_tile;
mov.u32 %r2, proxy_bar;
mov.u32 %r3, 0;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
bar.sync 0;
)";
const std::string kCopyMap = "st.global.u32 [%d2], %r4;\n";
const std::string kRelease = "fence.proxy.tensormap::generic.release.gpu;\n";
const std::string kAcquire = "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;\n";
const std::string kBarrier = "bar.sync 0;\n";
const std::string kUse = R"(
@!%p1 bra USED;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],
 [%d1, {%r3, %r3}], [%r2];
USED:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra USED;
)";

std::vector<Finding> found_with_map(const std::string& body) {
  HopperRunner runner;
  TensorMapParameters map;
  map.rank = 2;
  map.type = 2;
  map.address = runner.upload(std::vector<std::uint32_t>(64 * 64));
  map.extent = {64, 64};
  map.stride = {0, 256};
  map.box = {16, 8};
  map.step = {1, 1};
  runner.block = {32, 1, 1};
  runner.checks = {true, true, true};
  const auto bytes = encode_tensor_map(map);
  const std::uint64_t there = runner.upload(std::vector<std::byte>(bytes.begin(), bytes.end()));
  require_fine(runner.run_with_map(map, kMapHead + body, {there}, kMapShared));
  for (const Finding& finding : runner.findings) CHECK(finding.fault.kind == FaultKind::race);
  return runner.findings;
}

/// Two blocks; block 0 fills its tile and copies it to block 1 with a signal to its mbarrier.
const std::string kPairHead = R"(
mov.u32 %r10, %cluster_ctarank;
mov.u32 %r1, proxy_tile;
mad.lo.u32 %r5, %r0, 4, %r1;
mov.u32 %r2, proxy_bar;
setp.eq.u32 %p1, %r0, 0;
setp.eq.u32 %p3, %r10, 0;
and.pred %p4, %p1, %p3;
mov.u32 %r6, 1;
mapa.shared::cluster.u32 %r3, %r1, %r6;
mapa.shared::cluster.u32 %r4, %r2, %r6;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
)";
const std::string kSync = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
const std::string kWrite = "@%p3 st.shared.u32 [%r5], %r0;\n";
const std::string kFence = "fence.proxy.async;\n";
const std::string kSend =
    "@!%p4 bra SENT;\ncp.async.bulk.shared::cluster.shared::cta"
    ".mbarrier::complete_tx::bytes [%r3], [%r1], 512, [%r4];\nSENT:\n";
const std::string kWait =
    "@%p3 bra CAME;\nCOMES:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, "
    "[%r2], 0;\n@!%p2 bra COMES;\nCAME:\n";
const std::string kRead = "@!%p3 ld.shared.u32 %r7, [%r5];\n";

std::vector<Finding> found_in_pair(const std::string& body) {
  std::vector<Finding> all;
  for (const std::uint64_t seed : {0u, 7u}) {
    HopperRunner runner;
    runner.grid = {2, 1, 1};
    runner.cluster = {2, 1, 1};
    runner.block = {128, 1, 1};
    runner.seed = seed;
    runner.checks = {true, true, true};
    require_fine(runner.run(kPairHead + body, {}, kMapShared));
    CHECK((all.empty() || runner.findings.size() == all.size()));
    all = runner.findings;
  }
  return all;
}

}  // namespace

TEST_CASE("check proxy: a tensor map that threads changed takes a fence before it is used") {
  CHECK(found_with_map(kUse).empty());
  CHECK(found_with_map(kCopyMap + kRelease + kBarrier + kAcquire + kUse).empty());
  CHECK(found_with_map(kCopyMap + kBarrier + "@%p1 " + kAcquire + kUse).empty());
  for (const std::string& body :
       {kCopyMap + kBarrier + kUse, kCopyMap + kRelease + kBarrier + kUse,
        kAcquire + kCopyMap + kBarrier + kUse, kCopyMap + kFence + kBarrier + kUse}) {
    const auto findings = found_with_map(body);
    REQUIRE(findings.size() == 1);
    INFO(findings[0].to_string());
    CHECK(contains(findings[0].fault.message, "no proxy fence of tensor maps"));
    CHECK(contains(findings[0].fault.opcode, "cp.async.bulk.tensor"));
    CHECK(contains(findings[0].hint, "fence.proxy.tensormap::generic.acquire"));
    REQUIRE(findings[0].other);
    CHECK(findings[0].other->opcode == "st.global.u32");
  }
  // A single byte.
  CHECK(found_with_map("mov.u16 %h1, 0;\n@%p1 st.global.u8 [%d1+127], %h1;\n" + kBarrier + kUse)
            .size() == 1);
  CHECK(found_with_map("mov.u16 %h1, 0;\n@%p1 st.global.u8 [%d1+127], %h1;\n" + kBarrier +
                       kAcquire + kUse)
            .empty());
}

TEST_CASE("check proxy: a tensor map that tensormap.cp_fenceproxy copied takes a fence too") {
  const std::string copy =
      "mov.u32 %r8, proxy_map;\nmad.lo.u32 %r9, %r0, 4, %r8;\nst.shared.u32 [%r9], %r4;\n"
      "bar.warp.sync 0xffffffff;\ntensormap.cp_fenceproxy.global.shared::cta.tensormap::generic"
      ".release.gpu.sync.aligned [%d1], [%r8], 128;\n";
  CHECK(found_with_map(copy + kAcquire + kUse).empty());
  CHECK(found_with_map(copy + kUse).size() == 1);
}

TEST_CASE("check proxy: a copy between blocks reads what threads wrote after a proxy fence") {
  const std::string rest = kBarrier + kSync + kSend + kWait + kRead + kSync;
  CHECK(found_in_pair(kWrite + kFence + rest).empty());
  const auto findings = found_in_pair(kWrite + rest);
  REQUIRE(findings.size() == 1);
  CHECK(contains(findings[0].fault.message, "no proxy fence lies between them"));
  CHECK(findings[0].space == "shared memory");
  // Nobody wrote the source.
  const auto unwritten = found_in_pair(kSync + kSend + kWait + kSync);
  REQUIRE(unwritten.size() == 1);
  CHECK(unwritten[0].fault.kind == FaultKind::init);
  // Written by another thread without an order before it.
  CHECK(!found_in_pair(kSync + kWrite + kFence + kSend + kWait + kSync).empty());
}

TEST_CASE("check proxy: the tile that a copy between blocks reads is free when somebody waited") {
  const std::string sent = kWrite + kFence + kBarrier + kSync + kSend;
  const std::string again = "@%p3 st.shared.u32 [%r5], 7;\n";
  CHECK(found_in_pair(sent + kWait + kSync + again + kSync).empty());
  const auto findings = found_in_pair(sent + again + kWait + kSync);
  REQUIRE(findings.size() == 1);
  INFO(findings[0].to_string());
  CHECK(findings[0].what == "write");
  CHECK(findings[0].other->what == "asynchronous read");
  CHECK(contains(findings[0].fault.message, "nothing waits for the end of it"));
  CHECK(contains(findings[0].hint, "a thread of the block that gets it waits"));
  CHECK(!found_in_pair(sent + kBarrier + again + kWait + kSync).empty());
  // Beside it.
  CHECK(found_in_pair(sent + "@%p3 st.shared.u32 [%r5+512], 7;\n" + kWait + kSync).empty());
}
