// The checks of stores with lanes far apart, in such a number that whole regions are tested.
#include "sim/checks.h"
#include "unit/sim/device/device_fixture.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr unsigned kWarps = 4, kRounds = 20, kBlocks = 6;

/// Thread t of block b stores kRounds words from %rd2 on, in row t % 32 of a matrix with `stride`
/// bytes a row. %rd3 = those of the warp beside it, %rd4 = of the block before it, for the first
/// one of the last. %rd5 = where the rows end, %rd6 = in row 0, thread t % 32's of the last 32
/// words. %p2: lane 5, %p3: not warp 0 of block 0, %p4: not block 0.
std::string text_of(unsigned stride, const std::string& before, const std::string& after) {
  const auto number = [](unsigned n) { return std::to_string(n); };
  const auto words_of = [&](const std::string& block, const std::string& warp) {
    return "mad.lo.u32 %r6, " + block + ", " + number(kWarps) + ", " + warp +
           "; mul.lo.u32 %r6, %r6, " + number(4 * kRounds) + "; mad.lo.u32 %r6, %r4, " +
           number(stride) + ", %r6; cvt.u64.u32 %rd7, %r6; add.u64 %rd7, %rd7, %rd1;\n";
  };
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
         ".reg .pred %p<6>; .reg .b32 %r<12>; .reg .b64 %rd<9>; .shared .align 4 .b8 s[16];\n"
         "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
         "mov.u32 %r10, %nctaid.x; and.b32 %r4, %r1, 31; shr.u32 %r5, %r1, 5;\n"
         "xor.b32 %r7, %r5, 1; add.u32 %r9, %r2, %r10; sub.u32 %r9, %r9, 1; rem.u32 %r9, %r9, "
         "%r10;\n"
         "mov.u32 %r11, s; mad.lo.u32 %r11, %r5, 4, %r11; setp.ne.u32 %p4, %r2, 0;\n" +
         words_of("%r2", "%r7") + "mov.u64 %rd3, %rd7;\n" + words_of("%r9", "%r5") +
         "mov.u64 %rd4, %rd7;\n" + words_of("%r2", "%r5") +
         "mov.u64 %rd2, %rd7; add.u64 %rd5, %rd1, " + number(31 * stride + 4096) +
         ";\nmul.wide.u32 %rd6, %r4, 4; add.u64 %rd6, %rd6, %rd1; add.u64 %rd6, %rd6, " +
         number(4 * (kBlocks * kWarps * kRounds - 32)) +
         ";\nsetp.eq.u32 %p2, %r4, 5; or.b32 %r9, %r2, %r5; setp.ne.u32 %p3, %r9, 0;\n" + before +
         "mov.u32 %r3, 0;\nLOOP:\n"
         "mad.lo.u32 %r8, %r2, 1000, %r1; add.u32 %r8, %r8, 1; st.global.u32 [%rd7], %r8;\n"
         "add.u64 %rd7, %rd7, 4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, " +
         number(kRounds) + ";\n@%p1 bra LOOP;\n" + after + "ret;\n}\n";
}

struct Found {
  unsigned races = 0, unwritten = 0;
};

/// Twice in fresh memory: the second launch starts with the shadows of the first.
Found found(unsigned stride, const std::string& before, const std::string& after,
            unsigned blocks = kBlocks) {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const CheckScope scope({true, true, false});
  CUmodule module = nullptr;
  REQUIRE(api.cuModuleLoadData(&module, text_of(stride, before, after).c_str()) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  REQUIRE(api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
  CUdeviceptr buffer = 0;
  REQUIRE(api.cuMemAlloc(&buffer, 31 * stride + 8192) == CUDA_SUCCESS);
  void* parameters[] = {&buffer};
  for (int launch = 0; launch < 2; ++launch) {
    CHECK(api.cuLaunchKernel(function, blocks, 1, 1, 32 * kWarps, 1, 1, 0, nullptr, parameters,
                             nullptr) == CUDA_SUCCESS);
  }
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api.cuMemFree(buffer) == CUDA_SUCCESS);
  CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
  Found all;
  for (const Finding& finding : scope.findings()) {
    ++(finding.fault.kind == FaultKind::race ? all.races : all.unwritten);
  }
  return all;
}

/// With blocks on several host threads, on one, and with rows in one region of the shadow memory,
/// in a few, and in one each.
template <typename F>
void each_way(F f) {
  for (const unsigned stride : {2048u, 4096u, 4224u, 65536u, 66560u}) {
    for (const bool alone : {false, true}) {
      const std::string what = alone ? ", alone" : "";
      INFO("stride ", stride, what);
      set_launch_seed(alone ? std::optional<std::uint64_t>(stride) : std::nullopt);
      f(stride);
    }
  }
  set_launch_seed(std::nullopt);
}

const std::string kBarrier = "bar.sync 0;\n";
// Of the words stored last.
const std::string kReadOwn = "ld.global.u32 %r9, [%rd2+76];\n";
const std::string kReadWarp = "ld.global.u32 %r9, [%rd3+76];\n";
const std::string kReadBlock = "ld.global.u32 %r9, [%rd4+76];\n";
const std::string kWriteWarp = "st.global.u32 [%rd3+76], %r1;\n";
const std::string kWriteBlock = "st.global.u32 [%rd4+76], %r1;\n";
const std::string kWriteLane = "@%p2 st.global.u32 [%rd4+76], %r1;\n";
const std::string kCopyLane =
    "@%p2 cp.async.ca.shared.global [%r11], [%rd4+76], 4;\ncp.async.wait_all;\n";

}  // namespace

TEST_CASE("check scatter: stores of lanes far apart race with nobody else's, and hide nothing") {
  each_way([](unsigned stride) {
    CHECK(found(stride, "", "").races == 0);
    CHECK(found(stride, "", kReadOwn).races == 0);
    CHECK(found(stride, "", kWriteWarp).races != 0);
    CHECK(found(stride, "", kBarrier + kWriteWarp).races == 0);
    CHECK(found(stride, "", kReadWarp).races != 0);
    CHECK(found(stride, "", kBarrier + kReadWarp).races == 0);
    CHECK(found(stride, "", kBarrier + kReadBlock).races != 0);
    CHECK(found(stride, "", kBarrier + kWriteBlock).races != 0);
    CHECK(found(stride, "", kBarrier + kWriteLane).races != 0);
    CHECK(found(stride, "", kBarrier + kReadBlock, 1).races == 0);
  });
}

TEST_CASE("check scatter: what others touched before is seen") {
  each_way([](unsigned stride) {
    CHECK(found(stride, kReadWarp, "").races != 0);
    CHECK(found(stride, kReadWarp + kBarrier, "").races == 0);
    CHECK(found(stride, kReadBlock + kBarrier, "").races != 0);
    CHECK(found(stride, kWriteBlock + kBarrier, "").races != 0);
    CHECK(found(stride, kWriteWarp + kBarrier, "").races == 0);
    CHECK(found(stride, kWriteLane + kBarrier, "").races != 0);
    CHECK(found(stride, kCopyLane + kBarrier, "").races != 0);
    CHECK(found(stride, kCopyLane + kBarrier, "", 1).races == 0);
    for (const std::string& read : {kReadBlock, kCopyLane}) {
      CHECK(found(stride, "", "@%p4 bra NEXT;\n" + read + "NEXT:\n").races != 0);
    }
  });
}

TEST_CASE("check scatter: warps that touch many words as one are seen") {
  each_way([](unsigned stride) {
    for (const std::string access :
         {"ld.global.u32 %r9, [%rd6];\n", "ld.global.u8 %r9, [%rd6];\n",
          "st.global.u32 [%rd6], %r1;\n", "@%p2 st.global.u32 [%rd6], %r1;\n"}) {
      INFO(access);
      const std::string one_warp = "@%p3 bra NEXT;\n" + access + "NEXT:\n";
      CHECK(found(stride, one_warp, "").races != 0);
      CHECK(found(stride, "", one_warp).races != 0);
      CHECK(found(stride, one_warp + kBarrier, "", 1).races == 0);
      CHECK(found(stride, "", kBarrier + one_warp, 1).races == 0);
    }
  });
}

TEST_CASE("check scatter: what was stored counts as written, and nothing else") {
  each_way([](unsigned stride) {
    CHECK(found(stride, "", kReadOwn).unwritten == 0);
    CHECK(found(stride, "", "ld.global.u32 %r9, [%rd5];\n").unwritten != 0);
    CHECK(found(stride, kReadOwn, "").unwritten != 0);
  });
}
