// Kernels of the stored PTX texts, whole and damaged, run: with canaries around what is theirs.
#include "fuzz/ptx_mutation.h"
#include "fuzz/targets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace kernwright;

namespace {

/// Small texts, so that many damages fit into the time.
constexpr std::uintmax_t kMaxBytes = 6000;
constexpr std::chrono::seconds kTime{20};
constexpr std::size_t kMutants = 8000;

std::vector<std::string> texts() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(KW_PTX_FOLDER)) {
    if (entry.path().extension() == ".ptx" && entry.file_size() <= kMaxBytes)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

}  // namespace

TEST_CASE("fuzz: damaged kernels run to their end, a finding or a refusal") {
  const std::vector<std::string> whole = texts();
  REQUIRE(whole.size() > 20);
  for (const std::string& text : whole) CHECK_NOTHROW(fuzz::ptx_run(text));
  const auto start = std::chrono::steady_clock::now();
  std::size_t done = 0;
  while (done < kMutants && std::chrono::steady_clock::now() - start < kTime) {
    const std::string& text = whole[done % whole.size()];
    std::string mutant = fuzz::mutate_ptx(text, done);
    CAPTURE(done);
    mutant += std::string("\0\x20\x01\x04", 4) + static_cast<char>(done % 251);
    CHECK_NOTHROW(fuzz::ptx_run(mutant));
    ++done;
  }
  CHECK(done > 100);
}
