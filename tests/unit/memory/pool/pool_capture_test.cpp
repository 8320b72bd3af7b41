// The pool in captures: a graph's memory is its own, and frees of others wait.
#include "base/errors.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "core/graph/graph_pool.h"
#include "memory/buffer.h"
#include "memory/pool/pool_resource.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_graph.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

using namespace kernwright;
using testing::FakeDriver;
using testing::fresh_device;
using testing::kMiB;
using testing::pool_of;

TEST_CASE("pool in a capture: memory belongs to the graph until it and its users are gone") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  const Stream stream = Stream::create(device);
  pool->deallocate(pool->allocate(kMiB, stream), kMiB, stream);  // cached for the stream
  std::optional<Graph> graph(device);
  CUdeviceptr inside = 0;
  CUdeviceptr kept = 0;
  graph->capture(stream, [&] {
    inside = pool->allocate(kMiB, stream);
    kept = pool->allocate(1000, stream);
    pool->deallocate(inside, kMiB, stream);
    CHECK(pool->allocate(kMiB, stream) == inside);  // the same stream of the same graph
    pool->deallocate(inside, kMiB, stream);
    CHECK_THROWS_AS(pool->release(inside, kMiB, stream), InvalidArgument);
    CHECK_THROWS_AS(pool->release(kept, 999, stream), InvalidArgument);
  });
  // The graph uses its memory at every launch: nobody else gets it.
  std::vector<CUdeviceptr> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(pool->allocate(kMiB, stream));
    CHECK((others.back() + kMiB <= inside || others.back() >= inside + kMiB));
    CHECK((others.back() > kept || others.back() + kMiB <= kept));
  }
  for (const CUdeviceptr other : others) pool->deallocate(other, kMiB, stream);
  graph->launch(stream);
  pool->trim();
  const std::uint64_t reserved = pool->stats().reserved;
  CHECK(reserved != 0);

  SUBCASE("the graph goes first") {
    graph.reset();
    CHECK(pool->stats().reserved == reserved);
    CHECK(pool->stats().used == 1000);
    pool->release(kept, 1000, stream);
  }
  SUBCASE("the user goes first") {
    pool->release(kept, 1000, {});
    CHECK(pool->stats().reserved == reserved);
    graph.reset();
  }
  CHECK(pool->stats().reserved == 0);
  CHECK(FakeDriver::get().live("memory") == 0);
}

TEST_CASE("pool in a capture: graphs of a GraphPool use memory that nobody uses any more") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  auto graphs = std::make_shared<GraphPool>(device);
  const Stream one = Stream::create(device);
  const Stream other = Stream::create(device);
  std::optional<Graph> first(graphs);
  std::optional<Graph> second(graphs);
  std::optional<Buffer> kept;
  std::optional<Buffer> result;
  CUdeviceptr inside = 0;
  first->capture(one, [&] {
    const Buffer workspace(pool, 4 * kMiB, one);
    inside = workspace.address();
    kept.emplace(pool, 1000, one);
    result.emplace(pool, 2 * kMiB, one);
  });
  const std::uint64_t reserved = pool->stats().reserved;
  const CUdeviceptr freed = result->address();
  result->use_on(other);
  result.reset();
  const int waits = FakeDriver::get().calls("cuStreamWaitEvent");
  second->capture(other, [&] {
    const auto capture = find_capture(other);
    const Buffer workspace(pool, 4 * kMiB, other);
    CHECK(workspace.address() == inside);
    const Buffer again(pool, 2 * kMiB, other);
    CHECK(again.address() == freed);
    const Buffer more(pool, 1000, other);
    CHECK(more.address() != kept->address());
    // The graph must hold what was made before it.
    CHECK(workspace.is_kept_by(*capture, other));
    CHECK_FALSE(kept->is_kept_by(*capture, one));
  });
  CHECK(pool->stats().reserved == reserved);
  CHECK(FakeDriver::get().calls("cuStreamWaitEvent") == waits);
  second->launch(other);  // it waits for the streams of the frees
  CHECK(FakeDriver::get().calls("cuStreamWaitEvent") > waits);
  first.reset();
  second.reset();
  CHECK(pool->trim() == 0);
  kept.reset();
  CHECK(pool->stats().reserved == reserved);
  graphs.reset();
  CHECK(pool->stats().reserved == 0);
  CHECK(FakeDriver::get().live("memory") == 0);
}

TEST_CASE("pool in a capture: memory of a GraphPool stays with a stream that is captured") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  const auto graphs = std::make_shared<GraphPool>(device);
  const Stream one = Stream::create(device);
  const Stream other = Stream::create(device);
  Graph first(graphs), second(graphs), third(graphs), apart(device);
  CUdeviceptr inside = 0;
  const auto allocate = [&](const Stream& stream) {
    const Buffer workspace(pool, kMiB, stream);
    return workspace.address();
  };
  first.capture(one, [&] { inside = allocate(one); });
  apart.capture(one, [&] {  // its work cannot be marked
    second.capture(other, [&] { CHECK(allocate(other) != inside); });
  });
  third.capture(other, [&] {
    const Buffer a(pool, kMiB, other);
    const Buffer b(pool, kMiB, other);
    CHECK((a.address() == inside || b.address() == inside));
  });
}

TEST_CASE("pool in a capture: memory of before goes back when the capture has ended") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  const Stream stream = Stream::create(device);
  const CUdeviceptr block = pool->allocate(2 * kMiB, stream);
  Graph graph(device);
  graph.begin_capture(stream);
  pool->deallocate(block, 2 * kMiB, stream);
  CHECK(pool->stats().used == 2 * kMiB);
  CHECK_THROWS_AS(pool->release(block, 2 * kMiB, stream), InvalidArgument);
  const CUdeviceptr other = pool->allocate(2 * kMiB, {});
  CHECK(other != block);
  SUBCASE("well") { graph.end_capture(); }
  SUBCASE("badly") { graph.discard_capture(); }
  CHECK(pool->stats().used == 2 * kMiB);
  CHECK(pool->allocate(2 * kMiB, stream) == block);
}

TEST_CASE("pool in a capture: other streams work on, and captured ones are not asked") {
  Device& device = fresh_device();
  PoolResource::Options options;
  options.slack = 0;
  options.overhead = 1;
  const auto pool =
      std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device), options);
  const Stream captured = Stream::create(device);
  const Stream free = Stream::create(device);
  const CUdeviceptr cached = pool->allocate(2 * kMiB, captured);
  pool->deallocate(cached, 2 * kMiB, captured);
  Graph graph(device);
  FakeDriver& driver = FakeDriver::get();
  graph.capture(captured, [&] {
    const int queries = driver.calls("cuStreamQuery");
    const int waits = driver.calls("cuStreamWaitEvent");
    const CUdeviceptr address = pool->allocate(2 * kMiB, free);
    CHECK(address != cached);  // it would need a word with the captured stream
    CHECK(driver.calls("cuStreamQuery") == queries);
    CHECK(driver.calls("cuStreamWaitEvent") == waits);
    pool->deallocate(address, 2 * kMiB, free);
    CHECK(pool->trim() == 2 * kMiB);
  });
  CHECK(graph.node_count() == 0);
  CHECK(pool->allocate(2 * kMiB, captured) == cached);
}

TEST_CASE("buffer in a capture: freed at its end when a captured stream used it") {
  Device& device = fresh_device();
  const auto pool = pool_of(device);
  const Stream owner = Stream::create(device);
  const Stream user = Stream::create(device);
  Graph graph(device);
  {
    std::optional<Buffer> buffer(std::in_place, pool, 4096, owner);
    buffer->use_on(user);
    graph.begin_capture(user);
    buffer->use_on(user);
    buffer.reset();
    CHECK(pool->stats().blocks == 1);
    CHECK(FakeDriver::get().calls("cuStreamWaitEvent") == 0);
  }
  graph.end_capture();
  CHECK(pool->stats().blocks == 0);
  CHECK(FakeDriver::get().calls("cuStreamWaitEvent") == 1);
  CHECK(graph.node_count() == 0);
}

TEST_CASE("pool in a capture: out of memory is told, and the capture goes on") {
  Device& device = fresh_device();
  FakeDriver::get().total_memory = 8 * kMiB;
  const auto pool = pool_of(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    CHECK_THROWS_AS(pool->allocate(16 * kMiB, stream), OutOfMemory);
    const CUdeviceptr address = pool->allocate(kMiB, stream);
    pool->deallocate(address, kMiB, stream);
  });
  CHECK(graph.is_ready());
}
