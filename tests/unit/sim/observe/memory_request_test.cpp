// The cost of a warp's access against counts by brute force, and the patterns of the textbooks.
#include "sim/observe/memory_request.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace kernwright::sim;

namespace {

template <typename F>
MemoryRequest request(std::uint32_t bytes, F address, std::uint32_t mask = kAllLanes) {
  MemoryRequest made;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0) made.add(lane, static_cast<std::uint64_t>(address(lane)), bytes);
  }
  return made;
}

/// Every byte that the lanes of [first, end) touch, with multiplicity.
std::multiset<std::uint64_t> bytes_of(const MemoryRequest& r, int first = 0, int end = kLanes) {
  std::multiset<std::uint64_t> all;
  for (int lane = first; lane < end; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    if ((r.mask >> lane & 1) == 0) continue;
    for (std::uint64_t b = 0; b < r.bytes[l]; ++b) all.insert(r.address[l] + b);
  }
  return all;
}

std::size_t units(const std::multiset<std::uint64_t>& bytes, std::uint64_t unit) {
  std::set<std::uint64_t> found;
  for (const std::uint64_t byte : bytes) found.insert(byte / unit);
  return found.size();
}

std::uint32_t slow_wavefronts(const MemoryRequest& r, int group) {
  std::uint32_t sum = 0;
  for (int first = 0; first < kLanes; first += group) {
    std::map<std::uint64_t, std::set<std::uint64_t>> banks;
    for (const std::uint64_t byte : bytes_of(r, first, first + group))
      banks[byte / 4 % 32].insert(byte / 4);
    std::size_t most = 0;
    for (const auto& [bank, words] : banks) most = std::max(most, words.size());
    sum += static_cast<std::uint32_t>(most);
  }
  return sum;
}

SharedTraffic shared(std::uint32_t bytes, std::uint64_t stride) {
  return shared_traffic(
      request(bytes, [=](int lane) { return static_cast<std::uint64_t>(lane) * stride; }));
}

}  // namespace

TEST_CASE("request: coalescing of the usual patterns of 4-byte words") {
  struct Pattern {
    const char* name;
    std::uint64_t stride, start;
    std::uint32_t sectors, lines, ideal;
  };
  for (const Pattern& p : {Pattern{"coalesced", 4, 0, 4, 1, 4},
                           {"stride 2", 8, 0, 8, 2, 4},
                           {"stride 32", 128, 0, 32, 32, 4},
                           {"misaligned", 4, 4, 5, 2, 4},
                           {"broadcast", 0, 64, 1, 1, 1},
                           {"in one line", 4, 1024 + 96, 4, 2, 4}}) {
    INFO(p.name);
    const GlobalTraffic traffic = global_traffic(request(
        4, [&](int lane) { return p.start + static_cast<std::uint64_t>(lane) * p.stride; }));
    CHECK(traffic.bytes == 128);
    CHECK(traffic.sectors == p.sectors);
    CHECK(traffic.lines == p.lines);
    CHECK(traffic.ideal_sectors == p.ideal);
  }
}

TEST_CASE("request: bank conflicts of the usual patterns") {
  CHECK(shared(4, 4).wavefronts == 1);
  CHECK(shared(4, 8).wavefronts == 2);
  CHECK(shared(4, 128).wavefronts == 32);
  CHECK(shared(4, 132).wavefronts == 1);  // stride 33: a padded tile
  CHECK(shared(4, 0).wavefronts == 1);    // broadcast
  CHECK(shared(1, 1).wavefronts == 1);
  CHECK(shared(2, 128).wavefronts == 32);
  CHECK(shared(8, 8).wavefronts == 2);  // double: by half warps
  CHECK(shared(8, 8).ideal_wavefronts == 2);
  CHECK(shared(8, 256).wavefronts == 32);
  CHECK(shared(16, 16).wavefronts == 4);  // float4: by quarter warps
  CHECK(shared(16, 16).ideal_wavefronts == 4);
  CHECK(shared(16, 0).wavefronts == 4);
  CHECK(shared(16, 128).wavefronts == 32);
  const MemoryRequest one = request(
      16, [](int) { return 0; }, 1u << 9);
  CHECK(shared_traffic(one).wavefronts == 1);
  CHECK(shared_traffic(one).ideal_wavefronts == 1);
}

TEST_CASE("request: atomics, local memory, and nobody at all") {
  CHECK(same_address_passes(request(4, [](int) { return 64; })) == 32);
  CHECK(same_address_passes(request(4, [](int lane) { return 4 * lane; })) == 1);
  CHECK(same_address_passes(request(
            4, [](int lane) { return lane % 5; }, 0xffff)) == 4);
  CHECK(local_sectors(request(4, [](int) { return 8; })) == 4);
  CHECK(local_sectors(request(8, [](int) { return 8; })) == 8);
  CHECK(local_sectors(request(1, [](int) { return 9; })) == 4);
  CHECK(local_sectors(request(4, [](int lane) { return 4 * lane; })) == 32);
  const MemoryRequest none;
  CHECK(global_traffic(none).sectors == 0);
  CHECK(global_traffic(none).ideal_sectors == 0);
  CHECK(shared_traffic(none).wavefronts == 0);
  CHECK(same_address_passes(none) == 0);
  CHECK(local_sectors(none) == 0);
}

TEST_CASE("request: random accesses cost what counting byte by byte says") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t bytes = 1u << random() % 5;
    const std::uint32_t window = 1u << (4 + random() % 9);
    const std::uint32_t mask = random() % 3 == 0 ? kAllLanes : static_cast<std::uint32_t>(random());
    const MemoryRequest r = request(
        bytes, [&](int) { return 4096 + random() % window / bytes * bytes; }, mask);
    const auto all = bytes_of(r);
    const GlobalTraffic traffic = global_traffic(r);
    CHECK(traffic.bytes == all.size());
    CHECK(traffic.sectors == units(all, 32));
    CHECK(traffic.lines == units(all, 128));
    CHECK(traffic.ideal_sectors == (units(all, 1) + 31) / 32);
    const int group = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
    CHECK(shared_traffic(r).wavefronts == slow_wavefronts(r, group));
    std::map<std::uint64_t, std::uint32_t> same;
    std::uint32_t most = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1) != 0)
        most = std::max(most, ++same[r.address[static_cast<std::size_t>(lane)]]);
    }
    CHECK(same_address_passes(r) == most);
  }
}
