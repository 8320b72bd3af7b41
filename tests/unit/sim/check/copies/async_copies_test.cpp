// The race and init checks on cp.async: a copy is over for a thread after its wait, and for others
// once they are ordered behind this wait.
#include "sim/checks.h"
#include "unit/sim/check/check_kernel.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// %rd3: the thread's 16 bytes of the buffer; %r21: of shared memory; %r22: those of the thread in
/// another warp.
const std::string kHead =
    "mul.wide.u32 %rd3, %r1, 16;\nadd.s64 %rd3, %rd3, %rd1;\n"
    "shl.b32 %r21, %r1, 4;\nadd.s32 %r21, %r21, %r20;\n"
    "xor.b32 %r22, %r1, 32;\nshl.b32 %r22, %r22, 4;\nadd.s32 %r22, %r22, %r20;\n";
const std::string kCopy = kHead + "cp.async.ca.shared.global [%r21], [%rd3], 16;\n";
const std::string kCommit = "cp.async.commit_group;\n";
const std::string kWait = "cp.async.wait_group 0;\n";
const std::string kBarrier = "bar.sync 0;\n";
const std::string kReadOwn = "ld.shared.u32 %r6, [%r21];\n";
const std::string kReadOther = "ld.shared.u32 %r6, [%r22+8];\n";

}  // namespace

TEST_CASE("check async: a thread reads what it copied after a wait, others after a barrier more") {
  CHECK(!races(kCopy));
  CHECK(races(kCopy + kReadOwn));
  CHECK(races(kCopy + kCommit + kReadOwn));
  CHECK(races(kCopy + kWait + kReadOwn));  // its group was never closed
  CHECK(!races(kCopy + kCommit + kWait + kReadOwn));
  CHECK(!races(kCopy + "cp.async.wait_all;\n" + kReadOwn));
  CHECK(races(kCopy + kCommit + kWait + kReadOther));
  CHECK(races(kCopy + kCommit + kBarrier + kWait + kReadOther));
  CHECK(races(kCopy + kCommit + kBarrier + kReadOther + kWait));
  CHECK(!races(kCopy + kCommit + kWait + kBarrier + kReadOther));
}

TEST_CASE("check async: a wait leaves the last groups under way") {
  const std::string second = "cp.async.ca.shared.global [%r21+2048], [%rd3], 4;\n" + kCommit;
  const std::string both = kCopy + kCommit + second;
  const std::string read_second = "ld.shared.u32 %r7, [%r21+2048];\n";
  CHECK(!races(both + "cp.async.wait_group 1;\n" + kReadOwn));
  CHECK(races(both + "cp.async.wait_group 1;\n" + read_second));
  CHECK(races(both + "cp.async.wait_group 2;\n" + kReadOwn));
  CHECK(!races(both + "cp.async.wait_group 0;\n" + kReadOwn + read_second));
  // Only the first word was copied.
  CHECK(!races(both + "ld.shared.u32 %r7, [%r21+2052];\n"));
}

TEST_CASE("check async: writes to a copy's target or source race with it until the wait") {
  const std::string write = "st.shared.u8 [%r21+5], %r1;\n";
  CHECK(races(kCopy + write));
  CHECK(!races(kCopy + "cp.async.wait_all;\n" + write));
  CHECK(!races(kHead + write + kCopy));
  const std::string other = "cp.async.ca.shared.global [%r21], [%rd3+2048], 16;\n";
  CHECK(races(kCopy + other));
  CHECK(!races(kCopy + "cp.async.wait_all;\n" + other));
  CHECK(races(kHead + "ld.shared.u32 %r6, [%r22];\n" + kCopy));
  CHECK(!races(kHead + "ld.shared.u32 %r6, [%r22];\n" + kBarrier + kCopy));
  const std::string overwrite = "st.global.u32 [%rd3+4], %r1;\n";
  CHECK(races(kCopy + overwrite));
  CHECK(!races(kCopy + "cp.async.wait_all;\n" + overwrite));
  CHECK(!races(kHead + overwrite + kCopy));
  CHECK(!races(kCopy + "st.global.u32 [%rd3+1024], %r1;\n"));
  const std::string overwrite_other =
      "xor.b32 %r8, %r1, 32;\nmul.wide.u32 %rd4, %r8, 16;\n"
      "add.s64 %rd4, %rd4, %rd1;\nst.global.u32 [%rd4], %r1;\n";
  CHECK(races(kCopy + kBarrier + overwrite_other));
  CHECK(races(kCopy + kBarrier + "cp.async.wait_all;\n" + overwrite_other));
  CHECK(!races(kCopy + "cp.async.wait_all;\n" + kBarrier + overwrite_other));
}

TEST_CASE("check async: copies that repeat each other race with everything else alone") {
  // Threads i and i + 32 copy the same 16 bytes.
  const std::string twins =
      "and.b32 %r8, %r1, 31;\nmul.wide.u32 %rd3, %r8, 16;\nadd.s64 %rd3, %rd3, %rd1;\n"
      "shl.b32 %r21, %r8, 4;\nadd.s32 %r21, %r21, %r20;\n"
      "setp.lt.u32 %p1, %r1, 32;\nsetp.lt.u32 %p3, %r1, 64;\n";
  const std::string copy = "cp.async.ca.shared.global [%r21], [%rd3], 16;\n";
  const std::string wait = "cp.async.wait_all;\n";
  const std::string read = "ld.shared.u32 %r6, [%r21];\n";
  const std::string same = twins + copy;
  CHECK(!races(same));
  CHECK(!races(same + wait));
  CHECK(!races(same + copy + wait));
  CHECK(!races(same + wait + kBarrier + read));
  CHECK(races(same + kBarrier + read));
  CHECK(races(same + wait + read));  // the other warp's is not waited for
  // All lanes of a warp, with one word.
  const std::string one = "cp.async.ca.shared.global [%r20], [%rd1], 4;\n";
  CHECK(!races(twins + one + wait + kBarrier + read, {1, 32, false}));
  CHECK(!races(twins + one + wait + kBarrier + read, {1, 1024, false}));
  CHECK(races(twins + one + wait + "ld.shared.u32 %r6, [%r20];\n", {1, 32, false}));
  // Other bytes, or from elsewhere, or to part of the place.
  const std::string other_half = "@!%p1 cp.async.ca.shared.global ";
  const std::string half = twins + "@%p1 cp.async.ca.shared.global [%r21], [%rd3], 16;\n";
  CHECK(!races(half + other_half + "[%r21], [%rd3], 16;\n" + wait));
  CHECK(races(half + other_half + "[%r21], [%rd3+16], 16;\n" + wait));
  CHECK(races(half + other_half + "[%r21], [%rd3], 8;\n" + wait));
  CHECK(races(half + other_half + "[%r21+8], [%rd3+8], 8;\n" + wait));
  // Both of zeros alone: their sources are not read.
  const std::string none = "mov.u32 %r9, 0;\n";
  CHECK(!races(twins + none + "@%p1 cp.async.ca.shared.global [%r21], [%rd3], 16, %r9;\n" +
               other_half + "[%r21], [%rd3+64], 16, %r9;\n" + wait));
  CHECK(races(half + none + other_half + "[%r21], [%rd3], 16, %r9;\n" + wait));
  // Stores of unchanged values race with a copy all the same.
  CHECK(races(half + wait + "@!%p1 st.shared.u32 [%r21], %r1;\n"));
  // One of the two waits, and only that is known to who reads or overwrites.
  const std::string wait_of_first = "@!%p1 bra ON;\n" + wait + "ON:\n";
  const std::string wait_of_second = "@%p1 bra ON;\n" + wait + "ON:\n";
  for (const std::string& waits : {wait_of_first, wait_of_second}) {
    CHECK(races(same + waits + kBarrier + read));
    CHECK(races(same + waits + kBarrier + "@%p1 st.shared.u32 [%r21], %r1;\n"));
    CHECK(races(same + waits + kBarrier + copy.substr(0, copy.size() - 4) + "8;\n"));
    CHECK(!races(same + waits + kBarrier + wait + kBarrier + read));
  }
  // A third warp knows of both waits, or of one of them.
  const Shape three{1, 96, false};
  const std::string copies = twins + "@%p3 " + copy;
  const std::string named =
      "@%p3 bra OF_COPIES;\nbar.sync 1, 64;\n" + read + "bra END;\nOF_COPIES:\n";
  CHECK(!races(copies + wait + kBarrier + read, three));
  for (const char* late : {"@%p1 bra TELL;\nbra END;\n", "@!%p1 bra TELL;\nbra END;\n"}) {
    CHECK(races(copies + wait + named + late + "TELL:\nbar.arrive 1, 64;\nEND:\n", three));
  }
  CHECK(!races(copies + wait + "@%p3 bra OF_COPIES;\nbar.sync 1, 96;\n" + read +
                   "bra END;\nOF_COPIES:\nbar.arrive 1, 96;\nEND:\n",
               three));
}

TEST_CASE("check async: what was written before copies that repeat each other is not forgotten") {
  const std::string twins =
      "mov.u32 %r9, 5;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p3, %r1, 40;\n";
  const std::string first =
      "@%p1 st.shared.u32 [%r20+4], %r9;\n"
      "@%p1 cp.async.ca.shared.global [%r20], [%rd1], 8;\n";
  const std::string second = "@%p3 cp.async.ca.shared.global [%r20], [%rd1], 8;\n";
  // Thread 0's store comes before its own copy, and not before thread 40's.
  CHECK(races(twins + first + second));
  CHECK(!races(twins + first + kBarrier + second));
  const auto findings = run(twins + first + second);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].other->opcode == "st.shared.u32");
  CHECK(findings[0].fault.thread == std::array<unsigned, 3>{40, 0, 0});
  // The same where thread 0 waited and copied once more.
  CHECK(
      races(twins + first + "cp.async.wait_all;\n" + first.substr(first.find("@%p1 cp")) + second));
}

TEST_CASE("check async: who read before copies that repeat each other is not forgotten") {
  const std::string twins = "setp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p3, %r1, 40;\n";
  const std::string meet = "bar.warp.sync 0xffffffff;\n";
  const std::string first = "@%p1 cp.async.ca.shared.global [%r20], [%rd1], 4;\n";
  const std::string second = "@%p3 cp.async.ca.shared.global [%r20], [%rd1], 4;\n";
  const std::string one = "setp.eq.u32 %p2, %r1, 3;\n@%p2 ld.shared.u32 %r6, [%r20];\n";
  const std::string several = "setp.lt.u32 %p2, %r1, 4;\n@%p2 ld.shared.u32 %r6, [%r20];\n";
  const std::string bytes =
      "setp.lt.u32 %p2, %r1, 4;\nadd.s32 %r8, %r20, %r1;\n@%p2 ld.shared.u8 %r6, [%r8];\n";
  // The reads come before thread 0's copy, and not before thread 40's. A fence without an effect
  // here makes the check keep readers one by one.
  for (const char* fence : {"", "membar.cta;\n"}) {
    for (const std::string& read : {one, several, bytes}) {
      INFO(std::string(fence), read);
      const std::string before = twins + fence + read + meet + first;
      CHECK(!races(before));
      CHECK(races(before + second));
      CHECK(!races(before + kBarrier + second));
    }
  }
}

TEST_CASE("check async: a lane's wait is not that of another lane with the same copy") {
  const std::string copy = "cp.async.ca.shared.global [%r20], [%rd1], 4;\n";
  const std::string both = "setp.gt.u32 %p1, %r1, 1;\n@%p1 bra ON;\n" + copy + "ON:\n";
  const std::string wait = "cp.async.wait_all;\n", meet = "bar.warp.sync 0xffffffff;\n";
  for (const char* lane : {"0", "1", "2"}) {
    const std::string read =
        "setp.eq.u32 %p2, %r1, " + std::string(lane) + ";\n@%p2 ld.shared.u32 %r6, [%r20];\n";
    CHECK(races(both + wait + read, {1, 32, false}));
    CHECK(!races(both + wait + meet + read, {1, 32, false}));
  }
}

TEST_CASE("check async: copies that repeat each other, told to mbarriers") {
  const std::string set_up =
      "setp.eq.u32 %p1, %r1, 0;\nadd.s32 %r23, %r20, 4096;\n"
      "@%p1 mbarrier.init.shared.b64 [%r23], 64;\n" +
      kBarrier +
      "and.b32 %r8, %r1, 31;\nmul.wide.u32 %rd3, %r8, 16;\nadd.s64 %rd3, %rd3, %rd1;\n"
      "shl.b32 %r21, %r8, 4;\nadd.s32 %r21, %r21, %r20;\n"
      "cp.async.ca.shared.global [%r21], [%rd3], 16;\n";
  const std::string track = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r23];\n";
  const std::string wait =
      "W:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r23], 0;\n@!%p2 bra W;\n";
  const std::string read = "ld.shared.u32 %r6, [%r21+4];\n";
  CHECK(!races(set_up + track + wait + read));
  CHECK(races(set_up + track + read));
  CHECK(!races(set_up + track + wait + read + kBarrier + "st.shared.u32 [%r3], %r1;\n"));
  // The first warp's copies are told of, the second one waits itself: the first knows nothing.
  const std::string half = "mbarrier.arrive.shared.b64 %rd5, [%r23];\n";
  CHECK(races(set_up + "setp.lt.u32 %p3, %r1, 32;\n@%p3 bra FIRST;\n" + half +
              "cp.async.wait_all;\nbra END;\nFIRST:\n" + track + wait + read + "END:\n"));
}

TEST_CASE("check async: bytes that a copy fills with zeros are written, its source is not read") {
  const std::string ignored = kHead +
                              "setp.eq.u32 %p1, %r1, %r1;\n"
                              "cp.async.ca.shared.global [%r21], [%rd3], 16, %p1;\n";
  CHECK(races(ignored + kReadOwn));
  CHECK(!races(ignored + "st.global.u32 [%rd3], %r1;\n"));
  const std::string half = kHead +
                           "mov.u32 %r8, 8;\n"
                           "cp.async.ca.shared.global [%r21], [%rd3], 16, %r8;\n";
  CHECK(races(half + "ld.shared.u32 %r6, [%r21+12];\n"));
  CHECK(races(half + "st.global.u32 [%rd3+4], %r1;\n"));
  CHECK(!races(half + "st.global.u32 [%rd3+8], %r1;\n"));
}

TEST_CASE("check async: an mbarrier tells who waits for it of the copies that it tracks") {
  const std::string set_up =
      "setp.eq.u32 %p1, %r1, 0;\nadd.s32 %r23, %r20, 4096;\n"
      "@%p1 mbarrier.init.shared.b64 [%r23], 64;\n" +
      kBarrier;
  const std::string track = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r23];\n";
  const std::string wait =
      "W:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r23], 0;\n@!%p2 bra W;\n";
  CHECK(!races(set_up + kCopy + track + wait + kReadOther));
  CHECK(!races(set_up + kCopy + track + wait + kReadOwn));
  CHECK(races(set_up + kCopy + track + kReadOwn));
  CHECK(races(set_up + kCopy + track + kBarrier + kReadOther));
  CHECK(races(set_up + track + kCopy + wait + kReadOwn));
  // Without a wait at the barrier the thread itself is not told; its own wait does it.
  CHECK(!races(set_up + kCopy + track + "cp.async.wait_all;\n" + kReadOwn));
  CHECK(races(set_up + kCopy + track + "cp.async.wait_all;\n" + kReadOther));
  // The barrier says nothing of other writes before a copy's arrival.
  CHECK(races(set_up + "add.s32 %r24, %r21, 2048;\nst.shared.u32 [%r24], %r1;\n" + kCopy + track +
              wait + "ld.shared.u32 %r6, [%r22+2048];\n"));
  // An older phase orders nothing of this one: its other arrivals are missing.
  const std::string wait_for_older =
      "mbarrier.test_wait.parity.shared.b64 %p2, [%r23], 1;\n@!%p2 bra END;\n";
  CHECK(races(set_up + kCopy + track + wait_for_older + kReadOwn + "END:\n", {1, 32, false}));
  // One warp waits and tells the others.
  CHECK(!races(set_up + kCopy + track + "setp.ge.u32 %p3, %r1, 32;\n@%p3 bra SKIP;\n" + wait +
               "SKIP:\n" + kBarrier + kReadOther));
  CHECK(races(set_up + kCopy + track + "setp.ge.u32 %p3, %r1, 32;\n@%p3 bra SKIP;\n" + wait +
              "SKIP:\n" + kReadOwn));
}

TEST_CASE("check async: mbarriers order who arrives before who waits, phase by phase") {
  const std::string set_up = kHead +
                             "setp.eq.u32 %p1, %r1, 0;\nadd.s32 %r23, %r20, 4096;\n"
                             "@%p1 mbarrier.init.shared.b64 [%r23], 64;\n" +
                             kBarrier;
  const std::string write = "st.shared.u32 [%r21+8], %r1;\n";
  const std::string arrive = "mbarrier.arrive.shared.b64 %rd5, [%r23];\n";
  const std::string wait = "W:\nmbarrier.try_wait.shared.b64 %p2, [%r23], %rd5;\n@!%p2 bra W;\n";
  CHECK(!races(set_up + write + arrive + wait + kReadOther));
  CHECK(races(set_up + arrive + write + wait + kReadOther));
  CHECK(races(set_up + write + arrive + kReadOther));
  const std::string relaxed = "mbarrier.arrive.relaxed.cta.shared.b64 %rd5, [%r23];\n";
  const std::string wait_relaxed =
      "W:\nmbarrier.try_wait.relaxed.cta.shared.b64 %p2, [%r23], %rd5;\n@!%p2 bra W;\n";
  const std::string fence = "fence.acq_rel.cta;\n";
  CHECK(races(set_up + write + relaxed + wait + kReadOther));
  CHECK(races(set_up + write + arrive + wait_relaxed + kReadOther));
  CHECK(!races(set_up + write + fence + relaxed + wait_relaxed + fence + kReadOther));
  // A failed test orders nothing.
  CHECK(races(set_up + write + arrive + "mbarrier.test_wait.shared.b64 %p2, [%r23], %rd5;\n" +
              kReadOther));
}

TEST_CASE("check async: a copy's target counts as written when somebody waited for it") {
  const auto finds = [](const std::string& body) {
    return !run(body, {}, {true, false, false}).empty();
  };
  CHECK(finds(kCopy + kReadOwn));
  CHECK(!finds(kCopy + "cp.async.wait_all;\n" + kReadOwn));
  CHECK(finds(kCopy + "cp.async.wait_all;\nld.shared.u32 %r6, [%r21+2048];\n"));
  CHECK(!finds(kHead + "st.shared.u32 [%r21], %r1;\n" + kCopy + kReadOwn));
}

TEST_CASE("check async: a finding names the copy, its thread and what to do") {
  const auto findings = run(kCopy + kCommit + kReadOwn);
  REQUIRE(findings.size() == 1);
  const Finding& finding = findings[0];
  CHECK(finding.what == "read");
  REQUIRE(finding.other);
  CHECK(finding.other->what == "asynchronous write");
  CHECK(finding.other->opcode == "cp.async.ca.shared.global");
  CHECK(finding.other->thread == finding.fault.thread);
  CHECK(finding.count == 64);
  CHECK(finding.hint.find("cp.async.wait_group") != std::string::npos);
  const auto source = run(kCopy + "st.global.u32 [%rd3+4], %r1;\n");
  REQUIRE(source.size() == 1);
  CHECK(source[0].other->what == "asynchronous read");
  CHECK(source[0].space == "global memory");
}
