// Pools of graphs: one capture at a time, and launches that wait for each other.
#include "core/graph/graph_pool.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_graph.h"

#include <doctest/doctest.h>

#include <memory>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

namespace {

void capture_nothing(Graph& graph, const Stream& stream) {
  graph.capture(stream, [] {});
}

int waits() { return FakeDriver::get().calls("cuStreamWaitEvent"); }
int records() { return FakeDriver::get().calls("cuEventRecord"); }

}  // namespace

TEST_CASE("graph pool: a launch waits for the last one on another stream, and only then") {
  Device& device = fresh_device();
  const auto pool = std::make_shared<GraphPool>(device);
  Graph first(pool), second(pool);
  CHECK(first.pool() == pool);
  CHECK(&first.device() == &device);
  const Stream one = Stream::create(device), other = Stream::create(device);
  capture_nothing(first, one);
  capture_nothing(second, one);
  first.launch(one);
  second.launch(one);
  first.launch(one);
  CHECK(waits() == 0);
  CHECK(records() == 0);
  second.launch(other);
  CHECK(waits() == 1);
  second.launch(other);
  CHECK(waits() == 1);
  first.launch(one);
  CHECK(waits() == 2);

  // A stream that its owner may destroy is marked at once.
  const int before = records();
  const Stream borrowed = Stream::borrow(device, other.handle());
  first.launch(borrowed);
  CHECK(records() > before);
  const int marked = records();
  first.launch(one);
  CHECK(records() == marked);
}

TEST_CASE("graph pool: attachments live as long as the pool, and captures are marked then") {
  Device& device = fresh_device();
  auto pool = std::make_shared<GraphPool>(device);
  const int key = 0;
  const auto made = pool->attachment(&key, [] { return std::make_shared<int>(7); });
  CHECK(pool->attachment(&key, []() -> std::shared_ptr<void> { throw 1; }) == made);
  const Stream one = Stream::create(device);
  Graph graph(pool);
  capture_nothing(graph, one);
  CHECK(records() == 1);
  const int before = waits();
  graph.launch(one);
  CHECK(waits() == before + 1);
  graph.launch(one);
  CHECK(waits() == before + 1);
  pool.reset();
  CHECK(made.use_count() == 2);  // the graph holds the pool
  graph = Graph(device);
  CHECK(made.use_count() == 1);
}

TEST_CASE("graph pool: one capture at a time, whatever its end") {
  Device& device = fresh_device();
  const auto pool = std::make_shared<GraphPool>(device);
  Graph first(pool), second(pool);
  const Stream one = Stream::create(device), other = Stream::create(device);
  first.begin_capture(one);
  CHECK_THROWS_AS(second.begin_capture(other), CaptureError);
  CHECK_FALSE(second.is_capturing());
  SUBCASE("well") { first.end_capture(); }
  SUBCASE("badly") { first.discard_capture(); }
  SUBCASE("with the graph") { first = Graph(pool); }
  capture_nothing(second, other);
  CHECK(second.is_ready());
}

TEST_CASE("graph pool: misuse is told") {
  Device& device = fresh_device();
  CHECK_THROWS_AS(Graph(std::shared_ptr<GraphPool>()), InvalidArgument);
  const auto pool = std::make_shared<GraphPool>(device);
  Graph first(pool), second(pool), apart(device);
  CHECK(apart.pool() == nullptr);
  const Stream one = Stream::create(device), other = Stream::create(device);
  capture_nothing(first, one);
  capture_nothing(second, one);
  first.launch(one);
  apart.begin_capture(one);
  const std::string message = message_of<CaptureError>([&] { second.launch(other); });
  CHECK(contains(message, "shares its memory with graph"));
  CHECK(contains(message, one.identify()));
  apart.end_capture();
  second.launch(other);
  CHECK(waits() == 1);
}
