// Pages are mapped afterwards, no byte changes, and unmapped memory does no harm.
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

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr int kPopulateWrite = 23;

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
  const Mapping probe(kMebibyte);
  return ::madvise(probe.data(), kMebibyte, kPopulateWrite) == 0;
}

}  // namespace

TEST_CASE("pages: all whole pages of large memory are there, small memory is left alone") {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t bytes : {16 * kMebibyte, 17 * kMebibyte + 4 * page, 65 * kMebibyte}) {
    const Mapping memory(bytes);
    std::memset(memory.data() + 5 * kMebibyte, 7, kMebibyte);
    populate_pages(memory.data(), bytes);
    if (system_can()) CHECK(memory.resident() == bytes / page);
    CHECK(std::all_of(memory.data() + 5 * kMebibyte, memory.data() + 6 * kMebibyte,
                      [](std::byte b) { return b == std::byte{7}; }));
    CHECK(memory.data()[0] == std::byte{0});
    CHECK(memory.data()[bytes - 1] == std::byte{0});
  }
  const Mapping small(8 * kMebibyte);
  populate_pages(small.data(), 8 * kMebibyte);
  CHECK(small.resident() < 8 * kMebibyte / page);
}

TEST_CASE("pages: nothing outside the memory is touched, and memory that is gone does no harm") {
  const Mapping memory(32 * kMebibyte);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  populate_pages(memory.data() + kMebibyte + 3, 20 * kMebibyte);
  // Huge pages may bring their neighbours along, but not the far end.
  if (system_can()) CHECK(memory.resident() >= 20 * kMebibyte / page - 1);
  CHECK(memory.resident() <= 26 * kMebibyte / page);
  populate_pages(nullptr, 0);
  void* gone = nullptr;
  {
    const Mapping other(32 * kMebibyte);
    gone = other.data();
  }
  populate_pages(gone, 32 * kMebibyte);
}
