// What pieces of a launch may cost: the driver of the test says how long each takes.
#include "core/arguments.h"
#include "core/device.h"
#include "core/kernel.h"
#include "core/launch/launch_pieces.h"
#include "core/module.h"
#include "schedule/scheduler.h"
#include "unit/core/fake_driver.h"
#include "unit/schedule/add_kernel.h"

#include <doctest/doctest.h>

#include <memory>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::add_kernel;
using testing::fresh_device;
using testing::kMemory;

namespace {

/// One piece, which takes as long as the whole launch on the device of the test; all pieces
/// together are said to take `cost` times as long.
class Piece final : public LaunchPieces {
 public:
  Piece(const Kernel& kernel, const LaunchConfig& config, double cost)
      : kernel_(kernel), config_(config), cost_(cost) {}
  std::size_t left() const noexcept override { return left_; }
  WorkKey next() const noexcept override { return {&kPieces, 1}; }
  double amount() const noexcept override { return cost_; }
  void queue() override {
    left_ = 0;
    launch(kernel_, config_, kMemory, 1);
  }

 private:
  static constexpr int kPieces = 0;
  const Kernel kernel_;
  const LaunchConfig config_;
  const double cost_;
  std::size_t left_ = 1;
};

/// Whether a kernel is still cut after many launches whose pieces cost so much, while urgent tasks
/// come or not.
bool stays_cut(double cost, bool is_urgent) {
  Device& device = fresh_device();
  const Kernel kernel = add_kernel(device);
  const auto clock = std::make_shared<ManualClock>();
  int cuts = 0;
  SchedulerOptions options{
      .memory = 1000, .clock = clock, .background = false, .multiprocessors = 128};
  options.cut = [&](const Kernel& whole, const LaunchConfig& config, std::span<void* const>,
                    const LaunchSite&, const PieceRequest& request) {
    CHECK(request.spare == (is_urgent ? PaceOptions().spare : 0));
    ++cuts;
    return std::make_unique<Piece>(whole, config, cost);
  };
  Scheduler scheduler(device, std::move(options));
  int before = 0;
  for (int i = 0; i < 40; ++i) {
    clock->advance(is_urgent ? 1ms : 100ms);
    if (is_urgent) scheduler.result(scheduler.submit({}, make_work([](const Stream&) {})));
    before = cuts;
    scheduler.result(scheduler.submit(
        {.qos = Qos::best_effort}, make_work([&](const Stream& stream) {
          launch(kernel, {.grid = {500}, .block = {32}, .stream = stream}, kMemory, 1);
        })));
  }
  return cuts != before;
}

}  // namespace

TEST_CASE("cut cost: pieces that take a quarter longer than the whole do not pay") {
  CHECK(stays_cut(1.2, false));
  CHECK_FALSE(stays_cut(1.35, false));
}

TEST_CASE("cut cost: multiprocessors that pieces leave to urgent tasks are no cost of theirs") {
  CHECK(stays_cut(1.35, true));  // an eighth of them: 1.18 on the others
  CHECK_FALSE(stays_cut(1.5, true));
}
