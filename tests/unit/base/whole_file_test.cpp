// Reading and writing files in one piece.
#include "base/whole_file.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace kernwright;

namespace {

/// A folder removed with the test.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("kernwright_whole_file_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

std::string by_stream(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("whole file: what was written is read, by itself and by streams") {
  const Folder folder;
  std::string large(3 * 16384 + 7, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 3);
  for (const std::string& bytes : {std::string(), std::string("\0\r\n\xff", 4), large}) {
    REQUIRE(write_whole_file(folder / "file", bytes));
    CHECK(by_stream(folder / "file") == bytes);
    CHECK(read_whole_file(folder / "file") == bytes);
  }
}

TEST_CASE("whole file: a shorter text leaves nothing of the longer one") {
  const Folder folder;
  REQUIRE(write_whole_file(folder / "file", "a long text"));
  REQUIRE(write_whole_file(folder / "file", "short"));
  CHECK(read_whole_file(folder / "file") == "short");
}

TEST_CASE("whole file: a file without a size is read to its end") {
  const auto text = read_whole_file("/proc/self/status");
  REQUIRE(text);
  CHECK(text->find("VmPeak") != std::string::npos);
}

TEST_CASE("whole file: what is missing, a folder or full is refused") {
  const Folder folder;
  CHECK_FALSE(read_whole_file(folder / "missing"));
  CHECK_FALSE(read_whole_file(folder.path.string()));
  CHECK_FALSE(write_whole_file(folder.path.string(), "x"));
  CHECK_FALSE(write_whole_file(folder / "no/such/folder", "x"));
  if (std::filesystem::exists("/dev/full")) CHECK_FALSE(write_whole_file("/dev/full", "x"));
}
