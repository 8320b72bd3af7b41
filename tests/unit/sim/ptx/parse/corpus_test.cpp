// Everything that NVRTC made of the probe kernels parses, and no opcode is unknown.
#include "sim/ptx/isa.h"
#include "unit/sim/ptx/ptx_fixture.h"

#include <set>

using namespace kernwright::sim::ptx;
using namespace kernwright::sim::ptx::testing;

TEST_CASE("corpus: every text parses, every instruction has a row") {
  const std::vector<std::filesystem::path> files = corpus();
  REQUIRE(files.size() >= 100);
  std::size_t instructions = 0;
  std::set<std::string> opcodes;
  for (const std::filesystem::path& path : files) {
    CAPTURE(path.filename().string());
    std::unique_ptr<Module> module;
    REQUIRE_NOTHROW(module = parse(read_file(path)));
    CHECK_FALSE(module->functions.empty());
    for (const Function& function : module->functions) {
      instructions += function.body.size();
      for (const auto& instruction : function.body) {
        REQUIRE(instruction.row != nullptr);
        CHECK(instruction.row->stem == instruction.stem);
        opcodes.emplace(instruction.opcode);
      }
    }
  }
  CHECK(instructions > 20000);
  CHECK(opcodes.size() > 450);
}

TEST_CASE("corpus: every source has its PTX, but for libdevice's, which is large") {
  std::set<std::string> stems;
  const std::vector<std::filesystem::path> files = corpus();
  for (const std::filesystem::path& path : files) {
    const std::string name = path.filename().string();
    stems.insert(name.substr(0, name.find('.')));
  }
  std::size_t sources = 0, kernels = 0;
  const auto folder = tests_folder() / "sim" / "sources";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    CAPTURE(entry.path().filename().string());
    const std::string stem = entry.path().stem().string();
    CHECK((stems.contains(stem) || stem == "probe_libdevice"));
    ++sources;
    std::stringstream text(read_file(entry.path()));
    for (std::string line; std::getline(text, line);) {
      kernels += contains(line, "__global__ ") && !contains(line, "#define") ? 1 : 0;
      kernels += line.starts_with("KERNEL(") ? 1 : 0;
    }
  }
  CHECK(sources >= 60);
  CHECK(kernels >= 150);
}

TEST_CASE("corpus: lines of the .cu text reach the instructions") {
  const auto path = ptx_folder() / "saxpy.nvrtc13.0.80.ptx";
  const std::unique_ptr<Module> module = parse(read_file(path));
  bool found = false;
  for (const auto& instruction : module->functions.at(0).body) {
    if (instruction.stem != "fma") continue;
    found = true;
    CHECK(instruction.source.line == 4);
    CHECK(
        contains(module->files.at(static_cast<std::size_t>(instruction.source.file)), "saxpy.cu"));
  }
  CHECK(found);
}

TEST_CASE("corpus: inlined library code is attributed to the user's line") {
  const auto path = ptx_folder() / "cub_block.nvrtc13.0.80.ptx";
  const std::unique_ptr<Module> module = parse(read_file(path));
  std::size_t in_user_file = 0, all = 0;
  for (const Function& function : module->functions) {
    for (const auto& instruction : function.body) {
      if (instruction.source.line == 0) continue;
      ++all;
      const auto file = static_cast<std::size_t>(instruction.source.file);
      in_user_file += contains(module->files.at(file), "cub_block.cu") ? 1 : 0;
    }
  }
  CHECK(all > 100);
  CHECK(in_user_file == all);
}
