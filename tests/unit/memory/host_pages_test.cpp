// Pages are there afterwards, no byte changes, and memory that is not there does no harm.
#include "memory/host_pages.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

using namespace kernwright;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr int populate_write = 23;

class Mapping {
 public:
  explicit Mapping(std::size_t bytes)
      : bytes_(bytes),
        memory_(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~Mapping() { ::munmap(memory_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

  /// How many of the pages are resident.
  std::size_t resident() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> states(bytes_ / page);
    REQUIRE(::mincore(memory_, bytes_, states.data()) == 0);
    return static_cast<std::size_t>(
        std::count_if(states.begin(), states.end(), [](unsigned char s) { return (s & 1) != 0; }));
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

bool system_can() {
  const Mapping probe(mebibyte);
  return ::madvise(probe.data(), mebibyte, populate_write) == 0;
}

}  // namespace

TEST_CASE("pages: all whole pages of large memory are there, small memory is left alone") {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t bytes : {16 * mebibyte, 17 * mebibyte + 4 * page, 65 * mebibyte}) {
    const Mapping memory(bytes);
    std::memset(memory.data() + 5 * mebibyte, 7, mebibyte);
    populate_pages(memory.data(), bytes);
    if (system_can()) CHECK(memory.resident() == bytes / page);
    CHECK(std::all_of(memory.data() + 5 * mebibyte, memory.data() + 6 * mebibyte,
                      [](std::byte b) { return b == std::byte{7}; }));
    CHECK(memory.data()[0] == std::byte{0});
    CHECK(memory.data()[bytes - 1] == std::byte{0});
  }
  const Mapping small(8 * mebibyte);
  populate_pages(small.data(), 8 * mebibyte);
  CHECK(small.resident() < 8 * mebibyte / page);
}

TEST_CASE("pages: nothing outside the memory is touched, and memory that is gone does no harm") {
  const Mapping memory(32 * mebibyte);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  populate_pages(memory.data() + mebibyte + 3, 20 * mebibyte);
  // Huge pages may bring their neighbours along, but not the far end.
  if (system_can()) CHECK(memory.resident() >= 20 * mebibyte / page - 1);
  CHECK(memory.resident() <= 26 * mebibyte / page);
  populate_pages(nullptr, 0);
  void* gone = nullptr;
  {
    const Mapping other(32 * mebibyte);
    gone = other.data();
  }
  populate_pages(gone, 32 * mebibyte);
}
