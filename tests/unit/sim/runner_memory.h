// Memory of a simulated device for the runners of tests.
#pragma once

#include "sim/exec/heap.h"
#include "sim/exec/warp/warp.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace kernwright::sim {

struct RunnerMemory {
  Memory memory{std::uint64_t{64} << 20};
  Heap heap{memory};

  std::uint64_t allocate(std::uint64_t bytes) {
    const auto address = memory.allocate(bytes, AllocationKind::device);
    REQUIRE(address.has_value());
    return *address;
  }
  template <typename T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = allocate(values.size() * sizeof(T));
    std::memcpy(host_pointer(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <typename T>
  std::vector<T> download(std::uint64_t address, std::size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), host_pointer(address), count * sizeof(T));
    return values;
  }
};

}  // namespace kernwright::sim
