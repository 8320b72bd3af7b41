// The checks of reads of shared memory with words apart from each other, as of a tile written by
// rows and read by columns.
#include "sim/checks.h"
#include "unit/sim/device/device_fixture.h"

#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr unsigned kBlocks = 6, kWarps = 8;

/// Warp w of eight: %r5 = the address of its row's word of this lane, %r6 = of its column's word,
/// both in a tile of 32 rows of 132 bytes, where it has the rows from 4 w on. %p1: block 4, %p2:
/// lane 7, %p3: warp 3.
std::string text_of(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"
         ".reg .pred %p<6>; .reg .b32 %r<16>; .shared .align 16 .b8 tile[4224];\n"
         "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5; mov.u32 %r4, tile;\n"
         "mad.lo.u32 %r13, %r3, 528, %r4; mad.lo.u32 %r5, %r2, 4, %r13;\n"
         "mad.lo.u32 %r14, %r2, 132, %r4; mad.lo.u32 %r6, %r3, 16, %r14;\n"
         "mov.u32 %r7, %ctaid.x; setp.eq.u32 %p1, %r7, 4; setp.eq.u32 %p2, %r2, 7;\n"
         "setp.eq.u32 %p3, %r3, 3;\n" +
         body + "ret;\n}\n";
}

const std::string kSync = "bar.sync 0;\n";
const std::string kWriteRows =
    "st.shared.u32 [%r5], %r1; st.shared.u32 [%r5+132], %r1; st.shared.u32 [%r5+264], %r1;\n"
    "st.shared.u32 [%r5+396], %r1;\n";
const std::string kReadColumns =
    "ld.shared.u32 %r8, [%r6]; ld.shared.u32 %r9, [%r6+4]; ld.shared.u32 %r10, [%r6+8];\n"
    "ld.shared.u32 %r11, [%r6+12];\n";

/// Runs `body` ten times over.
std::string repeated(const std::string& body) {
  return "mov.u32 %r12, 0;\nAGAIN:\n" + body +
         "add.u32 %r12, %r12, 1; setp.lt.u32 %p4, %r12, 10;\n@%p4 bra AGAIN;\n";
}

struct Found {
  unsigned races = 0, unwritten = 0;
  std::set<unsigned> blocks, lanes;
};

Found found(const std::string& body) {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const CheckScope scope({true, true, false});
  CUmodule module = nullptr;
  REQUIRE(api.cuModuleLoadData(&module, text_of(body).c_str()) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  REQUIRE(api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
  for (int launch = 0; launch < 2; ++launch) {
    REQUIRE(api.cuLaunchKernel(function, kBlocks, 1, 1, 32 * kWarps, 1, 1, 0, nullptr, nullptr,
                               nullptr) == CUDA_SUCCESS);
  }
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
  Found all;
  for (const Finding& finding : scope.findings()) {
    ++(finding.fault.kind == FaultKind::race ? all.races : all.unwritten);
    all.blocks.insert(finding.fault.block[0]);
    all.lanes.insert(finding.fault.thread[0] % 32);
  }
  return all;
}

/// With blocks on several host threads, and on one, as long as a seed decides.
template <typename F>
void each_way(F f) {
  for (const bool seeded : {false, true}) {
    CAPTURE(seeded);
    set_launch_seed(seeded ? std::optional<std::uint64_t>(7) : std::nullopt);
    f();
  }
  set_launch_seed(std::nullopt);
}

void check_clean(const std::string& body) {
  INFO(body);
  const Found all = found(body);
  CHECK(all.races == 0);
  CHECK(all.unwritten == 0);
}

}  // namespace

TEST_CASE("check gather: columns of a tile are clean, however often they are read") {
  each_way([] {
    check_clean(kWriteRows + kSync + kReadColumns);
    check_clean(kWriteRows + kSync + repeated(kReadColumns));
    check_clean(kWriteRows + kSync + repeated(kReadColumns + kSync));
    check_clean(kWriteRows + kSync + repeated(kReadColumns + "bar.warp.sync -1;\n"));
    check_clean(repeated(kWriteRows + kSync + kReadColumns + kSync));
  });
}

TEST_CASE("check gather: a write that nothing keeps from the readers is a race") {
  each_way([] {
    const std::string first = kWriteRows + kSync + kReadColumns;
    CHECK(found(first + kWriteRows).races != 0);
    CHECK(found(repeated(kWriteRows + kSync + kReadColumns)).races != 0);
    CHECK(found(first + repeated(kSync + kReadColumns) + kWriteRows).races != 0);
    CHECK(found(first + "@%p2 st.shared.u32 [%r5], %r1;\n").races != 0);
    check_clean(first + kSync + kWriteRows);
  });
}

TEST_CASE("check gather: one block that differs from those before it is seen") {
  each_way([] {
    const Found race = found(kWriteRows + "@%p1 bra NEXT;\n" + kSync + "NEXT:\n" + kReadColumns);
    CHECK(race.races != 0);
    CHECK(race.blocks == std::set<unsigned>{4});
    const std::string all_rows = "@%p1 bra NEXT;\n" + kWriteRows + "bra ALL;\nNEXT:\n";
    const Found none = found(all_rows + "ALL:\n" + kSync + kReadColumns);
    CHECK(none.unwritten != 0);
    CHECK(none.blocks == std::set<unsigned>{4});
  });
}

TEST_CASE("check gather: the word that nobody wrote is named") {
  each_way([] {
    // Row 15, where warp 3 alone would have written.
    const std::string rows =
        "st.shared.u32 [%r5], %r1; st.shared.u32 [%r5+132], %r1; st.shared.u32 [%r5+264], %r1;\n"
        "@%p3 bra NEXT;\nst.shared.u32 [%r5+396], %r1;\nNEXT:\n";
    const Found all = found(rows + kSync + kReadColumns);
    CHECK(all.races == 0);
    CHECK(all.unwritten == 2);  // at the two lines of reads
    CHECK(all.lanes == std::set<unsigned>{15});
  });
}
