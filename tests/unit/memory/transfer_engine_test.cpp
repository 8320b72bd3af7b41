// Transfers by an engine: every size and kind of memory, order, failures, and kept objects.
#include "memory/transfer_engine.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "memory/buffer.h"
#include "memory/pinned_resource.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"
#include "unit/core/test_device.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace kernwright;
using testing::Bytes;
using testing::contains;
using testing::message_of;
using testing::random_bytes;
using testing::unpooled_buffer;

namespace {

constexpr TransferEngine::Options kSmallChunks{.chunk_bytes = 1000, .chunks = 3};

/// The pool of page-locked memory holds nothing back when it begins and ends.
struct Trimmed {
  Trimmed() { pinned_resource(testing::test_device())->trim(); }
  ~Trimmed() { pinned_resource(testing::test_device())->trim(); }
};

/// Everything made through the driver is given back in between.
struct Balanced {
  Trimmed before;
  testing::Recorded recorded;
  Trimmed after;
  Device& device = recorded.device;
};

}  // namespace

TEST_CASE("transfer engine: what went up comes down, through chunks and directly") {
  const Balanced balanced;
  Device& device = balanced.device;
  TransferEngine engine(device, kSmallChunks);
  CHECK(engine.upload_stream().handle() != engine.download_stream().handle());
  for (const std::size_t bytes : {1, 999, 1000, 1001, 2999, 3000, 3001, 50000}) {
    CAPTURE(bytes);
    const Bytes sent = random_bytes(bytes, static_cast<unsigned>(bytes));
    const Buffer buffer = unpooled_buffer(device, bytes);
    const Transfer up = engine.upload(buffer.address(), sent.data(), bytes);
    up.wait_on(engine.download_stream());
    Bytes got(bytes);
    engine.download(got.data(), buffer.address(), bytes).wait();
    CHECK(got == sent);
    CHECK(up.done());

    const PinnedBuffer pinned(device, bytes);
    engine.download(pinned.data(), buffer.address(), bytes).wait(std::chrono::seconds(30));
    CHECK(std::memcmp(pinned.data(), sent.data(), bytes) == 0);
    std::memset(pinned.data(), 7, bytes);
    const Transfer again = engine.upload(buffer.address(), pinned.data(), bytes);
    again.wait();
    Bytes sevens(bytes);
    copy_to_host(device, sevens.data(), buffer.address(), bytes);
    CHECK(sevens == Bytes(bytes, 7));
  }
  engine.upload(0, nullptr, 0).wait();
  CHECK(engine.download(nullptr, 0, 0).done());
  Transfer().wait();
}

TEST_CASE("transfer engine: copies of one direction keep their order, and follow a stream") {
  const Balanced balanced;
  Device& device = balanced.device;
  TransferEngine engine(device, kSmallChunks);
  constexpr std::size_t kBytes = 20000;
  const Buffer buffer = unpooled_buffer(device, kBytes);
  const PinnedBuffer pinned(device, kBytes);
  std::memset(pinned.data(), 3, kBytes);
  const Bytes first(kBytes, 1);
  const Bytes second(kBytes, 2);
  // A direct copy does not overtake the staged ones before it.
  engine.upload(buffer.address(), first.data(), kBytes);
  engine.upload(buffer.address(), second.data(), kBytes);
  engine.upload(buffer.address(), pinned.data(), kBytes).wait();
  Bytes got(kBytes);
  copy_to_host(device, got.data(), buffer.address(), kBytes);
  CHECK(got == Bytes(kBytes, 3));

  const Stream stream = Stream::create(device);
  for (unsigned round = 0; round < 20; ++round) {
    fill(device, buffer.address(), round, 1, kBytes, stream);
    engine.download(got.data(), buffer.address(), kBytes, stream).wait();
    CHECK(got == Bytes(kBytes, static_cast<unsigned char>(round)));
  }
}

TEST_CASE("transfer engine: threads may share it, and it waits for what is on its way") {
  const Balanced balanced;
  Device& device = balanced.device;
  constexpr std::size_t kBytes = 5000;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(unpooled_buffer(device, kBytes));
  std::vector<Bytes> sent;
  for (unsigned i = 0; i < 4; ++i) sent.push_back(random_bytes(kBytes, i));
  const auto kept = std::make_shared<int>(5);
  {
    TransferEngine engine(device, kSmallChunks);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 10; ++round) {
          engine.upload(buffers[i].address(), sent[i].data(), kBytes, {}, kept);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(kept.use_count() == 1);
  for (std::size_t i = 0; i < 4; ++i) {
    Bytes got(kBytes);
    copy_to_host(device, got.data(), buffers[i].address(), kBytes);
    CHECK(got == sent[i]);
  }
}

TEST_CASE("transfer engine: what a direct copy reads is kept until it is done") {
  const Balanced balanced;
  Device& device = balanced.device;
  TransferEngine engine(device, kSmallChunks);
  const Buffer buffer = unpooled_buffer(device, 64);
  auto pinned = std::make_shared<PinnedBuffer>(device, 64);
  const std::weak_ptr<PinnedBuffer> watched = pinned;
  void* const data = pinned->data();
  std::memset(data, 9, 64);
  engine.upload(buffer.address(), data, 64, {}, std::exchange(pinned, nullptr)).wait();
  Bytes got(64);
  engine.download(got.data(), buffer.address(), 64).wait();
  CHECK(got == Bytes(64, 9));
  engine.upload(buffer.address(), got.data(), 64).wait();
  CHECK(watched.expired());
}

TEST_CASE("transfer engine: a failing copy is told by wait(), and the next one works") {
  Device& device = testing::fresh_device();
  testing::FakeDriver& driver = testing::FakeDriver::get();
  TransferEngine engine(device, kSmallChunks);
  const Buffer buffer(std::make_shared<DeviceResource>(device), 4000, {});
  const Bytes sent = random_bytes(4000, 1);
  driver.fail("cuMemcpyHtoDAsync", CUDA_ERROR_INVALID_VALUE, 1, 2);
  const Transfer up = engine.upload(buffer.address(), sent.data(), 4000);
  CHECK_THROWS_AS(up.wait(), DriverError);
  CHECK_THROWS_AS(up.wait_on(engine.download_stream()), DriverError);
  CHECK(up.done());
  engine.upload(buffer.address(), sent.data(), 4000).wait();
  Bytes got(4000);
  driver.fail("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS_AS(engine.download(got.data(), buffer.address(), 4000).wait(), DriverError);
  engine.download(got.data(), buffer.address(), 4000).wait();
  CHECK(got == sent);
  driver.fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 8);
  TransferEngine other(device, {.chunk_bytes = std::size_t{64} << 20});
  CHECK_THROWS_AS(other.upload(buffer.address(), sent.data(), 4000).wait(), OutOfMemory);
}

TEST_CASE("transfer engine: each class copies right, up and down, from both kinds of host memory") {
  const Balanced balanced;
  Device& device = balanced.device;
  TransferEngine engine(device, kSmallChunks);
  for (const TransferClass kind :
       {TransferClass::urgent, TransferClass::normal, TransferClass::best_effort}) {
    for (const std::size_t bytes : {1, 1000, 1001, 2000, 7777}) {
      CAPTURE(bytes);
      const Bytes sent = random_bytes(bytes, static_cast<unsigned>(bytes));
      const Buffer buffer = unpooled_buffer(device, bytes);
      const PinnedBuffer pinned(device, bytes);
      engine.upload(buffer.address(), sent.data(), bytes, {}, {}, kind).wait();
      engine.download(pinned.data(), buffer.address(), bytes, {}, {}, kind).wait();
      CHECK(std::memcmp(pinned.data(), sent.data(), bytes) == 0);
      std::memset(pinned.data(), 5, bytes);
      const Transfer up = engine.upload(buffer.address(), pinned.data(), bytes, {}, {}, kind);
      up.wait_on(engine.download_stream(kind));
      Bytes got(bytes);
      engine.download(got.data(), buffer.address(), bytes, {}, {}, kind).wait();
      CHECK(got == Bytes(bytes, 5));
    }
  }
  CHECK(engine.upload_stream(TransferClass::urgent).handle() != engine.upload_stream().handle());
}

TEST_CASE("transfer engine: best-effort pieces wait while an urgent copy runs, other ways do not") {
  Device& device = testing::fresh_device();
  testing::FakeDriver& driver = testing::FakeDriver::get();
  TransferEngine engine(device, kSmallChunks);
  const Buffer buffer(std::make_shared<DeviceResource>(device), 4000, {});
  const Bytes sent = random_bytes(4000, 3);
  const PinnedBuffer pinned(device, 4000);
  engine.upload_stream(TransferClass::best_effort);
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 30);  // no copy seems to end
  const Transfer urgent =
      engine.upload(buffer.address(), sent.data(), 1000, {}, {}, TransferClass::urgent);
  const Transfer slow =
      engine.upload(buffer.address(), sent.data(), 4000, {}, {}, TransferClass::best_effort);
  const int asked = driver.calls("cuEventQuery");
  while (driver.calls("cuEventQuery") < asked + 5 || driver.calls("cuMemcpyHtoDAsync") == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  CHECK(driver.calls("cuMemcpyHtoDAsync") == 1);
  engine.download(pinned.data(), buffer.address(), 1000).wait();
  CHECK(driver.calls("cuMemcpyDtoHAsync") == 1);
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1);
  slow.wait();
  urgent.wait();
  CHECK(driver.calls("cuMemcpyHtoDAsync") == 5);
  Bytes got(4000);
  copy_to_host(device, got.data(), buffer.address(), 4000);
  CHECK(got == sent);
}

TEST_CASE("transfer engine: misuse is refused and queues nothing") {
  Device& device = testing::fake_registry().by_index(0);
  CHECK_THROWS_AS(TransferEngine(device, {.chunk_bytes = 0}), InvalidArgument);
  CHECK_THROWS_AS(TransferEngine(device, {.chunks = 1}), InvalidArgument);
  CHECK_THROWS_AS(TransferEngine(device, {.chunks = -3}), InvalidArgument);
  TransferEngine engine(device);
  int value = 0;
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(stream,
                [&] { CHECK_THROWS_AS(engine.upload(0x1000, &value, 4, stream), CaptureError); });
  CHECK(graph.node_count() == 0);
}

TEST_CASE("captures: copies of host memory that a graph could not repeat are refused") {
  const Balanced balanced;
  Device& device = balanced.device;
  const Stream stream = Stream::create(device);
  const Buffer buffer = unpooled_buffer(device, 16);
  const PinnedBuffer pinned(device, 16);
  Bytes pageable(16, 4);
  std::memset(pinned.data(), 1, 16);
  Graph graph(device);
  graph.capture(stream, [&] {
    CHECK_THROWS_AS(copy_to_device(device, buffer.address(), pageable.data(), 16), CaptureError);
    CHECK_THROWS_AS(copy_to_host(device, pageable.data(), buffer.address(), 16), CaptureError);
    CHECK_THROWS_AS(copy_to_device(device, buffer.address(), pageable.data(), 16, stream),
                    CaptureError);
    CHECK_THROWS_AS(copy_on_device(device, buffer.address(), buffer.address() + 8, 8),
                    CaptureError);
    CHECK_THROWS_AS(fill(device, buffer.address(), 1, 1, 16), CaptureError);
    copy_to_device(device, buffer.address(), pinned.data(), 16, stream);
    fill(device, buffer.address() + 8, 6, 1, 8, stream);
  });
  CHECK(graph.node_count() == 2);
  std::memset(pinned.data(), 5, 16);
  graph.launch(stream);
  stream.synchronize();
  copy_to_host(device, pageable.data(), buffer.address(), 16);
  CHECK(pageable == Bytes{5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6});
}
