// The table of blocks against std::map, with colliding addresses and erasures.
#include "memory/pool/block_table.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>

namespace {

struct Item {
  std::uint64_t address;
};

}  // namespace

TEST_CASE("block table: finds what was inserted and not erased, as std::map does") {
  kernwright::BlockTable<Item> table;
  std::map<std::uint64_t, std::unique_ptr<Item>> model;
  std::mt19937_64 random(3);
  for (int step = 0; step < 100000; ++step) {
    const std::uint64_t address = 256 * (1 + random() % 3000);
    const auto known = model.find(address);
    REQUIRE(table.find(address) == (known != model.end() ? known->second.get() : nullptr));
    if (known == model.end()) {
      auto item = std::make_unique<Item>(Item{address});
      table.reserve(1);
      table.insert(item.get());
      model.emplace(address, std::move(item));
    } else if (random() % 2 == 0) {
      table.erase(address);
      model.erase(known);
    }
    REQUIRE(table.size() == model.size());
  }
  for (const auto& [address, item] : model) REQUIRE(table.find(address) == item.get());
  CHECK(table.find(256 * 5000) == nullptr);
}
