// The bookkeeping of a pool, against an independent model of the owners of bytes.
#include "memory/pool/segment_heap.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

using kernwright::SegmentHeap;
using kernwright::SizeClass;
using kernwright::testing::kMiB;
using Block = SegmentHeap::Block;

namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 40;

/// Walks all segments: blocks follow each other without gap or overlap, and sums agree.
void check_whole(const SegmentHeap& heap) {
  std::size_t bytes = 0, used = 0, count = 0;
  for (const auto& [address, segment] : heap.segments()) {
    std::uint64_t next = address;
    const Block* left = nullptr;
    for (const Block* block = segment.first; block != nullptr; block = block->right) {
      REQUIRE(block->address == next);
      REQUIRE(block->bytes != 0);
      REQUIRE(block->left == left);
      REQUIRE(heap.find(block->address) == block);
      const bool in_use =
          block->state == SegmentHeap::State::used || block->state == SegmentHeap::State::held;
      REQUIRE((block->lane == nullptr) == in_use);
      if (in_use) used += block->bytes, ++count;
      next += block->bytes;
      left = block;
    }
    REQUIRE(next == address + segment.bytes);
    bytes += segment.bytes;
  }
  REQUIRE(bytes == heap.bytes());
  REQUIRE(used == heap.used_bytes());
  REQUIRE(count == heap.used_blocks());
}

}  // namespace

TEST_CASE("segment heap: empty until a segment is added") {
  SegmentHeap heap;
  CHECK(heap.take(1, 1) == nullptr);
  CHECK(heap.find(kBase) == nullptr);
  CHECK(heap.largest_free() == 0);
  heap.add(kBase, kMiB, SegmentHeap::kSettled);
  CHECK(heap.largest_free() == kMiB);
  Block* const whole = heap.take(kMiB, 7);
  REQUIRE(whole != nullptr);
  CHECK(whole->address == kBase);
  CHECK(heap.take(1, 7) == nullptr);
  heap.give(whole, 7, 1);
  CHECK(heap.take(kMiB, 7) == whole);
}

TEST_CASE("segment heap: a block is cut to its class, and merged when a larger one is wanted") {
  SegmentHeap heap;
  heap.add(kBase, kMiB, SegmentHeap::kSettled);
  std::vector<Block*> blocks;
  while (Block* const block = heap.take(1000, 1)) {
    CHECK(block->bytes == 1024);
    blocks.push_back(block);
  }
  CHECK(blocks.size() == 1024);
  check_whole(heap);
  for (std::size_t i = 0; i < blocks.size(); i += 2) heap.give(blocks[i], 1, 1);
  CHECK(heap.take(2048, 1) == nullptr);  // every second one is in use
  for (std::size_t i = 1; i < blocks.size(); i += 2) heap.give(blocks[i], 1, 1);
  Block* const whole = heap.take(kMiB, 1);
  REQUIRE(whole != nullptr);
  CHECK(whole->address == kBase);
  check_whole(heap);
}

TEST_CASE("segment heap: what one owner freed is nobody else's before it is settled") {
  SegmentHeap heap;
  heap.add(kBase, kMiB, SegmentHeap::kSettled);
  Block* const mine = heap.take(kMiB, 1);
  heap.give(mine, 1, 5);
  CHECK(heap.take(256, 2) == nullptr);
  CHECK(heap.donors(256, 2) == std::vector<SegmentHeap::Owner>{1});
  CHECK(heap.donors(256, 1).empty());
  CHECK(heap.donors(2 * kMiB, 2).empty());

  SUBCASE("settled too early") {
    heap.settle(1, 4);
    CHECK(heap.take(256, 2) == nullptr);
    CHECK(heap.owns(1));
  }
  SUBCASE("settled") {
    heap.settle(1, 5);
    CHECK_FALSE(heap.owns(1));
    CHECK(heap.take(256, 2) != nullptr);
  }
  SUBCASE("taken over: only the piece that was asked for changes its owner") {
    Block* const piece = heap.take_from(1, 256);
    REQUIRE(piece != nullptr);
    CHECK(heap.take(256, 2) == nullptr);
    heap.give(piece, 2, 6);
    CHECK(heap.take(256, 2) == piece);
    CHECK(heap.take(kMiB - 4096, 1) == nullptr);
    CHECK(heap.take(kMiB / 2, 1) != nullptr);
  }
  check_whole(heap);
}

TEST_CASE("segment heap: neighbours of different owners stay apart until both are settled") {
  SegmentHeap heap;
  heap.add(kBase, 8192, SegmentHeap::kSettled);
  Block* const first = heap.take(4096, 1);
  Block* const second = heap.take(4096, 1);
  heap.give(first, 1, 1);
  heap.give(second, 2, 2);
  CHECK(heap.take(8192, 1) == nullptr);
  CHECK(heap.free_segments().empty());
  heap.settle(1, 2);
  heap.settle(2, 2);
  const auto free = heap.free_segments();
  REQUIRE(free.size() == 1);
  CHECK(free[0].address == kBase);
  CHECK(free[0].bytes == 8192);
  CHECK(free[0].owner == SegmentHeap::kSettled);
  heap.remove(kBase);
  CHECK(heap.bytes() == 0);
  CHECK(heap.find(kBase) == nullptr);
  CHECK(heap.take(1, 1) == nullptr);
}

TEST_CASE("segment heap: a used or held block keeps its segment") {
  SegmentHeap heap;
  heap.add(kBase, kMiB, SegmentHeap::kSettled);
  heap.add(kBase + 2 * kMiB, kMiB, SegmentHeap::kSettled);
  Block* const block = heap.take(256, 1);
  block->state = SegmentHeap::State::held;
  CHECK(heap.free_segments().size() == 1);
  heap.give(block, 1, 1);
  CHECK(heap.free_segments().size() == 2);
}

// The model has the bytes of each live block, and the owner of each freed byte.
TEST_CASE("segment heap: random operations by many owners, checked against a model") {
  std::mt19937_64 random(11);
  SegmentHeap heap;
  std::map<std::uint64_t, std::uint64_t> live;  // address to end
  // One for each 256 bytes from kBase on; 0 is nobody.
  std::vector<SegmentHeap::Owner> owners;
  const auto owner_at = [&](std::uint64_t address) -> SegmentHeap::Owner& {
    return owners.at((address - kBase) / 256);
  };
  std::uint64_t next_segment = kBase;
  std::uint64_t clock = 0;
  for (int step = 0; step < 60000; ++step) {
    const SegmentHeap::Owner owner = 1 + random() % 4;
    if (random() % 100 < 52 || live.empty()) {
      const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? kMiB : 20000);
      Block* block = heap.take(bytes, owner);
      if (block == nullptr) {
        heap.add(next_segment, 2 * kMiB, SegmentHeap::kSettled);
        next_segment += 4 * kMiB;
        owners.resize((next_segment - kBase) / 256, 0);
        block = heap.take(bytes, owner);
      }
      REQUIRE(block != nullptr);
      REQUIRE(block->bytes == SizeClass::holding(bytes).bytes());
      const auto after = live.upper_bound(block->address);
      REQUIRE((after == live.end() || block->address + block->bytes <= after->first));
      if (after != live.begin()) REQUIRE(std::prev(after)->second <= block->address);
      for (std::uint64_t at = 0; at < block->bytes; at += 256) {
        const auto whose = owner_at(block->address + at);
        REQUIRE((whose == 0 || whose == owner));
      }
      live[block->address] = block->address + block->bytes;
    } else {
      auto victim = live.begin();
      std::advance(victim, static_cast<long>(random() % std::min<std::size_t>(live.size(), 50)));
      Block* const block = heap.find(victim->first);
      for (std::uint64_t at = victim->first; at < victim->second; at += 256) {
        owner_at(at) = owner;
      }
      heap.give(block, owner, ++clock);
      live.erase(victim);
    }
    if (step % 997 == 0) {
      heap.settle(owner, clock);
      for (auto& whose : owners) {
        if (whose == owner) whose = 0;
      }
    }
    if (step % 5000 == 0) check_whole(heap);
  }
  check_whole(heap);
  for (const auto& [address, end] : live) heap.give(heap.find(address), 1, ++clock);
  for (const SegmentHeap::Owner owner : heap.owners()) heap.settle(owner, clock);
  CHECK(heap.free_segments().size() == heap.segments().size());
  CHECK(heap.used_bytes() == 0);
}
