// Uses of the memory and array rooms: resources, buffers, copies, fills, strided arrays.
#include "array/array.h"
#include "array/interchange.h"
#include "base/errors.h"
#include "core/event.h"
#include "core/peers.h"
#include "fault/fault_fixture.h"
#include "memory/buffer.h"
#include "memory/managed_resource.h"
#include "memory/memory_resource.h"
#include "memory/pinned_resource.h"
#include "memory/pool/pool_resource.h"
#include "memory/transfer.h"
#include "memory/transfer_engine.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

namespace kernwright::testing {
namespace {

void use_buffers(Device& device) {
  const Stream first = Stream::create(device);
  const Stream second = Stream::create(device);
  const Stream borrowed = Stream::borrow(device, second.handle());
  for (const auto& resource : std::initializer_list<std::shared_ptr<MemoryResource>>{
           std::make_shared<DeviceResource>(device), std::make_shared<AsyncResource>(device)}) {
    Buffer buffer(resource, 1000, first);
    buffer.use_on(second);
    buffer.use_on(borrowed);
    Buffer moved = std::move(buffer);
    require(moved.address() % 256 == 0 && moved.bytes() == 1000, "a buffer");
    const Buffer empty(resource, 0, first);
    require(empty.address() == 0, "an empty buffer");
  }
  first.synchronize();
  second.synchronize();
  AsyncResource(device).trim();
}

void use_pinned(Device& device) {
  const PinnedBuffer pinned(device, 4096);
  std::memset(pinned.data(), 7, pinned.bytes());
  const Buffer buffer(default_resource(device), 4096, {});
  const Stream stream = Stream::create(device);
  copy_to_device(device, buffer.address(), pinned.data(), 4096, stream);
  PinnedBuffer back(device, 4096);
  copy_to_host(device, back.data(), buffer.address(), 4096, stream);
  stream.synchronize();
  require(std::memcmp(pinned.data(), back.data(), 4096) == 0, "a round trip");
  back = PinnedBuffer();
  pinned_resource(device)->trim();
}

void use_transfers(Device& device) {
  const Buffer a(default_resource(device), 4096, {});
  const Buffer b(default_resource(device), 4096, {});
  const Stream stream = Stream::create(device);
  std::vector<unsigned char> bytes(4096);
  for (const std::size_t size : {1, 2, 4, 8}) {
    fill(device, a.address(), 0x0102030405060708, size, 4096 / size);
    fill(device, a.address(), 0x0102030405060708, size, 4096 / size, stream);
    stream.synchronize();
    copy_on_device(device, b.address(), a.address(), 4096);
    copy_on_device(device, b.address(), a.address(), 4096, stream);
    stream.synchronize();
    copy_to_host(device, bytes.data(), b.address(), 4096);
    require(bytes[0] == 8 && bytes[4095] == (size == 8 ? 1 : 9 - size), "a filled buffer");
  }
  copy_to_device(device, b.address(), bytes.data(), 4096);
}

void use_pools(Device& device) {
  const Stream first = Stream::create(device);
  const Stream second = Stream::create(device);
  for (const auto& upstream : std::initializer_list<std::shared_ptr<MemoryResource>>{
           std::make_shared<DeviceResource>(device), std::make_shared<ManagedResource>(device),
           std::make_shared<PinnedResource>(device)}) {
    const auto pool = std::make_shared<PoolResource>(upstream);
    {
      std::vector<Buffer> buffers;
      for (const std::size_t bytes : {100, 5000, 70000, 3000000}) {
        buffers.emplace_back(pool, bytes, first);
        buffers.back().use_on(second);
      }
      require(pool->stats().used >= 3075100, "what is used is counted");
    }
    const Buffer again(pool, 3000000, second);
    pool->trim();
    require(again.address() != 0, "memory in use stays");
  }
  first.synchronize();
  second.synchronize();
  default_resource(device)->trim();
}

void use_engine(Device& device) {
  std::vector<unsigned char> bytes(300000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  std::vector<unsigned char> read(bytes.size());
  const Stream stream = Stream::create(device);
  const Buffer buffer(default_resource(device), bytes.size(), stream);
  TransferEngine engine(device, {.chunk_bytes = 1 << 16, .chunks = 2, .priority = 0});
  const Transfer up = engine.upload(buffer.address(), bytes.data(), bytes.size(), stream);
  up.wait_on(stream);
  const Transfer down = engine.download(read.data(), buffer.address(), read.size(), stream);
  down.wait(std::chrono::seconds(20));
  up.wait();
  require(up.done() && down.done() && read == bytes, "a round trip through both lanes");
}

void copy_between(DeviceRegistry& registry) {
  Device& from = registry.by_index(0);
  Device& to = registry.by_index(2);
  const std::vector<float> values(500, 4.5F);
  const Array source = Array::from_host(from, values.data(), {500}, ScalarType::float32);
  const Array target = Array::empty(to, {500}, ScalarType::float32);
  copy_across(to, target.address(), from, source.address(), source.nbytes());
  std::vector<float> read(500);
  target.to_host(read.data());
  require(read == values, "a copy between devices");
  const PeerLink link = peer_link(from, to);
  require(enable_peer_access(from, to) == link.access, "access where there is a link");
  require(enable_peer_access(from, to) == link.access, "access again");
  const Stream stream = Stream::create(to);
  const Stream other = Stream::create(from);
  copy_across(to, target.address(), from, source.address(), source.nbytes(), stream, other);
  stream.synchronize();
}

void use_arrays(Device& device) {
  std::vector<int> values(60);
  std::iota(values.begin(), values.end(), 0);
  Array array = Array::from_host(device, values.data(), {3, 4, 5}, ScalarType::int32);
  std::vector<int> read(60);
  array.to_host(read.data());
  require(read == values, "a round trip");
  array.assign_from_host(values.data(), Stream::create(device));
  const Array view = array.transpose().slice(0, 4, 5, -1);
  view.to_host(read.data());
  require(read[0] == 4 && read[1] == 24 && read[59] == 55, "a strided view");
  // Elements far apart are read one by one.
  std::vector<char> many(1 << 16);
  const Array wide = Array::from_host(device, many.data(), {1 << 16}, ScalarType::int8);
  wide.slice(0, 0, 2, 40000).to_host(read.data());
  const Array scratch = Array::empty(device, {10}, ScalarType::float64, Stream::create(device));
  scratch.use_on(Stream::legacy(device));
}

void use_foreign_memory(Device& device) {
  const Array owner = Array::empty(device, {16}, ScalarType::int16);
  DLManagedTensorVersioned* const tensor = to_dlpack_versioned(owner);
  std::optional<Array> taken;
  try {
    taken = from_dlpack(tensor);
  } catch (...) {
    tensor->deleter(tensor);  // it is still the caller's
    throw;
  }
  const Array& array = *taken;
  require(array.address() == owner.address() && array.size() == 16, "adopted memory");
}

void run_out(Device& device) {
  try {
    const Buffer never(default_resource(device), std::size_t{1} << 50, {});
    require(false, "2^50 bytes are refused");
  } catch (const OutOfMemory& error) {
    if (error.requested == 0) throw;  // another call's want of memory
    require(error.requested == std::size_t{1} << 50, "the size is told");
  }
  const Buffer small(default_resource(device), 1 << 10, {});
  require(small.address() != 0, "the next allocation works");
}

}  // namespace

std::vector<Scenario> memory_scenarios() {
  // Freed memory waits for other streams on the host when they cannot be ordered on the device.
  const std::set<std::string> when_freed = {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"};
  std::set<std::string> when_waited_for = when_freed;  // and destructors wait
  when_waited_for.merge(std::set<std::string>{"cuCtxSynchronize", "cuStreamSynchronize",
                                              "cuEventSynchronize", "cuPointerGetAttribute"});
  return {
      on_device("buffers", Seen::as_gpu, use_buffers, when_freed),
      on_device("page-locked memory", Seen::as_gpu, use_pinned),
      on_device("copies and fills", Seen::as_gpu, use_transfers),
      on_device("pools", Seen::as_gpu, use_pools, when_waited_for),
      on_device("transfer engine", Seen::as_gpu, use_engine, when_waited_for),
      {"copies between devices", Seen::as_gpu, copy_between, {"cuDeviceGetP2PAttribute"}},
      on_device("arrays", Seen::as_gpu, use_arrays, when_freed),
      on_device("arrays of simulated devices", Seen::as_simulated, use_arrays, when_freed),
      on_device("memory of others", Seen::as_gpu, use_foreign_memory),
      on_device("running out of memory", Seen::as_gpu, run_out, {"cuMemPoolTrimTo"}),
  };
}

}  // namespace kernwright::testing
