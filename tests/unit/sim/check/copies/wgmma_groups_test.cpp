// Products of wgmma in flight: missing waits are found, unneeded ones are not asked for, registers
// are waited for as ptxas does, and a warpgroup's four warps are done together.
#include "unit/sim/device/hopper_runner.h"

#include <bit>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// A (64 x 16) and B (16 x 8) of ones in shared memory, %d4 and %d5 their descriptors, %r20 to %r23
/// the same A in registers, sums %f0 to %f11 of zero; %d1 = &p0[thread].
const std::string kSetUp = R"(
ld.param.u64 %d1, [p0];
mad.wide.u32 %d1, %r0, 4, %d1;
mov.u32 %r1, space;
mov.u32 %r2, 0x3c003c00;
mov.u32 %r6, %r0;
FILL:
mad.lo.u32 %r7, %r6, 4, %r1;
st.shared.u32 [%r7], %r2;
add.u32 %r6, %r6, 128;
setp.lt.u32 %p3, %r6, 640;
@%p3 bra FILL;
shr.u32 %r8, %r1, 4;
cvt.u64.u32 %d4, %r8;
or.b64 %d4, %d4, 0x0000000800400000;
add.u32 %r8, %r8, 128;
cvt.u64.u32 %d5, %r8;
or.b64 %d5, %d5, 0x0000000800080000;
mov.u32 %r20, %r2;
mov.u32 %r21, %r2;
mov.u32 %r22, %r2;
mov.u32 %r23, %r2;
)";

std::string sums(int first) {
  std::string text = "{";
  for (int i = first; i < first + 4; ++i) text += (i == first ? "%f" : ", %f") + std::to_string(i);
  return text + "}";
}

std::string multiply(int first, bool registers = false) {
  return "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " + sums(first) + ", " +
         (registers ? "{%r20, %r21, %r22, %r23}, %d5, 1, 1, 1, 0;\n"
                    : "%d4, %d5, 1, 1, 1, 0, 0;\n");
}

const std::string kFence = "wgmma.fence.sync.aligned;\n";
const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
std::string wait(int left) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(left) + ";\n";
}
std::string keep(int sum) { return "st.global.f32 [%d1], %f" + std::to_string(sum) + ";\n"; }

/// Thread 0 stores a register in shared memory.
std::string change_by_first(const std::string& place, const std::string& value) {
  return "setp.ne.u32 %p7, %r0, 0;\n@!%p7 st.shared.u32 " + place + ", " + value + ";\n";
}

struct Ran {
  Fault report;
  std::vector<float> sums;
  std::vector<Finding> findings;
};

Ran run(const std::string& body, std::uint32_t threads = 128, const CheckSet& checks = {}) {
  HopperRunner runner;
  runner.checks = checks;
  runner.block = {threads, 1, 1};
  std::string zero;
  for (int i = 0; i < 12; ++i) zero += "mov.f32 %f" + std::to_string(i) + ", 0f00000000;\n";
  const std::uint64_t out = runner.upload(std::vector<float>(threads, -1));
  Ran ran;
  ran.report = runner.run(
      kSetUp + zero + "fence.proxy.async;\nbar.sync 0;\n" + kFence + body, {out},
      ".shared .align 1024 .b8 space[2560];\n.shared .align 8 .b64 bar;\n.shared .b32 flag;\n");
  ran.sums = runner.download<float>(out, threads);
  ran.findings = std::move(runner.findings);
  return ran;
}

void expect_sums(const std::string& body, float value) {
  const Ran ran = run(body);
  CAPTURE(body);
  require_fine(ran.report);
  CHECK(ran.sums == std::vector<float>(128, value));
}

void expect_finding(const std::string& body, const std::string& part) {
  const Ran ran = run(body);
  CAPTURE(body);
  INFO(ran.report.to_string());
  CHECK(ran.report.kind == FaultKind::sync);
  CHECK(contains(ran.report.message, part));
}

/// Operands in shared memory change too early: the launch goes on with the product as of its issue,
/// and the `race` check names both places.
Ran expect_change(const std::string& body, float value) {
  expect_sums(body, value);
  Ran ran = run(body, 128, {.race = true});
  CAPTURE(body);
  require_fine(ran.report);
  CHECK(ran.sums == std::vector<float>(128, value));
  REQUIRE(ran.findings.size() == 1);
  const Finding& finding = ran.findings[0];
  INFO(finding.to_string());
  CHECK(finding.fault.kind == FaultKind::race);
  CHECK(finding.what == "write");
  CHECK(finding.space == "shared memory");
  CHECK(finding.fault.opcode == "st.shared.u32");
  REQUIRE(finding.other);
  CHECK(finding.other->what == "asynchronous read");
  CHECK(contains(finding.other->opcode, "wgmma.mma_async"));
  CHECK(contains(finding.fault.message, "nothing waits for the end of it"));
  CHECK(contains(finding.hint, "wgmma.wait_group"));
  return ran;
}

/// An access to registers in flight: the sums are right, and the `sync` check reports it.
void expect_touch(const std::string& body, const std::string& part, float value) {
  expect_sums(body, value);
  const Ran ran = run(body, 128, {.sync = true});
  CAPTURE(body);
  require_fine(ran.report);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].fault.kind == FaultKind::sync);
  INFO(ran.findings[0].fault.message);
  CHECK(contains(ran.findings[0].fault.message, part));
  CHECK(contains(ran.findings[0].hint, "wgmma.wait_group"));
  REQUIRE(ran.findings[0].other);
  CHECK(ran.findings[0].other->what == "wgmma");
  CHECK(contains(ran.findings[0].other->opcode, "wgmma.mma_async"));
  CHECK(ran.findings[0].other->ptx_line > 0);
  CHECK(ran.findings[0].other->ptx_line <= ran.findings[0].fault.ptx_line);
}

}  // namespace

TEST_CASE("wgmma in flight: waits that cover what is used") {
  expect_sums(multiply(0) + kCommit + wait(0) + keep(0), 16);
  expect_sums(multiply(0) + multiply(0) + kCommit + multiply(0) + kCommit + wait(0) + keep(3), 48);
  // The first group is done when one may be left.
  expect_sums(multiply(0) + kCommit + multiply(4) + kCommit + wait(1) + keep(0) + wait(0), 16);
  // Of three the first two are.
  expect_sums(multiply(0) + kCommit + multiply(4) + kCommit + multiply(8) + kCommit + wait(1) +
                  "add.f32 %f0, %f0, %f4;\n" + keep(0) + wait(0),
              32);
  expect_sums(multiply(0, true) + kCommit + wait(0) + "mov.u32 %r20, 0;\n" + keep(0), 16);
  // ptxas does without .aligned here.
  expect_sums("wgmma.mma_async.sync.m64n8k16.f32.f16.f16 " + sums(0) +
                  ", %d4, %d5, 1, 1, 1, 0, 0;\n" +
                  "wgmma.commit_group.sync;\nwgmma.wait_group.sync 0;\n" + keep(0),
              16);
  // Operands may be read, and memory outside of the operands may be written.
  expect_sums(multiply(0, true) + kCommit +
                  "add.u32 %r30, %r20, 1;\nmov.f32 %f4, 0f3f800000;\nld.shared.u32 %r31, [%r1];\n" +
                  "st.shared.u32 [%r1+2304], %r31;\n" + wait(0) + keep(0),
              16);
  expect_sums(
      multiply(0) + kCommit + wait(0) + "bar.sync 0;\nst.shared.u32 [%r1], %r0;\n" + keep(0), 16);
  expect_sums("st.global.f32 [%d1], %f0;\n" + multiply(0) + kCommit + wait(0), 0);
}

TEST_CASE("wgmma in flight: a loop that leaves a group open") {
  expect_sums("mov.u32 %r40, 0;\n" + multiply(0) + kCommit + "LOOP:\n" + multiply(0) + kCommit +
                  wait(1) + "add.u32 %r40, %r40, 1;\nsetp.lt.u32 %p6, %r40, 5;\n@%p6 bra LOOP;\n" +
                  wait(0) + keep(0),
              96);
}

TEST_CASE("wgmma in flight: sums that are read or written too early end their products") {
  expect_touch(multiply(0) + keep(0), "register %f0 is read while a wgmma may still write it", 16);
  expect_touch(multiply(0) + kCommit + keep(3) + wait(0), "register %f3 is read while", 16);
  // Never committed.
  expect_touch(multiply(0) + wait(0) + keep(0), "register %f0 is read while", 16);
  expect_touch(multiply(0) + kCommit + multiply(4) + kCommit + wait(1) + keep(4),
               "register %f4 is read", 16);
  expect_touch(multiply(0) + kCommit + multiply(0) + kCommit + wait(1) + keep(0),
               "register %f0 is read", 32);
  expect_touch(multiply(0) + kCommit + "mov.f32 %f1, 0f00000000;\n" + wait(0) + keep(1),
               "register %f1 is written while", 0);
  expect_touch(multiply(0) + kCommit + "mov.f32 %f20, %f2;\n" + wait(0) + keep(20),
               "register %f2 is read", 16);
  expect_touch(multiply(0) + kCommit + "mov.b32 %r20, %f0;\n" + wait(0) + keep(0),
               "register %f0 is read", 16);
  // The first touch ended both products.
  expect_touch(
      multiply(0) + kCommit + multiply(4) + kCommit + "add.f32 %f20, %f4, %f0;\n" + keep(20),
      "register %f4 is read", 32);
}

TEST_CASE("wgmma in flight: an instruction that is not executed touches nothing") {
  const std::string never = "setp.gt.u32 %p5, %r0, 1000;\n";
  const auto expect_none = [&](const std::string& body) {
    const Ran ran = run(multiply(0) + kCommit + never + body, 128, {.sync = true});
    require_fine(ran.report);
    CHECK(ran.findings.empty());
    CHECK(ran.sums == std::vector<float>(128, 16));
  };
  expect_none("@%p5 st.global.f32 [%d1], %f0;\n" + wait(0) + keep(0));
  expect_none("@%p5 bra EARLY;\n" + wait(0) + keep(0) + "bra END;\nEARLY:\n" + keep(0) + "END:\n");
  expect_touch(multiply(0) + kCommit + never + "@!%p5 st.global.f32 [%d1], %f0;\n" + wait(0),
               "register %f0 is read", 16);
}

TEST_CASE("wgmma in flight: operands that change too early") {
  expect_touch(multiply(0, true) + kCommit + "mov.u32 %r22, 0;\n" + wait(0) + keep(0),
               "register %r22 is written while a wgmma may still read it", 16);
  // Behind a barrier: all four warps have issued theirs.
  const auto change = [](const std::string& place) {
    return "bar.sync 0;\n" + change_by_first(place, "%r0");
  };
  const std::string end = wait(0) + keep(0);
  const Ran a = expect_change(multiply(0) + kCommit + change("[%r1]") + end, 16);
  CHECK(a.findings[0].fault.thread == std::array<unsigned, 3>{0, 0, 0});
  CHECK(a.findings[0].fault.address == 0);
  CHECK(a.findings[0].other->thread == std::array<unsigned, 3>{0, 0, 0});
  const Ran b = expect_change(multiply(0) + kCommit + change("[%r1+2048]") + end, 16);
  CHECK(b.findings[0].fault.address == 2048);
  expect_change(multiply(0) + kCommit + change("[%r1+2300]") + end, 16);  // B's last word
  // A wait for all but one group does not cover the second product.
  const std::string second =
      multiply(0) + kCommit + multiply(4) + kCommit + wait(1) + change("[%r1+2048]");
  expect_change(second + wait(0) + keep(4), 16);
  // Also with the value already there.
  expect_change(multiply(0) + kCommit + change_by_first("[%r1]", "%r2") + end, 16);
  // Nobody waits at all.
  expect_change(multiply(0) + kCommit + change("[%r1]") + keep(4), 0);
}

TEST_CASE(
    "wgmma in flight: the warp whose rows changed is named, and who came after its wait is "
    "fine") {
  // Rows 32 to 47 of A are warp 2's.
  const std::string change = change_by_first("[%r1+512]", "%r0");
  const Ran ran =
      expect_change(multiply(0) + kCommit + "bar.sync 0;\n" + change + wait(0) + keep(0), 16);
  CHECK(ran.findings[0].other->thread == std::array<unsigned, 3>{64, 0, 0});
  const auto clean = [&](const std::string& body) {
    const Ran fine = run(body, 128, {.init = true, .race = true, .sync = true});
    require_fine(fine.report);
    CHECK(fine.findings.empty());
  };
  clean(multiply(0) + kCommit + wait(0) + change + keep(0));
  clean(multiply(0) + kCommit + wait(0) + "bar.sync 0;\n" + change + keep(0));
  // Memory read by no product of the group.
  clean(multiply(0) + kCommit + change_by_first("[%r1+2304]", "%r0") + wait(0) + keep(0));
}

TEST_CASE("wgmma in flight: products that depend on each other without a wait") {
  const std::string wide =
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
      "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %d4, %d5, 1, 1, 1, 0, 0;\n";
  // Of another shape with sums of the first: ptxas waits between the two. Its second 8 columns lie
  // behind B.
  expect_touch(multiply(0) + kCommit + wide + kCommit + wait(0) + keep(0),
               "register %f0 of this wgmma is still written by an earlier one, whose accumulators "
               "are others",
               32);
  expect_sums(multiply(0) + kCommit + wait(0) + kFence + multiply(4) + kCommit + wait(0) + keep(4),
              16);
  // A from the sums of the product before: 16 as halves, which are multiplied and summed up again.
  const std::string halves = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r20, %r21}, ";
  const std::string zero = "mov.u32 %r20, 0;\nmov.u32 %r21, 0;\n";
  expect_touch(zero + halves + "%d4, %d5, 1, 1, 1, 0, 0;\n" + kCommit + "mov.u32 %r22, 0;\n" +
                   "mov.u32 %r23, 0;\n" + multiply(0, true) + kCommit + wait(0) + keep(0),
               "register %r20 of this wgmma is still written by an earlier one", 128);
  expect_touch(multiply(0, true) + kCommit + halves + "%d4, %d5, 0, 1, 1, 0, 0;\n" + kCommit +
                   wait(0) + keep(0),
               "register %r20 of this wgmma is still read by an earlier one", 16);
}

TEST_CASE("wgmma in flight: lanes that were apart execute it together") {
  // Half of each warp comes later to each instruction.
  const std::string apart =
      "and.b32 %r9, %r0, 1;\nsetp.eq.u32 %p5, %r9, 0;\n@%p5 bra $L#;\nadd.u32 %r9, %r9, 1;\n$L#:\n";
  std::string body;
  int number = 0;
  for (const std::string& next : {multiply(0), kCommit, multiply(4), kCommit, wait(1)}) {
    std::string text = apart;
    while (text.find('#') != std::string::npos)
      text.replace(text.find('#'), 1, std::to_string(number));
    ++number;
    body += text + next;
  }
  for (const bool all : {false, true}) {
    const Ran ran = run(body + keep(0) + wait(0), 128, {.init = all, .race = all, .sync = all});
    require_fine(ran.report);
    CHECK(ran.findings.empty());
    CHECK(ran.sums == std::vector<float>(128, 16));
  }
  // Copies of the instruction in two branches are never executed together.
  const Ran ran =
      run(multiply(0) + "and.b32 %r9, %r0, 1;\nsetp.eq.u32 %p5, %r9, 0;\n" + "@%p5 bra OTHER;\n" +
          kCommit + "bra ON;\nOTHER:\n" + kCommit + "ON:\n" + wait(0) + keep(0));
  CHECK(ran.report.kind == FaultKind::sync);
  CHECK(contains(ran.report.message, "lanes wait at a .sync instruction"));
}

TEST_CASE("wgmma in flight: whoever waits may tell that all four warps are done") {
  // Warp 3 comes late; thread 0 overwrites B as soon as its own wait is over.
  expect_sums(R"(
mov.u32 %r41, flag;
mov.u32 %r40, 0;
setp.lt.u32 %p5, %r0, 96;
@%p5 bra GO;
LATE:
add.u32 %r40, %r40, 1;
setp.lt.u32 %p6, %r40, 100000;
@%p6 bra LATE;
GO:
)" + multiply(0) + kCommit +
                  wait(0) + R"(
setp.ne.u32 %p6, %r0, 0;
@%p6 bra KEEP;
st.shared.u32 [%r1+2048], %r0;
st.shared.u32 [%r1+2052], %r0;
st.shared.u32 [%r1], %r0;
KEEP:
)" + keep(0),
              16);
}

TEST_CASE("wgmma in flight: four warps or none") {
  Ran ran = run(multiply(0) + kCommit + wait(0), 96);
  CHECK(ran.report.kind == FaultKind::sync);
  CHECK(contains(ran.report.message, "launch whole warpgroups of 128 threads"));
  expect_finding("setp.ge.u32 %p5, %r0, 96;\n@%p5 bra END;\n" + multiply(0) + kCommit + wait(0) +
                     keep(0) + "END:\n",
                 "one of this warpgroup has exited without the products");
  // The last warp waits at a barrier, and the others never reach it.
  ran = run("setp.ge.u32 %p5, %r0, 96;\n@%p5 bra APART;\n" + multiply(0) + kCommit + wait(0) +
            "APART:\nbar.sync 0;\n");
  INFO(ran.report.to_string());
  CHECK(ran.report.kind == FaultKind::sync);
  CHECK(contains(ran.report.further_lines(), "other warps of the warpgroup"));
}

TEST_CASE("wgmma in flight: a wait that has to wait for other warps is one instruction") {
  HopperRunner runner;
  runner.watched = true;
  runner.block = {128, 1, 1};
  const std::uint64_t out = runner.upload(std::vector<float>(128));
  // Warp 3 comes late: the others park in the wait and execute it again.
  const std::string late =
      "setp.lt.u32 %p5, %r0, 96;\n@%p5 bra GO;\nmov.u32 %r40, 0;\nLATE:\n"
      "add.u32 %r40, %r40, 1;\nsetp.lt.u32 %p6, %r40, 100000;\n@%p6 bra LATE;\nGO:\n";
  require_fine(runner.run(kSetUp + "fence.proxy.async;\nbar.sync 0;\n" + kFence + late +
                              multiply(0) + kCommit + wait(0),
                          {out}, ".shared .align 1024 .b8 space[2560];\n"));
  int waits = 0;
  for (const auto& [opcode, counts] : runner.counts) {
    if (!contains(opcode, "wgmma.wait_group")) continue;
    ++waits;
    CHECK(counts.instructions == 4);
    CHECK(counts.thread_instructions == 128);
  }
  CHECK(waits == 1);
}

TEST_CASE("wgmma in flight: nothing is left for the next block of a runner") {
  HopperRunner runner;
  runner.block = {128, 1, 1};
  runner.grid = {3, 1, 1};
  const std::uint64_t out = runner.upload(std::vector<float>(128));
  std::string zero;
  for (int i = 0; i < 4; ++i) zero += "mov.f32 %f" + std::to_string(i) + ", 0f00000000;\n";
  // Each block ends with a product in flight. The next block's first read must not see it.
  require_fine(runner.run(kSetUp + zero + "fence.proxy.async;\nbar.sync 0;\n" + keep(0) + kFence +
                              multiply(0) + kCommit,
                          {out}, ".shared .align 1024 .b8 space[2560];\n"));
}
