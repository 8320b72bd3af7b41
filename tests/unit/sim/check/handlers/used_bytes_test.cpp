// Loads widened by a compiler: .pragma "used_bytes_mask" names the used bytes.
#include "unit/sim/check/check_kernel.h"

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

std::string used(const std::string& mask) { return ".pragma \"used_bytes_mask " + mask + "\";\n"; }

/// Each thread writes the first twelve bytes of its sixteen in shared memory, then loads them all.
std::string shared_body(const std::string& before_load) {
  return "shl.b32 %r6, %r1, 4;\nadd.s32 %r6, %r6, %r20;\nst.shared.v2.b32 [%r6], {1, 2};\n"
         "st.shared.b32 [%r6+8], 3;\n" +
         before_load +
         "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r6];\nadd.s32 %r10, %r10, %r12;\n"
         "add.s32 %r10, %r10, %r11;\nadd.s32 %r10, %r10, %r13;\n"
         "st.global.b32 [%rd2], %r10;\n";
}

/// Thread 0 loads sixteen bytes of `space` while thread 32 writes those from 12 on.
std::string race_body(const std::string& space, const std::string& before_load) {
  const std::string at = space == "shared" ? "%r20" : "%rd1";
  return "setp.eq.u32 %p1, %r1, 32;\nsetp.eq.u32 %p2, %r1, 0;\nmov.b32 %r9, 5;\n@%p1 st." + space +
         ".b32 [" + at + "+12], %r9;\n@!%p2 bra done;\n" + before_load + "ld." + space +
         ".v4.b32 {%r10, %r11, %r12, %r13}, [" + at + "];\ndone:\n";
}

constexpr CheckSet kInit{true, false, false};

}  // namespace

TEST_CASE("check used bytes: only what a load uses has to be written") {
  CHECK(run(shared_body(""), {}, kInit).size() == 1);
  for (const char* mask : {"4095", "0xfff", "15", "0x0f0", "0x123", "2048"}) {
    CAPTURE(mask);
    CHECK(run(shared_body(used(mask)), {}, kInit).empty());
    CHECK(run(shared_body(used(mask)), {1, 37}, kInit).empty());
  }
  for (const char* mask : {"65535", "4294967295", "0x1000", "0xf00f", "0x8000", "0"}) {
    CAPTURE(mask);
    CHECK(run(shared_body(used(mask)), {}, kInit).size() == 1);
    CHECK(run(shared_body(used(mask)), {1, 37}, kInit).size() == 1);
  }
  // It is the next instruction's alone, whatever is said in between.
  CHECK(run(shared_body(used("15") + ".pragma \"nounroll\";\n"), {}, kInit).empty());
  CHECK(run(shared_body(used("15") + "mov.b32 %r9, 1;\n"), {}, kInit).size() == 1);
}

TEST_CASE("check used bytes: another thread may write what a load does not use") {
  for (const char* space : {"shared", "global"}) {
    CAPTURE(space);
    CHECK(races(race_body(space, "")));
    CHECK(races(race_body(space, used("0xf000"))));
    CHECK(races(race_body(space, used("0x8001"))));
    CHECK_FALSE(races(race_body(space, used("0xfff"))));
    CHECK_FALSE(races(race_body(space, used("0x0f1"))));
  }
}

TEST_CASE("check used bytes: the mask is a number of 32 bits") {
  for (const char* mask : {"", "x", "1.5", "0x100000000", "-1"}) {
    CAPTURE(mask);
    CurrentDevice device;
    CUmodule module = nullptr;
    const std::string text = kernel(used(mask));
    CHECK(device.api.cuModuleLoadData(&module, text.c_str()) == CUDA_ERROR_INVALID_PTX);
  }
}
