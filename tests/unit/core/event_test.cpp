// Events: recording, waiting, timing, and refusals.
#include "core/event.h"

#include "base/errors.h"
#include "core/device.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

TEST_CASE("event: records, waits, times, and is destroyed with the last copy") {
  Device& device = fresh_device();
  {
    const Stream stream = Stream::create(device);
    const Stream other = Stream::create(device);
    Event start(device);
    start.record(stream);
    Event end = stream.record();
    CHECK(end.timing());
    CHECK(end.elapsed_ms(start) == doctest::Approx(1.5));
    CHECK(end.done());
    FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY);
    CHECK_FALSE(end.done());
    end.synchronize();
    other.wait(end);
    CHECK(FakeDriver::get().calls("cuStreamWaitEvent") == 1);
    stream.record(end);
    end.record({});
    const Event copy = end;
    CHECK(copy.handle() == end.handle());
    CHECK(FakeDriver::get().live("event") == 2);
  }
  CHECK(FakeDriver::get().live("event") == 0);
}

TEST_CASE("event: what cannot be timed or recorded is refused with the reason") {
  auto& registry = testing::fake_registry();
  Device& first = registry.by_index(0);
  Device& second = registry.by_index(1);
  Event start(first);
  Event untimed(first, false);
  Event elsewhere(second);
  CHECK_THROWS_AS(untimed.elapsed_ms(start), InvalidArgument);
  CHECK_THROWS_AS(start.elapsed_ms(untimed), InvalidArgument);
  const std::string devices =
      message_of<InvalidArgument>([&] { (void)elsewhere.elapsed_ms(start); });
  CHECK(contains(devices, "cuda:0 (Fake GPU) and cuda:1 (Fake GPU)"));
  CHECK_THROWS_AS(elsewhere.record(Stream::legacy(first)), InvalidArgument);

  const Event end(first);
  FakeDriver::get().fail("cuEventElapsedTime", CUDA_ERROR_NOT_READY);
  CHECK(contains(message_of<DriverError>([&] { (void)end.elapsed_ms(start); }), "synchronise"));
  FakeDriver::get().fail("cuEventElapsedTime", CUDA_ERROR_INVALID_HANDLE);
  CHECK(contains(message_of<DriverError>([&] { (void)end.elapsed_ms(start); }), "never recorded"));
  FakeDriver::get().fail("cuEventCreate", CUDA_ERROR_UNKNOWN);
  CHECK_THROWS_AS(Event{first}, DriverError);
}
