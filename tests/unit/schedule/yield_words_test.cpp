// Launches that stop for more urgent work and go on behind it: in one thread, in a fixed order.
#include "schedule/yield_words.h"

#include "core/arguments.h"
#include "core/device.h"
#include "core/kernel.h"
#include "core/launch/launch_pieces.h"
#include "core/module.h"
#include "memory/memory_resource.h"
#include "memory/pinned_buffer.h"
#include "memory/pinned_resource.h"
#include "memory/pool/pool_resource.h"
#include "schedule/scheduler.h"
#include "schedule/yield_orders.h"
#include "sim/device.h"
#include "unit/core/fake_driver.h"
#include "unit/core/saxpy.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;

namespace {

constexpr std::uint32_t kTiles = 10;
constexpr PaceOptions kShortWindows{.window = Time(1), .idle_window = Time(1)};

/// A kernel that computes `tiles` more tiles in each launch, and calls `before` and `during` it.
struct Script {
  std::vector<std::string> log;
  std::uint32_t tiles = 3;
  std::function<void()> before = [] {}, during = [] {};
};

class Piece final : public LaunchPieces {
 public:
  Piece(Script& script, YieldAddresses words, Stream stream)
      : script_(script), words_(words), stream_(std::move(stream)) {}
  std::size_t left() const noexcept override { return 1; }
  WorkKey next() const noexcept override {
    script_.before();
    return {this, 1};
  }
  std::uint64_t yields_until() const noexcept override { return kTiles; }
  void queue() override {
    Device& device = stream_.device();
    const ContextGuard guard(device);
    CHECK(order() == 0);  // that of the launch before is gone
    done_ = std::min(done_ + script_.tiles, kTiles);
    device.check(device.driver().cuMemsetD32Async(words_.next, done_, 1, stream_.handle()),
                 "cuMemsetD32Async");
    script_.log.push_back("tiles " + std::to_string(done_));
    script_.during();
    const ContextGuard again(device);
    script_.log.push_back("order " + std::to_string(order()));
  }

 private:
  /// The word that a launch under way reads.
  std::uint32_t order() const {
    std::uint32_t word = 0;
    Device& device = stream_.device();
    device.check(device.driver().cuMemcpyDtoH(&word, words_.order, sizeof word), "cuMemcpyDtoH");
    return word;
  }

  Script& script_;
  const YieldAddresses words_;
  const Stream stream_;
  std::uint32_t done_ = 0;
};

/// A scheduler whose best-effort launches yield as `script` tells, once they were measured.
struct Fixture {
  explicit Fixture(Device& target)
      : device(target),
        kernel(Module::load(target, testing::kSaxpyPtx), testing::saxpy_signature()),
        x(default_resource(target), 64, {}) {
    SchedulerOptions options{
        .memory = 1 << 20, .background = false, .pace = kShortWindows, .yields = true};
    options.cut = [this](const Kernel&, const LaunchConfig& config, std::span<void* const>,
                         const LaunchSite&,
                         const PieceRequest& request) -> std::unique_ptr<LaunchPieces> {
      asked.push_back(bool{request.words});
      if (!request.words) return nullptr;
      return std::make_unique<Piece>(script, request.words, config.stream);
    };
    scheduler.emplace(device, std::move(options));
    scheduler->result(submit(1));
  }
  void launch_on(const Stream& on) {
    launch(kernel, {.grid = {1}, .block = {1}, .stream = on, .most_blocks = kTiles}, 1.0F,
           Pointer{x.address()}, Pointer{x.address()}, 1);
  }
  TaskPointer submit(int launches) {
    return scheduler->submit(
        {.qos = Qos::best_effort, .memory = {{1 << 16, 1 << 16}}, .name = "low"},
        make_work([this, launches](const Stream& on) {
          for (int i = 0; i < launches; ++i) launch_on(on);
        }));
  }
  /// Runs guaranteed work to its end in this thread.
  void interrupt() {
    scheduler->result(scheduler->submit(
        {}, make_work([this](const Stream&) { script.log.emplace_back("urgent"); })));
  }

  Device& device;
  const Kernel kernel;
  Buffer x;
  Script script;
  std::vector<bool> asked;  ///< for each launch that is to be cut: whether it may yield
  std::optional<Scheduler> scheduler;
};

using Log = std::vector<std::string>;

/// Pools hold nothing back: no page-locked memory, and no stream whose memory was freed.
void trim_pools() {
  Device& device = testing::test_device();
  device.synchronize();
  { const PinnedBuffer frees_what_is_unused(device, 1); }
  pinned_resource(device)->trim();
  default_resource(device)->trim();
}

struct Trimmed {
  Trimmed() { trim_pools(); }
  Trimmed(const Trimmed&) = delete;
  Trimmed& operator=(const Trimmed&) = delete;
  ~Trimmed() { trim_pools(); }
};

struct Observed {
  const Trimmed before;
  const testing::Recorded recorded;
  const Trimmed after;
};

Device& fake_device() {
  Device& device = testing::fresh_device();
  testing::FakeDriver::get().kernels = {{.name = "saxpy", .parameter_sizes = {4, 8, 8, 4}}};
  return device;
}

}  // namespace

TEST_CASE("yield words: guaranteed work stops a launch, which goes on behind it") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  Script& script = fixture.script;
  script.during = [&] {
    if (script.log.size() > 1) return;
    fixture.interrupt();
    script.tiles = kTiles;
  };
  const TaskPointer task = fixture.submit(1);
  fixture.scheduler->result(task);
  CHECK(script.log == Log{"tiles 3", "urgent", "order 1", "tiles 10", "order 0"});
  CHECK(fixture.scheduler->stats(task).preemptions >= 1);
  CHECK(fixture.scheduler->stats(task).launches == 2);
  CHECK(fixture.scheduler->stats().reserved == Amount{});
}

TEST_CASE("yield words: a launch that ends before the order comes is not queued again") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  fixture.script.tiles = kTiles;
  fixture.script.during = [&] { fixture.interrupt(); };
  fixture.scheduler->result(fixture.submit(2));
  CHECK(fixture.script.log ==
        Log{"tiles 10", "urgent", "order 1", "tiles 10", "urgent", "order 1"});
}

TEST_CASE("yield words: a launch that nobody asks runs once") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  fixture.scheduler->result(fixture.submit(1));
  CHECK(fixture.script.log == Log{"tiles 3", "order 0"});
}

TEST_CASE("yield words: launches yield that take longer than the first one did") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  fixture.script.during = [] { std::this_thread::sleep_for(std::chrono::microseconds(500)); };
  fixture.scheduler->result(fixture.submit(20));
  CHECK(fixture.script.log.size() == 2 * 20);
}

TEST_CASE("yield words: a task that is cancelled after it yielded gives all back") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  fixture.script.during = [&] {
    fixture.interrupt();
    fixture.scheduler->cancel(fixture.scheduler->live().front());
  };
  const TaskPointer task = fixture.submit(1);
  CHECK_THROWS_AS(fixture.scheduler->result(task), TaskCancelled);
  CHECK(fixture.script.log == Log{"tiles 3", "urgent", "order 1"});
  CHECK(fixture.scheduler->stats().reserved == Amount{});
  fixture.script = Script{};
  fixture.script.tiles = kTiles;
  fixture.scheduler->result(fixture.submit(1));  // the scheduler is as before
}

TEST_CASE("yield words: a task tells that its launch yielded") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  Script& script = fixture.script;
  std::vector<std::string> told;
  script.before = [&] {
    told.push_back(fixture.scheduler->explain(fixture.scheduler->live().front()));
  };
  script.during = [&] {
    if (script.tiles != kTiles) fixture.interrupt();
    script.tiles = kTiles;
  };
  fixture.scheduler->result(fixture.submit(1));
  REQUIRE(told.size() == 2);
  CHECK(told[0].find("yielded") == std::string::npos);
  CHECK(told[1].find("a launch yielded to more urgent work") != std::string::npos);
}

TEST_CASE("yield words: launches on other streams than the task's do not yield") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  const Stream other = Stream::create(observed.recorded.device);
  fixture.scheduler->result(
      fixture.scheduler->submit({.qos = Qos::best_effort}, make_work([&](const Stream& on) {
                                  fixture.launch_on(other);
                                  on.device().synchronize();
                                })));
  CHECK(fixture.asked == std::vector{false});
}

TEST_CASE("yield words: launches of burstable tasks are not cut") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  fixture.scheduler->result(fixture.scheduler->submit(
      {.qos = Qos::burstable}, make_work([&](const Stream& on) { fixture.launch_on(on); })));
  CHECK(fixture.asked.empty());
}

TEST_CASE("yield words: launches of a partition yield, too") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  const auto part = fixture.scheduler->partition(8, {.memory = 1 << 17, .pace = kShortWindows});
  for (int i = 0; i < 2; ++i) {
    part->result(part->submit({.qos = Qos::best_effort},
                              make_work([&](const Stream& on) { fixture.launch_on(on); })));
  }
  CHECK(fixture.asked == std::vector{true});
}

TEST_CASE("yield words: a task that is cancelled stops its launch on the device") {
  Fixture fixture(fake_device());
  testing::FakeDriver& driver = testing::FakeDriver::get();
  int before = 0;
  fixture.script.during = [&] {
    fixture.scheduler->cancel(fixture.scheduler->live().front());
    driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 3);
    before = driver.calls("cuMemcpyHtoDAsync");
  };
  CHECK_THROWS_AS(fixture.scheduler->result(fixture.submit(1)), TaskCancelled);
  CHECK(driver.calls("cuMemcpyHtoDAsync") > before);
  CHECK(fixture.scheduler->stats().reserved == Amount{});
}

TEST_CASE("yield words: orders overtake neither what the stream still does nor their clearing") {
  const Observed observed;
  Device& device = observed.recorded.device;
  if (!device.is_simulated()) return;  // other orders of the streams are made there alone
  const Stream low = Stream::create(device), high = Stream::create(device);
  const ContextGuard guard(device);
  const auto& driver = device.driver();
  const auto pool = std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device));
  for (int seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Buffer out(pool, 512, low);
    YieldOrders orders(high);
    sim::set_schedule_seed(seed);
    {
      const Buffer freed(pool, 512, low);  // its work is queued when its memory goes to the words
      device.check(driver.cuMemsetD32Async(freed.address(), 7, 128, low.handle()), "set");
      device.check(driver.cuMemcpyDtoDAsync(out.address(), freed.address(), 512, low.handle()),
                   "copy");
    }
    YieldWords words(low, pool, orders);
    words.reset();
    orders.send([&] { return YieldOrders::Words{words.addresses().order}; });
    high.synchronize();
    low.synchronize();
    std::uint32_t order = 0;
    device.check(driver.cuMemcpyDtoH(&order, words.addresses().order, sizeof order), "read");
    CHECK(order == 1);
    std::vector<std::uint32_t> values(128);
    device.check(driver.cuMemcpyDtoH(values.data(), out.address(), 512), "read");
    CHECK(values == std::vector<std::uint32_t>(128, 7));
    sim::set_schedule_seed(std::nullopt);
  }
}

TEST_CASE("yield words: a launch that fails is not reached by orders any more") {
  const Observed observed;
  Fixture fixture(observed.recorded.device);
  fixture.script.during = [] { throw std::runtime_error("no launch"); };
  const TaskPointer task = fixture.submit(1);
  CHECK_THROWS_AS(fixture.scheduler->result(task), std::runtime_error);
  CHECK(fixture.scheduler->stats().reserved == Amount{});
  fixture.interrupt();
  fixture.script = Script{};
  fixture.script.tiles = kTiles;
  fixture.scheduler->result(fixture.submit(1));
}

TEST_CASE("yield words: a device that is lost after a launch yielded fails the task") {
  Fixture fixture(fake_device());
  Script& script = fixture.script;
  script.during = [&] {
    fixture.interrupt();
    testing::FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS, 1000);
  };
  const TaskPointer task = fixture.submit(1);
  CHECK_THROWS_AS(fixture.scheduler->result(task), DeviceLost);
  CHECK(script.log == Log{"tiles 3", "urgent", "order 1"});
  CHECK(task->state() == TaskState::failed);
  CHECK(fixture.scheduler->stats().reserved == Amount{});
}

TEST_CASE("yield words: a call of the driver that fails gives all back once") {
  for (const char* const call :
       {"cuMemHostAlloc", "cuMemsetD32Async", "cuEventRecord", "cuEventQuery", "cuEventSynchronize",
        "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuStreamWaitEvent"}) {
    for (int skip = 0; skip < 6; ++skip) {
      CAPTURE(call);
      CAPTURE(skip);
      Fixture fixture(fake_device());
      Script& script = fixture.script;
      script.during = [&] {
        if (script.log.size() == 1) fixture.interrupt();
        script.tiles = kTiles;
      };
      const TaskPointer task = fixture.submit(1);
      testing::FakeDriver::get().fail(call, CUDA_ERROR_UNKNOWN, 1, skip);
      try {
        fixture.scheduler->result(task);
      } catch (const DriverError&) {}
      testing::FakeDriver::get().fail(call, CUDA_ERROR_UNKNOWN, 1, 1 << 30);
      fixture.scheduler->drain();
      CHECK(task->is_over());
      if (task->state() == TaskState::done)
        CHECK(script.log.at(script.log.size() - 2) == "tiles 10");
      CHECK(fixture.scheduler->stats().reserved == Amount{});
      fixture.script = Script{};
      fixture.script.tiles = kTiles;
      fixture.scheduler->result(fixture.submit(1));
      CHECK(fixture.script.log.back() == "order 0");
    }
  }
}
