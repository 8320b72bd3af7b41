// The pool under allocations recorded from real programs on a GPU: the files of
// tests/unit/memory/traces, written by tests/record/record_allocations.py.
#include "memory/pool/pool_resource.h"
#include "unit/core/fake_driver.h"
#include "unit/memory/logged_resource.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace kernwright;
using testing::fresh_device;
using testing::LoggedResource;

namespace {

struct Peaks {
  std::uint64_t used = 0, reserved = 0;
  std::size_t allocations = 0;
};

/// Replays a file. Blocks left in use by the recording are given back at the end.
Peaks replay(const std::filesystem::path& file) {
  const auto upstream = std::make_shared<LoggedResource>(fresh_device());
  const auto pool = std::make_shared<PoolResource>(upstream);
  struct Block {
    CUdeviceptr address;
    std::size_t bytes;
    bool live;
  };
  std::vector<Block> blocks;
  Peaks peaks;
  std::uint64_t used = 0;
  std::ifstream in(file);
  std::string line;
  REQUIRE(std::getline(in, line));  // the program's description
  while (std::getline(in, line)) {
    CAPTURE(line);
    REQUIRE(line.size() > 1);
    const std::size_t number = std::stoull(line.substr(1));
    if (line[0] == '+') {
      blocks.push_back({pool->allocate(number, {}), number, true});
      used += number;
      peaks.used = std::max(peaks.used, used);
      continue;
    }
    REQUIRE(line[0] == '-');
    REQUIRE(number < blocks.size());
    Block& block = blocks[number];
    REQUIRE(block.live);
    block.live = false;
    used -= block.bytes;
    pool->deallocate(block.address, block.bytes, {});
  }
  for (const Block& block : blocks) {
    if (block.live) pool->deallocate(block.address, block.bytes, {});
  }
  peaks.reserved = upstream->peak;
  peaks.allocations = blocks.size();
  return peaks;
}

}  // namespace

TEST_CASE("pool: recorded programs of torch and CuPy stay within 1.5 times what they use") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(KW_TRACES_FOLDER)) {
    if (entry.path().extension() == ".trace") files.push_back(entry.path());
  }
  CHECK(files.size() == 4);
  for (const std::filesystem::path& file : files) {
    CAPTURE(file);
    const Peaks peaks = replay(file);
    CHECK(peaks.allocations > 200);
    const double ratio = static_cast<double>(peaks.reserved) / static_cast<double>(peaks.used);
    MESSAGE(file.stem().string() << ": used " << peaks.used << ", reserved " << peaks.reserved
                                 << ": " << ratio);
    CHECK(ratio <= 1.5);
  }
}
