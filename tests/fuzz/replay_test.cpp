// Every stored input of the fuzzers, whole, cut short and with flipped bits.
#include "fuzz/targets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace kernwright;

namespace {

/// At most this many cuts and flips of one input, spread over it.
constexpr std::size_t kVariants = 200;

std::vector<std::filesystem::path> corpus(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(KW_CORPUS_FOLDER "/" + folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("fuzz: the stored inputs are read or refused") {
  for (const fuzz::Target& target : fuzz::kTargets) {
    const auto files = corpus(target.corpus);
    CAPTURE(target.name);
    CHECK(files.size() >= 2);
    for (const auto& path : files) {
      CAPTURE(path.string());
      CHECK_NOTHROW(target.run(read_file(path)));
    }
  }
}

TEST_CASE("fuzz: the stored inputs cut short and with flipped bits are read or refused") {
  for (const fuzz::Target& target : fuzz::kTargets) {
    CAPTURE(target.name);
    for (const auto& path : corpus(target.corpus)) {
      CAPTURE(path.string());
      const std::string whole = read_file(path);
      const std::size_t step = whole.size() / kVariants + 1;
      for (std::size_t at = 0; at < whole.size(); at += step) {
        CAPTURE(at);
        CHECK_NOTHROW(target.run(whole.substr(0, at)));
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
        CHECK_NOTHROW(target.run(flipped));
      }
    }
  }
}
