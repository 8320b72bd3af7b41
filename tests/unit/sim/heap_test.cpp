// The device heap: limit, bounds of each block, threads.
#include "sim/exec/heap.h"

#include <doctest/doctest.h>

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
