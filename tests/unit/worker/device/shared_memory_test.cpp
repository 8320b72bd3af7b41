// Memory that two processes see.
#include "worker/device/shared_memory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/errors.h"

using namespace kernwright;

TEST_CASE("shared memory: two mappings show the same bytes, and nobody can shrink them") {
  SharedMemory one = SharedMemory::create(10'000);
  REQUIRE(one.bytes().size() == 10'000);
  CHECK(one.bytes()[9'999] == std::byte{0});
  SharedMemory other = SharedMemory::open(FileHandle(FileSystem::real(), ::dup(one.descriptor())));
  REQUIRE(other.bytes().size() == 10'000);
  one.bytes()[9'999] = std::byte{7};
  CHECK(other.bytes()[9'999] == std::byte{7});
  CHECK(::ftruncate(other.descriptor(), 1) != 0);
  SharedMemory moved = std::move(one);
  one = SharedMemory();
  CHECK(moved.bytes()[9'999] == std::byte{7});
}

TEST_CASE("shared memory: what cannot be had, and what is none") {
  CHECK_THROWS_AS(SharedMemory::create(std::uint64_t{1} << 62), Error);
  CHECK_THROWS_AS(SharedMemory::open(FileHandle()), Error);
  CHECK_THROWS_AS(SharedMemory::open(FileHandle(FileSystem::real(), ::open("/dev/null", O_RDWR))),
                  Error);
}
