// Files named by a user: only regular ones, within a limit, and never a wait.
#include "base/regular_file.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

using namespace kernwright;

namespace {

/// A folder removed with the test.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("kernwright_regular_file_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

struct ReadNumbers {
  std::size_t count = 0;
  std::array<std::uint64_t, 2> values = {7, 7};
};

ReadNumbers numbers_in(const std::string& text) {
  const Folder folder;
  const std::string path = folder / "numbers";
  std::ofstream(path) << text;
  ReadNumbers read;
  read.count = read_numbers(path, read.values);
  return read;
}

}  // namespace

TEST_CASE("regular file: its bytes, up to the limit, and through a link") {
  const Folder folder;
  const std::string bytes("a\0b\n", 4);
  std::ofstream(folder / "file", std::ios::binary) << bytes;
  std::filesystem::create_symlink("file", folder / "link");
  std::ofstream(folder / "empty");
  CHECK(read_regular_file(folder / "file", 4).bytes == bytes);
  CHECK(read_regular_file(folder / "link", 100).bytes == bytes);
  CHECK(read_file_head(folder / "file", 3).bytes == bytes.substr(0, 3));
  CHECK(read_file_head(folder / "file", 30).bytes == bytes);
  const RegularFile empty = read_regular_file(folder / "empty", 0);
  CHECK((empty.reason.empty() && empty.bytes.empty()));
  const RegularFile large = read_regular_file(folder / "file", 3);
  CHECK((large.is_too_large && large.bytes.empty()));
  CHECK(large.reason == "it has 4 bytes; the limit is 3");
}

TEST_CASE("regular file: what tells no size is read to its end, or to the limit") {
  CHECK(contains(read_regular_file("/proc/self/status", 1 << 20).bytes, "VmPeak"));
  CHECK(read_regular_file("/proc/self/status", 10).is_too_large);
}

TEST_CASE("regular file: folders, pipes, devices and what is missing say what they are") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto reason = [](const std::string& path) {
    const RegularFile file = read_regular_file(path, 100);
    CHECK((file.bytes.empty() && !file.is_too_large));
    CHECK(read_file_head(path, 10).reason == file.reason);
    return file.reason;
  };
  CHECK(reason(folder.path.string()) == "it is a folder, no regular file");
  CHECK(reason(folder / "pipe") == "it is a pipe, no regular file");
  CHECK(reason("/dev/zero") == "it is a device, no regular file");
  CHECK(reason(folder / "missing") == "it does not exist");
  CHECK(contains(reason("/proc/self/mem"), "it cannot be read: "));
}

TEST_CASE("numbers of a file: numbers stand between white space") {
  const ReadNumbers read = numbers_in(" 12\t18446744073709551615 3\n");
  CHECK(read.count == 2);
  CHECK(read.values == std::array<std::uint64_t, 2>{12, 18446744073709551615u});
}

TEST_CASE("numbers of a file: reading ends at the first word that is no number") {
  const ReadNumbers second = numbers_in("5 max\n");
  CHECK(second.count == 1);
  CHECK(second.values == std::array<std::uint64_t, 2>{5, 7});
  for (const char* text : {"", "\n", "max\n", "-1\n", "12kB\n", "18446744073709551616\n"}) {
    CAPTURE(text);
    CHECK(numbers_in(text).count == 0);
  }
}

TEST_CASE("numbers of a file: a missing file has no numbers") {
  std::array<std::uint64_t, 1> values = {7};
  CHECK(read_numbers("/proc/self/no such file", values) == 0);
  CHECK(values[0] == 7);
}

TEST_CASE("numbers of a file: the pages of this process") {
  std::array<std::uint64_t, 2> pages = {};
  REQUIRE(read_numbers("/proc/self/statm", pages) == 2);
  CHECK(pages[1] > 0);
  CHECK(pages[1] <= pages[0]);
}
