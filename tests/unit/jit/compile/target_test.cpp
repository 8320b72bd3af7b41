// The architecture for each device.
#include "jit/compile/target.h"
#include "jit/source/include_closure.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

const std::vector<int> kKnown{75, 80, 86, 87, 89, 90, 100, 110, 120};

Target for_gpu(int cc, bool specific = false, std::string arch = {}) {
  return target_for_device({.compute_capability = cc,
                            .is_simulated = false,
                            .wants_arch_specific = specific,
                            .arch = std::move(arch)},
                           kKnown, "13.0");
}

}  // namespace

TEST_CASE("target: known GPUs get a cubin, others PTX of the next architecture below") {
  const struct {
    int cc;
    CodeKind kind;
    const char* arch;
  } rows[] = {
      {75, CodeKind::cubin, "sm_75"},      {80, CodeKind::cubin, "sm_80"},
      {86, CodeKind::cubin, "sm_86"},      {87, CodeKind::cubin, "sm_87"},
      {88, CodeKind::ptx, "compute_87"},   {89, CodeKind::cubin, "sm_89"},
      {90, CodeKind::cubin, "sm_90"},      {100, CodeKind::cubin, "sm_100"},
      {103, CodeKind::ptx, "compute_100"}, {110, CodeKind::cubin, "sm_110"},
      {120, CodeKind::cubin, "sm_120"},    {121, CodeKind::ptx, "compute_120"},
      {130, CodeKind::ptx, "compute_120"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.cc);
    const Target target = for_gpu(row.cc);
    CHECK(target.kind == row.kind);
    CHECK(target.nvrtc_arch == row.arch);
    CHECK(target.label == row.arch);
  }
}

TEST_CASE("target: a GPU older than NVRTC says what to install") {
  const auto error = thrown_by<InvalidArgument>([] { for_gpu(70); });
  CHECK(contains(error.what(), "7.0"));
  CHECK(contains(error.what(), "nvidia-cuda-nvrtc-cu12"));
}

TEST_CASE("target: architecture-specific features only when the source asks") {
  CHECK(for_gpu(90, true).label == "sm_90a");
  CHECK(for_gpu(100, true).label == "sm_100a");
  CHECK(for_gpu(89, true).label == "sm_89");
  CHECK(for_gpu(121, true).label == "compute_120");
  CHECK(asks_for_arch_specific("asm(\"wgmma.mma_async.sync\");"));
  CHECK(asks_for_arch_specific("asm(\"tcgen05.mma\");"));
  CHECK_FALSE(asks_for_arch_specific("__global__ void k() {}"));
}

TEST_CASE("target: the simulated device gets PTX and a cubin for the counts") {
  const Target target = target_for_device({.is_simulated = true, .arch = ""}, kKnown, "13.0");
  CHECK(target.kind == CodeKind::ptx);
  CHECK(target.nvrtc_arch == "sm_80");
  CHECK(target.label == "compute_80");
  const Target newer = target_for_device(
      {.compute_capability = 90, .is_simulated = true, .arch = ""}, kKnown, "13.0");
  CHECK(newer.label == "compute_90");
  const Target specific = target_for_device(
      {.compute_capability = 90, .is_simulated = true, .wants_arch_specific = true, .arch = ""},
      kKnown, "13.0");
  CHECK(specific.kind == CodeKind::ptx);
  CHECK(specific.nvrtc_arch == "sm_90a");
  CHECK(specific.label == "compute_90a");
  const Target asked = target_for_device({.is_simulated = true, .arch = "sm_90a"}, kKnown, "13.0");
  CHECK(asked.kind == CodeKind::ptx);
  CHECK(asked.label == "compute_90a");
}

TEST_CASE("target: the option wins over the device") {
  CHECK(for_gpu(90, false, "sm_80").label == "sm_80");
  CHECK(for_gpu(90, false, "sm_90a").label == "sm_90a");
  CHECK(for_gpu(90, false, "compute_80").kind == CodeKind::ptx);
}

TEST_CASE("target: code without a device") {
  CHECK(target_for_kind(CodeKind::ptx, "", kKnown, "13.0").label == "compute_80");
  CHECK(target_for_kind(CodeKind::cubin, "compute_90", kKnown, "13.0").label == "sm_90");
  CHECK(target_for_kind(CodeKind::ptx, "sm_100f", kKnown, "13.0").label == "compute_100f");
  CHECK_THROWS_AS(target_for_kind(CodeKind::cubin, "", kKnown, "13.0"), InvalidArgument);
}

TEST_CASE("target: unknown and malformed architectures list the known ones") {
  const auto unknown = thrown_by<InvalidArgument>(
      [] { target_for_kind(CodeKind::cubin, "sm_999", kKnown, "13.0"); });
  CHECK(contains(unknown.what(), "sm_999"));
  CHECK(contains(unknown.what(), "sm_75, sm_80"));
  CHECK(contains(unknown.what(), "13.0"));
  for (const char* bad : {"", "sm_", "sm90", "sm_9", "sm_90b", "sm_90aa", "compute_", "gfx90a",
                          "sm_-1", "sm_99999", "sm_90 ", "SM_90"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_arch(bad), InvalidArgument);
  }
  CHECK_THROWS_AS(target_for_kind(CodeKind::cubin, "sm_80a", kKnown, "13.0"), InvalidArgument);
  CHECK_THROWS_AS(target_for_kind(CodeKind::cubin, "sm_90f", kKnown, "13.0"), InvalidArgument);
}

TEST_CASE("target: which code a device runs") {
  const auto runs = [](std::string_view arch, CodeKind kind, int device) {
    return can_run(parse_arch(arch), kind, device);
  };
  CHECK(runs("compute_80", CodeKind::ptx, 80));
  CHECK(runs("compute_80", CodeKind::ptx, 90));
  CHECK(!runs("compute_90", CodeKind::ptx, 80));
  CHECK(runs("compute_90a", CodeKind::ptx, 90));
  CHECK(!runs("compute_90a", CodeKind::ptx, 100));
  CHECK(runs("sm_80", CodeKind::cubin, 86));
  CHECK(!runs("sm_80", CodeKind::cubin, 90));
  CHECK(!runs("sm_90", CodeKind::cubin, 80));
  CHECK(runs("sm_100f", CodeKind::cubin, 103));
  CHECK(!runs("compute_100f", CodeKind::ptx, 120));
}

TEST_CASE("target: NVRTC compiles for every architecture that it lists, and its 'a' form") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    REQUIRE_FALSE(nvrtc.archs.empty());
    for (const int arch : {nvrtc.archs.front(), 90, nvrtc.archs.back()}) {
      const bool specific = arch >= 90;
      const Target target = target_for_device({.compute_capability = arch,
                                               .is_simulated = false,
                                               .wants_arch_specific = specific,
                                               .arch = ""},
                                              nvrtc.archs, nvrtc.version());
      auto request = request_for("__global__ void k() {}", {}, CodeKind::cubin);
      request.target = target;
      const ObjectCode code = Compiler(nvrtc).compile(request);
      CHECK(code.arch == target.label);
      CHECK(
          code.code.starts_with("\x7f"
                                "ELF"));
    }
  }
}
