// Lanes that wait for each other at *.sync instructions.
#include "unit/sim/exec/control_support.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

TEST_CASE("*.sync waits for named lanes and reports those that never come") {
  const std::string both = R"(
    setp.lt.u32 %p0, %r1, 16;
    mov.u64 %d1, 1;
    @%p0 bra LOW;
    mov.u64 %d1, 2;
  LOW:
    bar.warp.sync 0xffffffff;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(both), {.block = 32},
              [](std::uint64_t t) { return t < 16 ? std::uint64_t{1} : std::uint64_t{2}; });
  const std::string never = R"(
    setp.lt.u32 %p0, %r1, 16;
    @%p0 bra LOW;
    bar.warp.sync 0xffffffff;
    ret;
  LOW:
    bar.warp.sync 0xffff;
    bar.sync 0;
    ret;)";
  const Outcome outcome = run(kernel(never), {.block = 32});
  REQUIRE(outcome.fault);
  CHECK(outcome.fault->kind == FaultKind::sync);
  CHECK(outcome.fault->message.find("never arrive") != std::string::npos);
}

TEST_CASE("bar.warp.sync: lanes meet from several places where they name the same lanes") {
  // Both sides write their half, meet, and read the other's.
  const std::string sides = R"(
    .shared .align 4 .b32 box[32];
    mov.u32 %r2, box;
    shl.b32 %r3, %r1, 2;
    add.u32 %r3, %r2, %r3;
    xor.b32 %r4, %r1, 16;
    shl.b32 %r4, %r4, 2;
    add.u32 %r4, %r2, %r4;
    add.u32 %r5, %r1, 100;
    mov.u32 %r7, 0xffffffff;
    setp.lt.u32 %p0, %r1, 16;
    @%p0 bra LOW;
    st.shared.u32 [%r3], %r5;
    bar.warp.sync %r7;
    ld.shared.u32 %r6, [%r4];
    bra OUT;
  LOW:
    st.shared.u32 [%r3], %r5;
    bar.warp.sync %r7;
    ld.shared.u32 %r6, [%r4];
    add.u32 %r6, %r6, 1000;
  OUT:
    cvt.u64.u32 %d1, %r6;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(sides), {.block = 32},
              [](std::uint64_t t) { return (t ^ 16) + 100 + (t < 16 ? 1000 : 0); });
}

TEST_CASE("bar.warp.sync: pairs of lanes meet on their own, wherever they are") {
  // Lane t and lane t + 16 name each other; the lower ones come to one of two other places.
  std::string body = R"(
    and.b32 %r2, %r1, 15;
    mov.u32 %r3, 0x10001;
    shl.b32 %r3, %r3, %r2;
    setp.lt.u32 %p0, %r1, 16;
    @%p0 bra LOW;
    bar.warp.sync %r3;
    mov.u64 %d1, 2;
    bra OUT;
  LOW:
    setp.lt.u32 %p1, %r1, 5;
    @%p1 bra FEW;
    bar.warp.sync %r3;
    mov.u64 %d1, 1;
    bra OUT;
  FEW:
    bar.warp.sync %r3;
    mov.u64 %d1, 3;
  OUT:
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.block = 32}, [](std::uint64_t t) {
    return t >= 16 ? std::uint64_t{2} : t < 5 ? std::uint64_t{3} : std::uint64_t{1};
  });
}

TEST_CASE("bar.warp.sync: other masks, and other instructions, are no meeting") {
  const auto halves = [](const std::string& low, const std::string& high) {
    return run(kernel("setp.lt.u32 %p0, %r1, 16;\n@%p0 bra LOW;\n" + high + "\nret;\nLOW:\n" + low +
                      "\nret;"),
               {.block = 32});
  };
  CHECK_FALSE(halves("bar.warp.sync 0xffffffff;", "bar.warp.sync 0xffffffff;").fault);
  CHECK_FALSE(halves("bar.warp.sync 0xffff;", "bar.warp.sync 0xffff0000;").fault);
  CHECK_FALSE(halves("", "bar.warp.sync 0xffffffff;").fault);  // who left is not waited for
  for (const char* other : {"bar.warp.sync 0x1ffff;\nbar.sync 0;",
                            "vote.sync.any.pred %p1, %p0, 0xffffffff;\nbar.sync 0;"}) {
    const Outcome outcome = halves(other, "bar.warp.sync 0xffffffff;");
    REQUIRE(outcome.fault);
    CHECK(outcome.fault->kind == FaultKind::sync);
    CHECK(outcome.fault->message.find("never arrive there") != std::string::npos);
  }
}
