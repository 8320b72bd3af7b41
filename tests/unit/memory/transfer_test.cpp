// Copies and fills, against the same done on the host.
#include "memory/transfer.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/transfer_counts.h"
#include "memory/buffer.h"
#include "memory/transfer_engine.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"
#include "unit/core/test_device.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

using namespace kernwright;
using testing::Bytes;
using testing::FakeDriver;
using testing::random_bytes;
using testing::unpooled_buffer;

namespace {

Bytes read(Device& device, const Buffer& buffer) {
  Bytes bytes(buffer.bytes());
  copy_to_host(device, bytes.data(), buffer.address(), bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("copies: bytes come back as they went, with and without a stream") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Stream stream = Stream::create(device);
  for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{255},
                                 std::size_t{4096}, std::size_t{1} << 20}) {
    const Bytes data = random_bytes(size, 7);
    const Buffer a = unpooled_buffer(device, size);
    const Buffer b = unpooled_buffer(device, size);
    copy_to_device(device, a.address(), data.data(), size);
    copy_on_device(device, b.address(), a.address(), size);
    CHECK(read(device, b) == data);

    const Bytes more = random_bytes(size, 8);
    Bytes back(size);
    copy_to_device(device, a.address(), more.data(), size, stream);
    copy_on_device(device, b.address(), a.address(), size, stream);
    copy_to_host(device, back.data(), b.address(), size, stream);
    stream.synchronize();
    CHECK(back == more);
  }
}

TEST_CASE("copies: those between host and device are counted, with and without a stream") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Stream stream = Stream::create(device);
  const Buffer a = unpooled_buffer(device, 256), b = unpooled_buffer(device, 256);
  Bytes data = random_bytes(256, 3);
  const TransferCounts before = transfer_counts(device);
  copy_to_device(device, a.address(), data.data(), 256);
  copy_to_device(device, a.address(), data.data(), 10, stream);
  copy_to_device(device, a.address(), data.data(), 0);
  copy_on_device(device, b.address(), a.address(), 256);
  fill(device, b.address(), 1, 1, 256);
  stream.synchronize();
  copy_to_host(device, data.data(), b.address(), 7);
  const TransferCounts after = transfer_counts(device);
  CHECK(after.to_device - before.to_device == 2);
  CHECK(after.to_device_bytes - before.to_device_bytes == 266);
  CHECK(after.to_host - before.to_host == 1);
  CHECK(after.to_host_bytes - before.to_host_bytes == 7);
}

TEST_CASE("copies: parts of a buffer, at odd offsets") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  Bytes expected = random_bytes(1000, 1);
  const Buffer buffer = unpooled_buffer(device, expected.size());
  copy_to_device(device, buffer.address(), expected.data(), expected.size());
  const Bytes piece = random_bytes(13, 2);
  copy_to_device(device, buffer.address() + 501, piece.data(), piece.size());
  std::memcpy(expected.data() + 501, piece.data(), piece.size());
  CHECK(read(device, buffer) == expected);
}

TEST_CASE("copies: nothing at all is a no-op, whatever the addresses") {
  const testing::Recorded recorded;
  copy_to_device(recorded.device, 0, nullptr, 0);
  copy_to_host(recorded.device, nullptr, 0, 0);
  copy_on_device(recorded.device, 0, 0, 0);
  copy_across(recorded.device, 0, recorded.device, 0, 0);
  fill(recorded.device, 0, 1, 4, 0);
}

TEST_CASE("copies: errors name the call, the size and the address") {
  auto& registry = testing::fake_registry();
  Device& device = registry.by_index(0);
  Bytes bytes(16);
  const std::string text =
      testing::message_of<DriverError>([&] { copy_to_host(device, bytes.data(), 0xabc0, 16); });
  CHECK(testing::contains(text, "cuMemcpyDtoH on cuda:0"));
  CHECK(testing::contains(text, "16 bytes at 0xabc0"));
  const Stream other = Stream::legacy(registry.by_index(1));
  CHECK_THROWS_AS(copy_to_host(device, bytes.data(), 1, 1, other), InvalidArgument);
  CHECK_THROWS_AS(copy_to_device(device, 1, bytes.data(), 1, other), InvalidArgument);
  CHECK_THROWS_AS(copy_on_device(device, 1, 2, 1, other), InvalidArgument);
  CHECK_THROWS_AS(fill(device, 0, 0, 1, 1, other), InvalidArgument);
}

TEST_CASE("copies: across devices, of one driver and of two") {
  auto& registry = testing::fake_registry();
  Device& first = registry.by_index(0);
  Device& second = registry.by_index(1);
  const Bytes data = random_bytes(3 << 20, 5);
  const auto check = [&](Device& to, Device& from) {
    const Buffer source = unpooled_buffer(from, data.size());
    const Buffer target = unpooled_buffer(to, data.size());
    copy_to_device(from, source.address(), data.data(), data.size());
    copy_across(to, target.address(), from, source.address(), data.size());
    CHECK(read(to, target) == data);
  };
  check(second, first);
  CHECK(FakeDriver::get().calls("cuMemcpyPeer") == 1);
  check(first, first);
  check(testing::test_device(), first);
  check(first, testing::test_device());
  CHECK(FakeDriver::get().calls("cuMemcpyPeer") == 1);
}

TEST_CASE("fill: every element size, patterns that repeat and that do not, odd counts") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const std::uint64_t patterns[] = {0,
                                    0xab,
                                    0x1234,
                                    0xabab,
                                    0x12345678,
                                    0x56785678,
                                    0x3ff0000000000000ULL,
                                    0x0123456789abcdefULL,
                                    0x1122334411223344ULL,
                                    ~std::uint64_t{0}};
  for (const std::size_t size : {1U, 2U, 4U, 8U}) {
    for (const std::uint64_t pattern : patterns) {
      for (const std::size_t count : {1U, 2U, 3U, 31U, 1000U}) {
        const Buffer buffer = unpooled_buffer(device, size * (count + 2));
        Bytes expected(buffer.bytes(), 0x5a);
        copy_to_device(device, buffer.address(), expected.data(), expected.size());
        for (std::size_t i = 0; i < count; ++i) {
          std::memcpy(expected.data() + size * (i + 1), &pattern, size);  // low bytes first
        }
        fill(device, buffer.address() + size, pattern, size, count);
        REQUIRE(read(device, buffer) == expected);
      }
    }
  }
}

TEST_CASE("fill: on a stream, and what is refused") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Stream stream = Stream::create(device);
  const Buffer buffer = unpooled_buffer(device, 64);
  fill(device, buffer.address(), 7, 8, 8, stream);
  stream.synchronize();
  CHECK(read(device, buffer)[56] == 7);
  CHECK_THROWS_AS(fill(device, buffer.address(), 0, 3, 1), InvalidArgument);
  CHECK_THROWS_AS(fill(device, buffer.address(), 0, 0, 1), InvalidArgument);
  CHECK_THROWS_AS(fill(device, buffer.address(), 0, 16, 1), InvalidArgument);
  CHECK_THROWS_AS(fill(device, buffer.address() + 2, 0, 4, 1), InvalidArgument);
  CHECK_THROWS_AS(fill(device, buffer.address(), 0, 8, std::size_t{1} << 61), InvalidArgument);
}

TEST_CASE("copies: those of a best-effort thread go in pieces") {
  Device& device = testing::fresh_device();
  FakeDriver& driver = FakeDriver::get();
  const Stream stream = Stream::create(device);
  Bytes bytes((std::size_t{9} << 20) + 3);
  const Buffer memory = unpooled_buffer(device, bytes.size());
  const CUdeviceptr place = memory.address();
  const auto count = [&](const char* call, auto&& copy) {
    const int before = driver.calls(call);
    copy();
    return driver.calls(call) - before;
  };
  const auto upload = [&] { copy_to_device(device, place, bytes.data(), bytes.size(), stream); };
  const auto download = [&] { copy_to_host(device, bytes.data(), place, bytes.size()); };
  CHECK(count("cuMemcpyHtoDAsync", upload) == 1);
  {
    const TransferScope scope(TransferClass::best_effort);
    CHECK(count("cuMemcpyHtoDAsync", upload) == 3);
    CHECK(count("cuMemcpyDtoH", download) == 3);
    const TransferScope inner(TransferClass::urgent);
    CHECK(count("cuMemcpyHtoDAsync", upload) == 1);
  }
  CHECK(count("cuMemcpyDtoH", download) == 1);
  const TransferScope scope(TransferClass::best_effort);
  driver.fail("cuMemcpyHtoDAsync", CUDA_ERROR_UNKNOWN, 1, 1);
  CHECK_THROWS_AS(upload(), DriverError);
}
