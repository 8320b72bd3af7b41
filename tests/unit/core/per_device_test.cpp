// One entry for each device at a fixed address, with any number of threads.
#include "core/per_device.h"

#include "core/device.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;

namespace {

/// Neither copied nor moved, and counted.
struct Counted {
  explicit Counted(std::atomic<int>& its_alive) : alive(its_alive) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;

  std::atomic<int>& alive;
};

}  // namespace

TEST_CASE("per device: made once for each, and found again") {
  DeviceRegistry& registry = testing::fake_registry();
  Device &first = registry.by_index(0), &second = registry.by_index(1);
  PerDevice<std::string> names;
  CHECK(names.find(first) == nullptr);
  CHECK(names.earliest() == nullptr);
  const auto make = [](const char* name) { return [name] { return std::string(name); }; };
  std::string& of_second = names.get(second, make("second"));
  std::string& of_first = names.get(first, make("first"));
  CHECK(of_second == "second");
  CHECK(of_first == "first");
  CHECK(&names.get(second, make("again")) == &of_second);
  CHECK(names.find(first) == &of_first);
  CHECK(&names[first] == &of_first);
  CHECK(names.earliest() == &of_second);
  names.clear();
  CHECK(names.find(second) == nullptr);
  CHECK(names[first].empty());
}

TEST_CASE("per device: what fails leaves nothing, and may be tried again") {
  Device& device = testing::fake_registry().by_index(0);
  PerDevice<int> numbers;
  CHECK_THROWS_AS(numbers.get(device, []() -> int { throw 1; }), int);
  CHECK(numbers.find(device) == nullptr);
  CHECK(numbers.get(device, [] { return 2; }) == 2);
}

TEST_CASE("per device: threads that meet keep one entry, and the others' go") {
  DeviceRegistry& registry = testing::fake_registry();
  std::atomic<int> alive = 0;
  {
    PerDevice<Counted> counted;
    std::vector<Counted*> found(16);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] {
        found[i] = &counted.get(registry.by_index(static_cast<int>(i % 2)), [&] {
          std::this_thread::yield();
          return Counted(alive);
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 2; i < found.size(); ++i) CHECK(found[i] == found[i % 2]);
    CHECK(found[0] != found[1]);
    CHECK(alive == 2);
  }
  CHECK(alive == 0);
}
