// Loads with unused values, in part or in some lanes: the init check judges the used ones.
#include "unit/sim/check/check_kernel.h"

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

constexpr CheckSet kInitAlone{true, false, false};

/// Lanes with a written word in shared memory: the even ones. %p1 holds in these, %p2 in the
/// others, %p3 nowhere.
const std::string kEvenWritten =
    "and.b32 %r6, %r1, 1;\nsetp.eq.u32 %p1, %r6, 0;\nsetp.ne.u32 %p2, %r6, 0;\n"
    "setp.gt.u32 %p3, %r1, 9999;\nmov.u32 %r9, 7;\nmov.u32 %r11, 0;\n@%p1 st.shared.u32 [%r3], "
    "%r1;\n";
const std::string kLoad = "ld.shared.u32 %r10, [%r3];\n";
const std::string kKeep = "st.global.u32 [%rd2], %r11;\n";

std::vector<Finding> speculated(const std::string& body, unsigned block = 64) {
  return run(body, {1, block}, kInitAlone);
}

/// A whole warp, half of one, and an incomplete warp.
bool finds_unwritten(const std::string& body) {
  const bool whole = !speculated(body).empty();
  CHECK(!speculated(body, 37).empty() == whole);
  const std::string half = "setp.gt.u32 %p8, %r1, 17;\n@%p8 bra PAST;\n" + body + "PAST:\n";
  CHECK(!speculated(half).empty() == whole);
  return whole;
}

}  // namespace

TEST_CASE("check speculated: lanes that a selp drops need not have been written") {
  const std::string start = kEvenWritten + kLoad;
  CHECK_FALSE(finds_unwritten(start + "selp.b32 %r11, %r10, %r9, %p1;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(start + "selp.b32 %r11, %r9, %r10, %p2;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(start + "selp.b32 %r11, %r10, %r9, %p3;\n" + kKeep));
  CHECK(finds_unwritten(start + "selp.b32 %r11, %r10, %r9, %p2;\n" + kKeep));
  CHECK(finds_unwritten(start + "selp.b32 %r11, %r9, %r10, %p1;\n" + kKeep));
  CHECK(finds_unwritten(start + "selp.b32 %r11, %r9, %r10, %p3;\n" + kKeep));
  CHECK(finds_unwritten(start + "selp.b32 %r11, %r10, %r10, %p1;\n" + kKeep));
}

TEST_CASE("check speculated: the predicate may be known after the load") {
  const std::string late = "setp.eq.u32 %p4, %r6, 0;\n";
  CHECK_FALSE(
      finds_unwritten(kEvenWritten + kLoad + late + "selp.b32 %r11, %r10, %r9, %p4;\n" + kKeep));
  CHECK(finds_unwritten(kEvenWritten + kLoad + late + "selp.b32 %r11, %r9, %r10, %p4;\n" + kKeep));
}

TEST_CASE("check speculated: each use counts for itself") {
  const std::string picks = kEvenWritten + kLoad + "selp.b32 %r11, %r10, %r9, %p1;\n";
  CHECK_FALSE(finds_unwritten(
      picks + "selp.b32 %r12, %r9, %r10, %p2;\nadd.s32 %r11, %r11, %r12;\n" + kKeep));
  CHECK(finds_unwritten(picks + "selp.b32 %r12, %r10, %r9, %p2;\nadd.s32 %r11, %r11, %r12;\n" +
                        kKeep));
  CHECK(finds_unwritten(picks + "add.s32 %r11, %r11, %r10;\n" + kKeep));
  CHECK(finds_unwritten(picks + "st.global.u32 [%rd2], %r10;\n"));
  CHECK(finds_unwritten(picks + "setp.gt.s32 %p5, %r10, 3;\n@%p5 st.global.u32 [%rd2], %r11;\n"));
  CHECK(finds_unwritten(picks + "@%p1 bra LATER;\nst.global.u32 [%rd2], %r10;\nLATER:\n"));
  CHECK_FALSE(finds_unwritten(picks + "@%p2 bra LATER;\nst.global.u32 [%rd2], %r10;\nLATER:\n"));
}

TEST_CASE("check speculated: guarded instructions use a value where their guard holds") {
  const std::string start = kEvenWritten + kLoad;
  CHECK_FALSE(finds_unwritten(start + "@%p1 mov.u32 %r11, %r10;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(start + "@!%p2 st.global.u32 [%rd2], %r10;\n"));
  CHECK(finds_unwritten(start + "@%p2 mov.u32 %r11, %r10;\n" + kKeep));
  CHECK(finds_unwritten(start + "@!%p1 st.global.u32 [%rd2], %r10;\n"));
  // A guarded load and uses with the same guard.
  CHECK_FALSE(
      finds_unwritten(kEvenWritten + "@%p1 " + kLoad + "@%p1 mov.u32 %r11, %r10;\n" + kKeep));
  CHECK(finds_unwritten(kEvenWritten + "@%p2 " + kLoad + "@%p2 mov.u32 %r11, %r10;\n" + kKeep));
}

TEST_CASE("check speculated: arithmetic on the way passes the question on") {
  const std::string start =
      kEvenWritten + kLoad + "add.s32 %r12, %r10, 5;\nshl.b32 %r13, %r12, 2;\n";
  CHECK_FALSE(finds_unwritten(start + "selp.b32 %r11, %r13, %r9, %p1;\n" + kKeep));
  CHECK(finds_unwritten(start + "selp.b32 %r11, %r13, %r9, %p2;\n" + kKeep));
  CHECK(finds_unwritten(start + "selp.b32 %r11, %r13, %r9, %p1;\nadd.s32 %r11, %r11, %r12;\n" +
                        kKeep));
  CHECK(finds_unwritten(
      start + "and.b32 %r14, %r13, 252;\nadd.u32 %r14, %r3, %r14;\nld.shared.u32 %r15, [%r14];\n" +
      kKeep));
}

TEST_CASE("check speculated: a loop's load is judged anew each time") {
  // The first turn drops a value and the second, after a store, keeps it, or the other way round.
  const auto loop = [](const std::string& keeps) {
    return kEvenWritten + "mov.u32 %r16, 0;\nAGAIN:\n" + kLoad + "setp.eq.u32 %p4, %r16, " + keeps +
           ";\nselp.b32 %r11, %r10, %r11, %p4;\nst.shared.u32 [%r3], %r1;\n"
           "add.s32 %r16, %r16, 1;\nsetp.lt.u32 %p5, %r16, 3;\n@%p5 bra AGAIN;\n" +
           kKeep;
  };
  CHECK_FALSE(finds_unwritten(loop("1")));
  CHECK_FALSE(finds_unwritten(loop("2")));
  CHECK(finds_unwritten(loop("0")));
}

TEST_CASE("check speculated: local and global memory") {
  const std::string local = ".local .align 4 .b8 l[16];\nmov.u64 %rd3, l;\n" + kEvenWritten +
                            "@%p1 st.local.u32 [%rd3], %r1;\nld.local.u32 %r10, [%rd3];\n";
  CHECK_FALSE(finds_unwritten(local + "selp.b32 %r11, %r10, %r9, %p1;\n" + kKeep));
  CHECK(finds_unwritten(local + "selp.b32 %r11, %r10, %r9, %p2;\n" + kKeep));
}

TEST_CASE("check speculated: elements and bytes that nobody uses need not have been written") {
  const std::string start =
      "shl.b32 %r6, %r1, 4;\nadd.s32 %r6, %r6, %r20;\nst.shared.v2.b32 [%r6], {1, 2};\n"
      "st.shared.b32 [%r6+8], 3;\nld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r6];\n";
  CHECK_FALSE(finds_unwritten(start + "add.s32 %r11, %r11, %r12;\n" + kKeep));
  CHECK(finds_unwritten(start + "add.s32 %r11, %r11, %r13;\n" + kKeep));
  const std::string half =
      "mov.u32 %r9, 5;\ncvt.u16.u32 %h1, %r9;\nst.shared.u16 [%r3], %h1;\n" + kLoad;
  CHECK_FALSE(
      finds_unwritten(half + "mov.b32 {%h2, %h3}, %r10;\ncvt.u32.u16 %r11, %h2;\n" + kKeep));
  CHECK(finds_unwritten(half + "mov.b32 {%h2, %h3}, %r10;\ncvt.u32.u16 %r11, %h3;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(half + "and.b32 %r11, %r10, 65535;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(half + "and.b32 %r11, 255, %r10;\n" + kKeep));
  CHECK(finds_unwritten(half + "and.b32 %r11, %r10, 65536;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(half + "cvt.u32.u16 %r11, %r10;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(half + "cvt.u16.u32 %h2, %r10;\nst.global.u16 [%rd2], %h2;\n"));
  CHECK_FALSE(finds_unwritten(half + "st.global.u16 [%rd2], %r10;\n"));
  CHECK_FALSE(finds_unwritten(half + "shr.u32 %r11, %r10, 8;\n" + kKeep));
  CHECK(finds_unwritten(half + "shr.u32 %r11, %r10, 8;\nadd.s32 %r11, %r11, 1;\n" + kKeep));
  CHECK(finds_unwritten(half + "cvt.rn.f32.u32 %r11, %r10;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(half + "prmt.b32 %r11, %r10, 0, 0x4410;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(half + "prmt.b32 %r11, %r9, %r10, 0x5410;\n" + kKeep));
  CHECK_FALSE(finds_unwritten(half + "prmt.b32 %r11, %r10, 0, 0x4420;\n" + kKeep));
  CHECK(finds_unwritten(half + "prmt.b32 %r11, %r10, 0, 0x4422;\n" + kKeep));
  CHECK(finds_unwritten(half + "prmt.b32 %r11, %r10, 0, 0x4420;\nneg.s32 %r11, %r11;\n" + kKeep));
}

TEST_CASE("check speculated: what is not judged stays unwritten") {
  const std::string drops = kEvenWritten + kLoad + "selp.b32 %r11, %r10, %r9, %p1;\n";
  CHECK_FALSE(finds_unwritten(
      drops + "ld.shared.u32 %r14, [%r3];\nselp.b32 %r12, %r14, %r9, %p1;\n" + kKeep));
  CHECK(finds_unwritten(drops + "ld.shared.u32 %r12, [%r3];\nadd.s32 %r11, %r11, %r12;\n" + kKeep));
}

TEST_CASE("check speculated: a load that is dropped as a whole reads all the same") {
  CHECK(finds_unwritten(kEvenWritten + kLoad));
  CHECK(finds_unwritten(kEvenWritten +
                        "ld.volatile.shared.u32 %r10, [%r3];\nselp.b32 %r11, %r10, %r9, %p1;\n"));
}

TEST_CASE("check speculated: a finding is the load's, with its lane and bytes") {
  const auto findings =
      speculated(kEvenWritten + kLoad + "selp.b32 %r11, %r10, %r9, %p2;\n" + kKeep);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fault.kind == FaultKind::init);
  CHECK(findings[0].fault.opcode == "ld.shared.u32");
  CHECK(findings[0].fault.thread[0] == 1);
  CHECK(findings[0].fault.address == 4);
  CHECK(findings[0].fault.access_size == 4);
  CHECK(findings[0].count == 32);
}
