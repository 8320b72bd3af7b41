// Parts of a device without green contexts: launches with a bounded number of blocks at once.
#include "core/arguments.h"
#include "core/device.h"
#include "core/graph/graph.h"
#include "core/kernel.h"
#include "core/launch/launch_pieces.h"
#include "core/partition.h"
#include "schedule/scheduler.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"
#include "unit/schedule/add_kernel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using testing::add_kernel;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::kMemory;
using testing::message_of;

namespace {

/// Launches of at most so many blocks of the grid, without their offsets.
class Parts final : public LaunchPieces {
 public:
  Parts(const Kernel& kernel, const LaunchConfig& config, std::uint64_t most)
      : kernel_(kernel), config_(config), blocks_(config.grid.count()), most_(most) {}
  std::size_t left() const noexcept override { return (blocks_ + most_ - 1) / most_; }
  WorkKey next() const noexcept override { return {this, std::min(blocks_, most_)}; }
  void queue() override {
    LaunchConfig config = config_;
    config.grid = {static_cast<std::uint32_t>(std::min(blocks_, most_)), 1, 1};
    blocks_ -= config.grid.x;
    launch(kernel_, config, kMemory, 1);
  }

 private:
  const Kernel kernel_;
  const LaunchConfig config_;
  std::uint64_t blocks_;
  const std::uint64_t most_;
};

std::vector<std::uint32_t> take_grids() {
  std::vector<std::uint32_t> grids;
  for (const auto& each : FakeDriver::get().launches) grids.push_back(each.grid[0]);
  FakeDriver::get().launches.clear();
  return grids;
}

using Grids = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("bounded part: kernels keep to as many blocks as it has multiprocessors") {
  Device& device = fresh_device();
  REQUIRE_FALSE(partition_rules(device).supported);
  const Kernel kernel = add_kernel(device);
  Scheduler whole(device, {.memory = 1000, .background = false});
  CHECK_THROWS_AS(whole.partition(0), PartitionError);
  CHECK_THROWS_AS(whole.partition(whole.multiprocessors() + 1), PartitionError);
  bool can_cut = true;
  SchedulerOptions options{.memory = 100};
  options.cut = [&](const Kernel& cut, const LaunchConfig& config, std::span<void* const>,
                    const LaunchSite&, const PieceRequest& request) {
    CHECK(request.launch_us == 0);
    return can_cut ? std::make_unique<Parts>(cut, config, request.most_blocks) : nullptr;
  };
  const auto part = whole.partition(3, std::move(options));
  CHECK(part->multiprocessors() == 3);
  CHECK(whole.stats().reserved.memory == 100);
  const auto run = [&](LaunchConfig config) {
    const TaskPointer task = part->submit({}, make_work([&](const Stream& on) {
                                            config.stream = on;
                                            launch(kernel, config, kMemory, 1);
                                          }));
    part->result(task);
    return take_grids();
  };
  CHECK(run({.grid = {3}, .block = {32}}) == Grids{3});
  CHECK(run({.grid = {8}, .block = {32}}) == Grids{3, 3, 2});
  // A persistent kernel loops over its work.
  CHECK(run({.grid = {20}, .block = {32}, .most_blocks = 500}) == Grids{3});
  can_cut = false;
  CHECK(run({.grid = {20}, .block = {32}, .most_blocks = 500}) == Grids{3});
  CHECK(contains(message_of<PartitionError>([&] { run({.grid = {20}, .block = {32}}); }),
                 "add cannot keep to 3 multiprocessors: this driver has no green contexts"));
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(
      stream, [&] { launch(kernel, {.grid = {20}, .block = {32}, .stream = stream}, kMemory, 1); });
  const TaskPointer task = part->submit({}, make_work([&](const Stream& on) { graph.launch(on); }));
  CHECK_THROWS_AS(part->result(task), PartitionError);
}
