// The device heap: limit, bounds of each block, threads.
#include "sim/exec/heap.h"

#include <doctest/doctest.h>

#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace kernwright::sim {
namespace {

TEST_CASE("heap: blocks are allocations of their own and come back") {
  Memory memory(std::uint64_t{16} << 20);
  Heap heap(memory);
  CHECK(heap.limit() == kDefaultHeapBytes);
  const auto a = heap.allocate(100), b = heap.allocate(100);
  REQUIRE(a != 0);
  CHECK(a != b);
  CHECK(memory.find(a).end - memory.find(a).begin == 100);
  CHECK(heap.used() == 200);
  CHECK(heap.free(a));
  CHECK_FALSE(heap.free(a));
  CHECK_FALSE(heap.free(b + 8));
  CHECK(heap.free(0));
  CHECK(heap.used() == 100);
}

TEST_CASE("heap: nothing for zero bytes, beyond the limit, or beyond 64 bits") {
  Memory memory(std::uint64_t{16} << 20);
  Heap heap(memory, 1000);
  CHECK(heap.allocate(0) == 0);
  CHECK(heap.allocate(1001) == 0);
  CHECK(heap.allocate(~std::uint64_t{0}) == 0);
  const auto all = heap.allocate(1000);
  CHECK(all != 0);
  CHECK(heap.allocate(1) == 0);
  heap.set_limit(2000);
  CHECK(heap.allocate(1000) != 0);
}

TEST_CASE("heap: what is left goes back with the heap") {
  Memory memory(std::uint64_t{16} << 20);
  const auto before = memory.used();
  {
    Heap heap(memory);
    heap.allocate(5000);
    heap.allocate(10);
    CHECK(memory.used() > before);
  }
  CHECK(memory.used() == before);
}

TEST_CASE("heap: blocks of every size keep apart, each with its bounds") {
  Memory memory(std::uint64_t{64} << 20);
  Heap heap(memory, std::uint64_t{32} << 20);
  const std::vector<std::uint64_t> sizes{1,    2,    15,   16,   31,    32,    33,
                                         127,  128,  129,  511,  512,   513,   2047,
                                         2048, 2049, 4096, 4097, 32768, 32769, 600000};
  for (const bool apart : {false, true}) {
    std::map<std::uint64_t, std::uint64_t> live;
    for (int round = 0; round < 50; ++round) {
      for (const std::uint64_t bytes : sizes) {
        if (bytes > 5000 && round > 2) continue;  // of large ones a few
        const std::uint64_t address = heap.allocate(bytes, apart);
        REQUIRE(address != 0);
        CHECK(address % 64 == 0);
        const AddressRange range = memory.find(address + bytes - 1);
        CHECK(range.begin == address);
        CHECK(range.end == address + bytes);
        CHECK(memory.find(address + bytes).end == 0);  // the gap
        CHECK(memory.find(address + bytes + 31).end == 0);
        std::memset(host_pointer(address), round, bytes);
        const auto next = live.lower_bound(address);
        if (next != live.end()) CHECK(address + 2 * bytes <= next->first);
        if (next != live.begin())
          CHECK(std::prev(next)->first + 2 * std::prev(next)->second <= address);
        live.emplace(address, bytes);
      }
    }
    for (const auto& [address, bytes] : live) {
      CHECK_FALSE(heap.free(address + bytes));
      CHECK(heap.free(address));
      CHECK_FALSE(heap.free(address));
      CHECK(memory.find(address).end == 0);
      bool freed = false;
      CHECK(memory.describe(address, 1, &freed).find("that was freed") != std::string::npos);
      CHECK(freed);
    }
    CHECK(memory.used() == 0);
  }
}

TEST_CASE("heap: an address of a small block rests before it comes again, and comes again") {
  Memory memory(std::uint64_t{64} << 20);
  Heap heap(memory);
  const std::uint64_t first = heap.allocate(24);
  CHECK(heap.free(first));
  std::size_t others = 0;
  for (;; ++others) {
    const std::uint64_t address = heap.allocate(24);
    CHECK(heap.free(address));
    if (address == first) break;
    REQUIRE(others < 100000);  // else the heap grows for ever
  }
  CHECK(others >= 4096);
}

TEST_CASE("heap: messages name the small block that was missed") {
  Memory memory(std::uint64_t{64} << 20);
  Heap heap(memory);
  const std::uint64_t block = heap.allocate(24);
  CHECK(memory.describe(block + 24, 4).find("just past the end of the device heap") == 0);
  CHECK(memory.describe(block + 40, 4).find("16 bytes past the end of the device heap") == 0);
  CHECK(memory.describe(block - 4, 4).find("4 bytes before the device heap") == 0);
  CHECK(memory.describe(block + 20, 8).find("the last 4 of the 8 bytes lie past") == 0);
}

TEST_CASE("heap: threads allocate and free at the same time") {
  Memory memory(std::uint64_t{64} << 20);
  Heap heap(memory);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&heap] {
      for (int i = 0; i < 200; ++i) {
        const auto address = heap.allocate(64 + static_cast<unsigned>(i));
        if (address == 0 || !heap.free(address)) return;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(heap.used() == 0);
}

}  // namespace
}  // namespace kernwright::sim
