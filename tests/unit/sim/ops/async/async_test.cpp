// cp.async and mbarrier.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <cstdint>
#include <numeric>

namespace kernwright::sim {
namespace {

std::vector<std::uint8_t> counting(std::size_t count) {
  std::vector<std::uint8_t> values(count);
  std::iota(values.begin(), values.end(), std::uint8_t{1});
  return values;
}

/// Copies `size` bytes per lane through shared memory with `copy` and stores them to p1.
std::string copy_body(std::size_t size, const std::string& copy) {
  const std::string bytes = std::to_string(size);
  return ".shared .align 16 .b8 tile[512];\n"
         "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mul.wide.u32 %d2, %r0, " +
         bytes +
         ";\n"
         "add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2; mov.u32 %r1, tile; cvt.u32.u64 %r2, %d2;\n"
         "add.u32 %r1, %r1, %r2; mov.b32 %r9, 0xffffffff; st.shared.u32 [%r1], %r9;\n" +
         copy +
         "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; mov.u32 %r3, 0;\n"
         "LOOP: ld.shared.u32 %r4, [%r1]; st.global.u32 [%d1], %r4; add.u32 %r1, %r1, 4;\n"
         "add.s64 %d1, %d1, 4; add.u32 %r3, %r3, 4; setp.lt.u32 %p1, %r3, " +
         bytes +
         ";\n"
         "@%p1 bra LOOP;\n";
}

TEST_CASE("cp.async: 4, 8 and 16 bytes per lane") {
  for (const std::size_t size : {4u, 8u, 16u}) {
    OpsRunner runner;
    const auto source = counting(32 * size);
    const auto from = runner.upload(source), to = runner.allocate(32 * size);
    const std::string kind = size == 16 ? "cg" : "ca";
    const auto report =
        runner.run(copy_body(size, "cp.async." + kind + ".shared.global [%r1], [%d0], " +
                                       std::to_string(size) + ";\n"),
                   {from, to});
    REQUIRE(report.message == "");
    CHECK(runner.download<std::uint8_t>(to, 32 * size) == source);
  }
}

TEST_CASE("cp.async: bytes past the source size become zero and are not read") {
  OpsRunner runner;
  const auto source = counting(31 * 16);  // lane 31 reads nothing
  const auto from = runner.upload(source), to = runner.allocate(32 * 16);
  const auto report = runner.run(
      copy_body(16,
                "setp.eq.u32 %p2, %r0, 31; selp.b32 %r5, 0, 16, %p2; setp.eq.u32 %p3, %r0, 2;\n"
                "selp.b32 %r5, 5, %r5, %p3;\n"
                "cp.async.cg.shared.global [%r1], [%d0], 16, %r5;\n"),
      {from, to});
  REQUIRE(report.message == "");
  auto expected = source;
  expected.resize(32 * 16, 0);
  for (std::size_t i = 2 * 16 + 5; i < 3 * 16; ++i) expected[i] = 0;
  CHECK(runner.download<std::uint8_t>(to, 32 * 16) == expected);
}

TEST_CASE("cp.async: a true ignore predicate writes zeros") {
  OpsRunner runner;
  const auto source = counting(32 * 4);
  const auto from = runner.upload(source), to = runner.allocate(32 * 4);
  const auto report = runner.run(
      copy_body(4, "setp.ge.u32 %p2, %r0, 16; cp.async.ca.shared.global [%r1], [%d0], 4, %p2;\n"),
      {from, to});
  REQUIRE(report.message == "");
  auto expected = source;
  std::fill(expected.begin() + 64, expected.end(), std::uint8_t{0});
  CHECK(runner.download<std::uint8_t>(to, 32 * 4) == expected);
}

TEST_CASE("cp.async: both ends are checked") {
  OpsRunner runner;
  const auto from = runner.allocate(31 * 16), to = runner.allocate(32 * 16);
  const auto outside =
      runner.run(copy_body(16, "cp.async.cg.shared.global [%r1], [%d0], 16;\n"), {from, to});
  CHECK(outside.kind == FaultKind::bounds);
  CHECK(outside.thread[0] == 31);
  CHECK(outside.address == from + 31 * 16);
  const auto shared =
      runner.run(copy_body(16, "cp.async.cg.shared.global [%r1+16], [%d0], 16;\n"), {to, to});
  CHECK(shared.kind == FaultKind::bounds);
  CHECK(shared.message.find("shared memory of 512 bytes") != std::string::npos);
  const auto misaligned =
      runner.run(copy_body(16, "cp.async.cg.shared.global [%r1], [%d0+8], 16;\n"), {to, to});
  CHECK(misaligned.kind == FaultKind::alignment);
}

/// Two warps; the result of `body` in %r2 goes to p0[tid].
std::vector<std::uint32_t> run_barrier(const std::string& body, Fault* fault = nullptr) {
  OpsRunner runner;
  runner.block = {64, 1, 1};
  const auto to = runner.upload(std::vector<std::uint32_t>(64, 99));
  const auto report = runner.run(
      ".shared .align 8 .b64 bar; .shared .align 4 .b32 word[64];\n"
      "ld.param.u64 %d9, [p0]; mul.wide.u32 %d8, %r0, 4; add.s64 %d9, %d9, %d8; mov.u32 %r1, bar;\n"
      "setp.ne.u32 %p9, %r0, 0;\n" +
          body + "st.global.u32 [%d9], %r2;\n",
      {to});
  if (fault != nullptr)
    *fault = report;
  else
    REQUIRE(report.message == "");
  return runner.download<std::uint32_t>(to, 64);
}

TEST_CASE("mbarrier: arrive and wait order two warps' shared memory, phase after phase") {
  const auto result = run_barrier(
      "@%p9 bra READY; mbarrier.init.shared.b64 [%r1], 64;\nREADY: bar.sync 0; mov.u32 %r10, 0;\n"
      "mov.u32 %r11, word; shl.b32 %r12, %r0, 2; add.u32 %r13, %r11, %r12; xor.b32 %r14, %r12, "
      "252;\n"
      "add.u32 %r14, %r11, %r14; mov.u32 %r2, 0;\n"
      "LOOP: add.u32 %r3, %r0, %r10; st.shared.u32 [%r13], %r3;\n"
      "mbarrier.arrive.shared.b64 %d1, [%r1];\n"
      "W1: mbarrier.test_wait.shared.b64 %p1, [%r1], %d1; @!%p1 bra W1;\n"
      "ld.shared.u32 %r4, [%r14]; add.u32 %r2, %r2, %r4;\n"
      "mbarrier.arrive.shared.b64 _, [%r1];\n"
      "W2: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 1; @!%p1 bra W2;\n"
      "add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 5; @%p2 bra LOOP;\n");
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(result[i] == 5 * (63 - i) + 10);
}

TEST_CASE("mbarrier: counts, pending_count, arrive_drop and transactions decide the phase") {
  const auto result = run_barrier(
      "mov.u32 %r2, 0; @%p9 bra DONE; mbarrier.init.shared.b64 [%r1], 5;\n"
      "mbarrier.arrive.shared.b64 %d1, [%r1], 3; mbarrier.pending_count.b64 %r3, %d1;\n"    // 5
      "mbarrier.arrive_drop.shared.b64 %d2, [%r1]; mbarrier.pending_count.b64 %r4, %d2;\n"  // 2
      "mbarrier.test_wait.shared.b64 %p1, [%r1], %d1; selp.u32 %r5, 1, 0, %p1;\n"           // 0
      "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], 64;\n"
      "mbarrier.arrive.shared.b64 %d3, [%r1];\n"
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; selp.u32 %r6, 1, 0, %p1;\n"  // 0
      "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 64;\n"
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; selp.u32 %r7, 1, 0, %p1;\n"  // 1
      "mbarrier.arrive.shared.b64 %d4, [%r1]; mbarrier.pending_count.b64 %r8, %d4;\n"   // 4
      "mad.lo.u32 %r2, %r3, 10, %r4; mad.lo.u32 %r2, %r2, 10, %r5; mad.lo.u32 %r2, %r2, 10, %r6;\n"
      "mad.lo.u32 %r2, %r2, 10, %r7; mad.lo.u32 %r2, %r2, 10, %r8; mbarrier.inval.shared.b64 "
      "[%r1];\n"
      "DONE:\n");
  CHECK(result[0] == 520014);
}

TEST_CASE("cp.async.mbarrier.arrive: with .noinc it counts, without it the count is neutral") {
  const auto result = run_barrier(
      "mov.u32 %r2, 0; @%p9 bra DONE; mbarrier.init.shared.b64 [%r1], 1;\n"
      "cp.async.mbarrier.arrive.shared.b64 [%r1];\n"
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; selp.u32 %r3, 1, 0, %p1;\n"
      "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n"
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; selp.u32 %r4, 1, 0, %p1;\n"
      "mad.lo.u32 %r2, %r3, 10, %r4;\nDONE:\n");
  CHECK(result[0] == 1);
}

TEST_CASE("mbarrier: use before init and too many arrivals are findings") {
  Fault fault;
  run_barrier("mov.b64 %d3, 0; st.shared.b64 [bar], %d3; mbarrier.arrive.shared.b64 %d1, [%r1];\n",
              &fault);
  CHECK(fault.kind == FaultKind::sync);
  CHECK(fault.message.find("not initialised") != std::string::npos);
  run_barrier(
      "@%p9 exit; mbarrier.init.shared.b64 [%r1], 2; mbarrier.arrive.shared.b64 %d1, [%r1], 3;\n",
      &fault);
  CHECK(fault.message.find("more arrivals") != std::string::npos);
  run_barrier("mbarrier.init.shared.b64 [%r1], 0;\n", &fault);
  CHECK(fault.message.find("count") != std::string::npos);
}

}  // namespace
}  // namespace kernwright::sim
