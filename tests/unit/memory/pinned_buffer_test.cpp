// Page-locked buffers: ownership, reuse, and no reuse before the device is done.
#include "memory/pinned_buffer.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/pinned_resource.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

using namespace kernwright;
using testing::FakeDriver;
using testing::fresh_device;

TEST_CASE("pinned buffer: owned host memory that is reused") {
  Device& device = fresh_device();
  {
    PinnedBuffer buffer(device, 4096);
    REQUIRE(buffer.data() != nullptr);
    std::memset(buffer.data(), 1, buffer.bytes());
    PinnedBuffer moved = std::move(buffer);
    CHECK(buffer.data() == nullptr);
    CHECK(moved.bytes() == 4096);
    PinnedBuffer target(device, 16);
    target = std::move(moved);
    CHECK(target.bytes() == 4096);
    CHECK(pinned_resource(device)->stats().blocks == 1);
    CHECK(PinnedBuffer(device, 0).data() == nullptr);
    CHECK(PinnedBuffer().bytes() == 0);
  }
  CHECK(FakeDriver::get().calls("cuMemHostAlloc") == 1);
  for (int i = 0; i < 100; ++i) CHECK(PinnedBuffer(device, 4096).data() != nullptr);
  const MemoryStats stats = pinned_resource(device)->stats();
  CHECK(stats.used == 0);
  CHECK(stats.hits == 101);
  CHECK(stats.misses == 1);
  pinned_resource(device)->trim();
  CHECK(FakeDriver::get().live("host") == 0);
}

TEST_CASE("pinned buffer: not reused before the copies that use it are done") {
  Device& device = fresh_device();
  const Stream stream = Stream::create(device);
  void* data = nullptr;
  FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, 2);  // at its end, and once later
  {
    PinnedBuffer buffer(device, 4096);
    buffer.use_on(stream);
    buffer.use_on(stream);
    data = buffer.data();
  }
  CHECK(FakeDriver::get().calls("cuEventCreate") == 1);
  CHECK(FakeDriver::get().calls("cuEventRecord") == 2);
  const PinnedBuffer other(device, 4096);
  CHECK(other.data() != data);
  const PinnedBuffer again(device, 4096);
  CHECK(again.data() == data);
}

TEST_CASE("pinned buffer: sizes that cannot be") {
  Device& device = fresh_device();
  CHECK_THROWS_AS(PinnedBuffer(device, std::numeric_limits<std::size_t>::max()), InvalidArgument);
  FakeDriver::get().fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 100);
  try {
    const PinnedBuffer buffer(device, 123);
    FAIL("nothing was thrown");
  } catch (const OutOfMemory& error) {
    CHECK(error.requested == 123);
  }
}
