// Streams: life, identity, order, waiting with and without a deadline.
#include "core/stream.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/event.h"
#include "core/stream_attachments.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <set>

using namespace kernwright;
using namespace std::chrono_literals;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::LogLines;
using testing::message_of;

TEST_CASE("stream: the last copy destroys it, in its own context, and restores the caller's") {
  Device& device = fresh_device();
  {
    Stream stream = Stream::create(device);
    CHECK(stream.is_owned());
    CHECK(&stream.device() == &device);
    const Stream copy = stream;
    CHECK(copy.handle() == stream.handle());
    stream = {};
    CHECK_FALSE(static_cast<bool>(stream));
    CHECK(FakeDriver::get().live("stream") == 1);
  }
  CHECK(FakeDriver::get().live("stream") == 0);
  CHECK(testing::fake_current_context() == nullptr);
}

TEST_CASE("stream: ids are never reused, unlike handles") {
  Device& device = fresh_device();
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(Stream::create(device).id());
  CHECK(ids.size() == 1000);
  CHECK(Stream().id() == 0);
  CHECK(Stream::legacy(device).id() == Stream::legacy(device).id());
  CHECK(Stream::legacy(device).id() != Stream::legacy(*testing::fake_registry().devices()[1]).id());
  CHECK(ids.count(Stream::legacy(device).id()) == 0);
}

TEST_CASE(
    "stream: a priority of the device's range is given, any other raises and says the range") {
  Device& device = fresh_device();
  for (const int asked : {0, -2, -5}) {
    const Stream stream = Stream::create(device, asked);
    CHECK(FakeDriver::get().notes.back().first == asked);
    CHECK(stream.priority() == -3);
  }
  for (const int wrong : {-6, -100, 1, 100}) {
    const std::string text = message_of<InvalidArgument>([&] { Stream::create(device, wrong); });
    CHECK(contains(text, "between -5 (the highest) and 0 (the lowest)"));
  }
  CHECK(FakeDriver::get().live("stream") == 0);
}

TEST_CASE("stream: priorities by name are those of the device's range") {
  Device& device = fresh_device();
  const PriorityRange range = priority_range(device);
  CHECK(range.least == 0);
  CHECK(range.greatest == -5);
  CHECK(priority_of(device, StreamPriority::high) == -5);
  CHECK(priority_of(device, StreamPriority::medium) == -2);
  CHECK(priority_of(device, StreamPriority::low) == 0);
  FakeDriver::get().fail("cuCtxGetStreamPriorityRange", CUDA_ERROR_UNKNOWN);
  CHECK_THROWS_AS(priority_of(device, StreamPriority::high), DriverError);
}

TEST_CASE("stream: a creation that fails creates nothing and raises") {
  Device& device = fresh_device();
  FakeDriver::get().fail("cuStreamCreateWithPriority", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_THROWS_AS(Stream::create(device), OutOfMemory);
  CHECK(FakeDriver::get().live("stream") == 0);
  CHECK(FakeDriver::get().calls("cuStreamDestroy") == 0);
}

TEST_CASE("stream: one of ours that is borrowed by its handle lives on") {
  Device& device = fresh_device();
  Stream borrowed;
  {
    const Stream stream = Stream::create(device);
    borrowed = Stream::borrow(device, stream.handle());
    CHECK_FALSE(borrowed.is_owned());
  }
  CHECK(FakeDriver::get().live("stream") == 1);
  borrowed = {};
  CHECK(FakeDriver::get().live("stream") == 0);
}

TEST_CASE("stream: borrowed ones are left alone, and hold what keeps them alive") {
  Device& device = fresh_device();
  auto token = std::make_shared<int>(1);
  {
    const Stream stream = Stream::borrow(device, reinterpret_cast<CUstream>(0x77), token);
    CHECK(stream.handle() == reinterpret_cast<CUstream>(0x77));
    CHECK_FALSE(stream.is_owned());
    CHECK(token.use_count() == 2);
  }
  CHECK(token.use_count() == 1);
  CHECK(FakeDriver::get().calls("cuStreamDestroy") == 0);
  CHECK(Stream::borrow(device, nullptr).id() == Stream::legacy(device).id());
  CHECK(Stream::borrow(device, kStreamLegacy).id() == Stream::legacy(device).id());
  CHECK(Stream::borrow(device, kStreamPerThread).handle() == kStreamPerThread);
}

TEST_CASE("stream: an empty one has the legacy handle and no device") {
  const Stream empty;
  CHECK(empty.handle() == nullptr);
  CHECK_THROWS_AS(empty.device(), InvalidArgument);
  CHECK_THROWS_AS(empty.synchronize(), InvalidArgument);
  CHECK_THROWS_AS(empty.done(), InvalidArgument);
}

TEST_CASE("stream: waits, asks, and says who it is when the driver fails") {
  Device& device = fresh_device();
  const Stream stream = Stream::create(device);
  stream.synchronize();
  CHECK(stream.done());
  FakeDriver::get().fail("cuStreamQuery", CUDA_ERROR_NOT_READY);
  CHECK_FALSE(stream.done());
  FakeDriver::get().fail("cuStreamSynchronize", CUDA_ERROR_INVALID_HANDLE);
  const std::string text = message_of<DriverError>([&] { stream.synchronize(); });
  CHECK(contains(text, "stream " + std::to_string(stream.id()) + " of cuda:0 (Fake GPU)"));
}

TEST_CASE("stream: a deadline ends the wait, naming stream, device and launches") {
  Device& device = fresh_device();
  const Stream stream = Stream::create(device);
  FakeDriver::get().fail("cuStreamQuery", CUDA_ERROR_NOT_READY, 3);
  stream.synchronize(10s);
  CHECK(FakeDriver::get().calls("cuStreamQuery") == 4);

  device.note_launch(KernelTag("spin", "spin"), {});
  FakeDriver::get().fail("cuStreamQuery", CUDA_ERROR_NOT_READY, 1 << 30);
  const auto start = std::chrono::steady_clock::now();
  const std::string text = message_of<Timeout>([&] { stream.synchronize(30ms); });
  CHECK(std::chrono::steady_clock::now() - start >= 30ms);
  CHECK(contains(text, stream.identify()));
  CHECK(contains(text, "0.03 s"));
  CHECK(contains(text, "spin"));
  CHECK_THROWS_AS(stream.synchronize(0ns), Timeout);
  FakeDriver::get().fail("cuStreamQuery", CUDA_ERROR_LAUNCH_FAILED);
  CHECK_THROWS_AS(stream.synchronize(10s), DeviceLost);
}

TEST_CASE("stream: destruction never throws, and logs what the driver refuses") {
  Device& device = fresh_device();
  LogLines log;
  {
    const Stream stream = Stream::create(device);
    FakeDriver::get().fail("cuStreamDestroy", CUDA_ERROR_INVALID_CONTEXT);
  }
  REQUIRE(log.lines.size() == 1);
  CHECK(contains(log.lines[0], "cuStreamDestroy"));
  {
    const Stream stream = Stream::create(device);
    FakeDriver::get().fail("cuStreamDestroy", CUDA_ERROR_DEINITIALIZED);
  }
  CHECK(log.lines.size() == 1);
  {
    const Stream stream = Stream::create(device);
    CHECK_THROWS_AS(device.check(CUDA_ERROR_ILLEGAL_ADDRESS, "cuAnything"), DeviceLost);
  }
  CHECK(FakeDriver::get().calls("cuStreamDestroy") == 2);
}

TEST_CASE("stream: what belongs to it goes with it, while its handle can still be used") {
  Device& device = fresh_device();
  struct Attached {
    CUstream handle;
    int* live_streams;
    ~Attached() { *live_streams = FakeDriver::get().live("stream"); }
  };
  const char one = 0, other = 0;
  int live_at_end = 0;
  int made = 0;
  {
    const Stream stream = Stream::create(device);
    const auto make = [&] {
      ++made;
      return std::make_shared<Attached>(Attached{stream.handle(), &live_at_end});
    };
    const auto first = stream_attachment(stream, &one, make);
    CHECK(stream_attachment(Stream(stream), &one, make) == first);
    CHECK(made == 1);
    CHECK(stream_attachment(stream, &other, make) != first);
    const Stream second = Stream::create(device);
    CHECK(stream_attachment(second, &one, [] { return std::make_shared<int>(); }) != first);
    live_at_end = 0;
  }
  CHECK(live_at_end == 1);
  CHECK(FakeDriver::get().live("stream") == 0);
  CHECK_THROWS_AS(
      stream_attachment(Stream::legacy(device), &one, [] { return std::make_shared<int>(); }),
      InvalidArgument);
}
