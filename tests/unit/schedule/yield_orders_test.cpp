// Orders on their way to launches, between two threads.
#include "schedule/yield_orders.h"

#include "core/device.h"
#include "memory/buffer.h"
#include "memory/memory_resource.h"
#include "unit/core/fake_driver.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

using namespace kernwright;
using namespace kernwright::schedule;

namespace {

struct Word {
  explicit Word(Device& target)
      : device(target), buffer(default_resource(target), sizeof(std::uint32_t), {}) {
    clear();
  }
  void clear() const {
    const ContextGuard guard(device);
    device.check(device.driver().cuMemsetD32Async(buffer.address(), 0, 1, nullptr), "clear");
  }
  std::uint32_t value() const {
    const ContextGuard guard(device);
    std::uint32_t word = 0;
    device.check(device.driver().cuMemcpyDtoH(&word, buffer.address(), sizeof word), "value");
    return word;
  }

  Device& device;
  const Buffer buffer;
};

}  // namespace

TEST_CASE("yield orders: a word is stored, and nothing where nobody is told") {
  Device& device = testing::fresh_device();
  const Word word(device);
  YieldOrders orders(Stream::create(device, 0));
  orders.send([] { return YieldOrders::Words(); });
  CHECK(testing::FakeDriver::get().calls("cuMemcpyHtoDAsync") == 0);
  orders.fence(Stream::create(device, 0));
  CHECK(testing::FakeDriver::get().calls("cuStreamWaitEvent") == 0);  // there is none to wait for
  orders.send([&] { return YieldOrders::Words{word.buffer.address()}; });
  CHECK(word.value() == 1);
  orders.fence(Stream::create(device, 0));
  CHECK(testing::FakeDriver::get().calls("cuStreamWaitEvent") == 1);
}

TEST_CASE("yield orders: a word is cleared behind an order that is under way") {
  Device& device = testing::fresh_device();
  const Word word(device);
  YieldOrders orders(Stream::create(device, 0));
  const Stream low = Stream::create(device, 0);
  orders.send([&] { return YieldOrders::Words{word.buffer.address()}; });
  std::atomic<bool> is_cleared = false;
  std::thread other;
  orders.send([&] {
    other = std::thread([&] {
      orders.fence(low);
      word.clear();
      is_cleared = true;
    });
    // Long enough for a thread that does not wait.
    for (int i = 0; i < 50 && !is_cleared; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return YieldOrders::Words{word.buffer.address()};
  });
  other.join();
  CHECK(word.value() == 0);
}
