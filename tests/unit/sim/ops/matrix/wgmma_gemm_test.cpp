// A whole kernel as NVRTC compiles it: tensor copies, a ring of barriers, wgmma.
#include "unit/sim/device/hopper_runner.h"
#include "unit/sim/ptx/ptx_fixture.h"

#include <bit>
#include <fstream>
#include <random>
#include <sstream>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

std::string read_ptx(const std::string& version) {
  const std::string name = "hopper_gemm.nvrtc" + version + ".90a.ptx";
  std::ifstream file(ptx::testing::ptx_folder() / name);
  REQUIRE(file.is_open());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TensorMapParameters map_of(std::uint64_t address, std::uint64_t rows, std::uint64_t k) {
  TensorMapParameters map;
  map.address = address;
  map.rank = 2;
  map.type = 9;  // bfloat16
  map.extent = {k, rows};
  map.stride = {0, 2 * k};
  map.box = {64, 64};
  map.step = {1, 1};
  map.swizzle = 3;
  return map;
}

}  // namespace

TEST_CASE(
    "hopper gemm: equal to the host's sums, at once and with deferred copies, without findings") {
  constexpr std::size_t kM = 128, kN = 192, kK = 448;
  std::mt19937 random(3);
  std::vector<std::uint16_t> a(kM * kK), b(kN * kK);
  const auto fill = [&](std::vector<std::uint16_t>& values) {
    for (auto& value : values) {
      const float number = static_cast<float>(static_cast<int>(random() % 9) - 4);
      value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
    }
  };
  fill(a);
  fill(b);
  const auto number = [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  };
  std::vector<float> expected(kM * kN);
  for (std::size_t m = 0; m < kM; ++m)
    for (std::size_t n = 0; n < kN; ++n)
      for (std::size_t k = 0; k < kK; ++k)
        expected[m * kN + n] += number(a[m * kK + k]) * number(b[n * kK + k]);
  for (const std::string version : {"13.0", "13.5"}) {
    for (const std::uint64_t seed : {0, 1, 12345}) {
      HopperRunner runner;
      runner.seed = seed;
      runner.grid = {kN / 64, kM / 64, 1};
      runner.block = {160, 1, 1};
      runner.width = 2;
      runner.checks = {true, true, false};
      const auto map_a = encode_tensor_map(map_of(runner.upload(a), kM, kK));
      const auto map_b = encode_tensor_map(map_of(runner.upload(b), kN, kK));
      const std::uint64_t out = runner.upload(std::vector<float>(kM * kN, -1));
      std::vector<std::byte> packed(256 + 16);
      std::memcpy(packed.data(), map_a.data(), 128);
      std::memcpy(packed.data() + 128, map_b.data(), 128);
      std::memcpy(packed.data() + 256, &out, 8);
      const std::int32_t sizes[2] = {kN, kK};
      std::memcpy(packed.data() + 264, sizes, 8);
      const std::string text = read_ptx(version);
      require_fine(runner.launch(text, packed, "hopper_gemm"));
      CHECK(runner.download<float>(out, kM * kN) == expected);
      CHECK(runner.findings.empty());
      // Tiles are given back while they are still multiplied; in the end sums are read too early.
      const std::string wait = "wgmma.wait_group.sync.aligned 0;";
      REQUIRE(contains(text, wait));
      std::string early = text;
      for (std::size_t at = 0; (at = early.find(wait, at)) != std::string::npos; ++at)
        early.replace(at, wait.size(), "wgmma.wait_group.sync.aligned 1;");
      runner.checks.sync = true;
      const Fault report = runner.launch(early, packed, "hopper_gemm");
      std::size_t races = 0, touches = 0;
      for (const Finding& finding : runner.findings) {
        touches += finding.what == "register";
        if (finding.what == "register") continue;
        ++races;
        CHECK(finding.what == "asynchronous write");
        CHECK(finding.other->what == "asynchronous read");
      }
      CHECK(races != 0);
      // A tile that was overwritten by then stops the launch before the sums are read.
      CHECK((report.kind == FaultKind::sync || touches != 0));
    }
  }
}
