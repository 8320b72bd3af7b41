// Sticky errors: DeviceLost for good, quick and quiet, on one device alone. After reset() the
// device works again.
#include "array/array.h"
#include "base/errors.h"
#include "base/log.h"
#include "core/event.h"
#include "core/graph/graph.h"
#include "core/module.h"
#include "core/partition.h"
#include "fault/fault_fixture.h"
#include "memory/buffer.h"
#include "memory/memory_resource.h"
#include "memory/transfer.h"
#include "memory/transfer_engine.h"
#include "sim/device.h"
#include "unit/core/error_text.h"
#include "unit/core/saxpy.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

constexpr CUresult kSticky[] = {CUDA_ERROR_ECC_UNCORRECTABLE,
                                CUDA_ERROR_NVLINK_UNCORRECTABLE,
                                CUDA_ERROR_CONTAINED,
                                CUDA_ERROR_ILLEGAL_ADDRESS,
                                CUDA_ERROR_LAUNCH_TIMEOUT,
                                CUDA_ERROR_ASSERT,
                                CUDA_ERROR_HARDWARE_STACK_ERROR,
                                CUDA_ERROR_ILLEGAL_INSTRUCTION,
                                CUDA_ERROR_MISALIGNED_ADDRESS,
                                CUDA_ERROR_INVALID_ADDRESS_SPACE,
                                CUDA_ERROR_INVALID_PC,
                                CUDA_ERROR_LAUNCH_FAILED,
                                CUDA_ERROR_TENSOR_MEMORY_LEAK};

FaultPlan sticky_plan(CUresult result, std::string function, std::uint64_t call = 1) {
  FaultPlan plan;
  plan.function = std::move(function);
  plan.call = call;
  plan.result = result;
  plan.sticky = true;
  return plan;
}

/// Things made on a device, to be used and destroyed after it was lost.
struct Belongings {
  explicit Belongings(Device& its_device)
      : device(its_device),
        stream(Stream::create(device)),
        start(device),
        end(device),
        kernel(load_saxpy(device)),
        buffer(std::make_shared<DeviceResource>(device), 4096, stream),
        pooled(default_resource(device), 4096, stream),
        pinned(device, 4096),
        array(Array::empty(device, {64}, ScalarType::float32)),
        graph(device),
        partition(Partition::make(device, std::vector<PartitionRequest>(1)).front()),
        inside(partition.stream()),
        engine(std::make_unique<TransferEngine>(device)) {
    graph.capture(stream, [&] { launch(); });
    engine->upload(buffer.address(), host, sizeof host, stream).wait();
    engine->download(host, buffer.address(), sizeof host, stream).wait();
    pooled.use_on(Stream::legacy(device));
    start.record(stream);
    end.record(stream);
  }

  void launch() {
    float a = 1;
    int n = 64;
    CUdeviceptr x = array.address();
    void* arguments[] = {&a, &x, &x, &n};
    kernel.launch({.grid = {1}, .block = {64}, .stream = stream}, arguments);
  }

  /// Every kind of call to the driver.
  std::vector<std::pair<const char*, std::function<void()>>> uses() {
    std::vector<std::pair<const char*, std::function<void()>>> list;
    const auto add = [&](const char* name, std::function<void()> use) {
      list.emplace_back(name, std::move(use));
    };
    add("synchronize", [this] { device.synchronize(); });
    add("synchronize with a deadline", [this] { device.synchronize(std::chrono::seconds(20)); });
    add("memory_info", [this] { device.memory_info(); });
    add("stream", [this] { Stream::create(device); });
    add("stream.synchronize", [this] { stream.synchronize(); });
    add("stream.synchronize with a deadline",
        [this] { stream.synchronize(std::chrono::seconds(20)); });
    add("stream.done", [this] { (void)stream.done(); });
    add("stream.priority", [this] { (void)stream.priority(); });
    add("stream.record", [this] { (void)stream.record(); });
    add("partition.stream", [this] { partition.stream(); });
    add("work in a partition", [this] { inside.synchronize(); });
    add("stream.wait", [this] { stream.wait(end); });
    add("event", [this] { const Event made(device); });
    add("event.record", [this] { end.record(stream); });
    add("event.synchronize", [this] { end.synchronize(); });
    add("event.done", [this] { (void)end.done(); });
    add("event.elapsed_ms", [this] { (void)end.elapsed_ms(start); });
    add("module", [this] { Module::load(device, kSaxpyPtx); });
    add("module.function", [this] { (void)kernel.module().function("saxpy"); });
    add("module.symbol", [this] { (void)kernel.module().symbol("counters"); });
    add("kernel.launch", [this] { launch(); });
    add("kernel.occupancy", [this] { (void)kernel.occupancy(64); });
    add("kernel.suggest_block", [this] { (void)kernel.suggest_block(); });
    add("buffer", [this] { const Buffer made(default_resource(device), 64, {}); });
    add("pinned buffer", [this] { const PinnedBuffer made(device, 64); });
    add("fill", [this] { fill(device, buffer.address(), 0, 4, 16); });
    add("copy_to_device", [this] { copy_to_device(device, buffer.address(), host, 64); });
    add("copy_to_host", [this] { copy_to_host(device, host, buffer.address(), 64, stream); });
    add("copy_on_device",
        [this] { copy_on_device(device, buffer.address(), pooled.address(), 64); });
    add("array", [this] { Array::from_host(device, host, {16}, ScalarType::float32); });
    add("array.to_host", [this] { array.to_host(host); });
    add("array.assign_from_host", [this] { array.assign_from_host(host); });
    add("graph.launch", [this] { graph.launch(stream); });
    add("graph.capture", [this] { graph.capture(stream, [this] { launch(); }); });
    add("upload", [this] { engine->upload(buffer.address(), host, 64).wait(); });
    add("download", [this] { engine->download(host, buffer.address(), 64).wait(); });
    return list;
  }

  Device& device;
  Stream stream;
  Event start, end;
  Kernel kernel;
  Buffer buffer, pooled;
  PinnedBuffer pinned;
  Array array;
  Graph graph;
  Partition partition;
  Stream inside;
  std::unique_ptr<TransferEngine> engine;
  char host[4096] = {};
};

void check_works(Device& device) {
  CAPTURE(device.identify());
  Belongings things(device);
  for (const auto& use : things.uses()) {
    CAPTURE(use.first);
    CHECK_NOTHROW(use.second());
  }
}

/// Driver calls up to now, once finishing threads have made their last ones.
std::uint64_t settled_calls() {
  std::uint64_t calls = faults().calls();
  for (int still = 0; still < 3; ++still) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (faults().calls() != calls) still = 0;
    calls = faults().calls();
  }
  return calls;
}

/// All uses of the belongings raise DeviceLost with one message, without any driver call.
void check_lost(Belongings& things, const std::string& message) {
  const std::uint64_t calls = settled_calls();
  const auto begin = std::chrono::steady_clock::now();
  int uses = 0;
  for (int round = 0; round < 10; ++round) {
    for (const auto& use : things.uses()) {
      CAPTURE(use.first);
      CHECK(message_of<DeviceLost>(use.second) == message);
      ++uses;
    }
  }
  CHECK(faults().calls() == calls);
  // Generous, for sanitizers and busy machines: a message is made in microseconds.
  CHECK((std::chrono::steady_clock::now() - begin) / uses < std::chrono::milliseconds(5));
}

}  // namespace

TEST_CASE("sticky: each code makes the device lost, once and for all, and no other device") {
  for (const CUresult code : kSticky) {
    CAPTURE(code);
    DeviceRegistry& registry = new_registry(Seen::as_gpu);
    Device& device = registry.by_index(1);
    LogLines log;
    {
      Belongings things(device);
      things.launch();
      faults().arm(sticky_plan(code, "cuStreamSynchronize"));
      const std::string message = message_of<DeviceLost>([&] { things.stream.synchronize(); });
      CHECK(contains(message, "cuda:1"));
      CHECK(contains(message, result_name(code)));
      CHECK(contains(message, "Last launches, newest first: saxpy"));
      CHECK(contains(message, "start a new process"));
      CHECK(device.lost());
      check_lost(things, message);
      check_works(registry.by_index(0));
      check_works(registry.by_index(3));
      const std::uint64_t calls = settled_calls();
      log.lines.clear();
      // Destructors: quiet, and none of them asks the driver.
      things.stream = Stream();
      things.buffer = Buffer();
      things.pooled = Buffer();
      things.pinned = PinnedBuffer();
      things.array = Array();
      things.graph = Graph(registry.by_index(0));
      const std::uint64_t before_engine = faults().calls();
      things.engine.reset();
      CHECK(faults().calls() == before_engine);
      CHECK(faults().calls() == calls);
    }
    CHECK(log.lines == std::vector<std::string>{});
    faults().disarm();
    CHECK(device.lost());  // also when the driver would answer again
    CHECK_THROWS_AS(device.synchronize(), DeviceLost);
  }
}

TEST_CASE("sticky: whichever call of a scenario meets the error, the device is lost from then on") {
  set_log_sink([](LogLevel, std::string_view) {});
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.seen != Seen::as_gpu) continue;
    for (std::uint64_t call = 1; call < 5000; ++call) {
      CAPTURE(scenario.name);
      CAPTURE(call);
      const Outcome outcome =
          run_under(scenario, sticky_plan(CUDA_ERROR_ILLEGAL_ADDRESS, "", call), nullptr);
      if (outcome.fired == 0) break;
      CAPTURE(outcome.function);
      CAPTURE(outcome.message);
      const bool early = outcome.function == "cuInit" || outcome.function == "cuDeviceGetCount" ||
                         outcome.function == "cuDeviceGet" ||
                         outcome.function == "cuDevicePrimaryCtxRetain";
      CHECK(
          (outcome.was_lost || early || (!outcome.threw && may_pass(scenario, outcome.function))));
      CHECK((!outcome.threw || outcome.threw_error));
      CHECK(outcome.context_restored);
    }
  }
  set_log_sink({});
}

TEST_CASE("sticky: a release that meets the error makes the device lost for the next call") {
  DeviceRegistry& registry = new_registry(Seen::as_gpu);
  Device& device = registry.by_index(0);
  LogLines log;
  Stream stream = Stream::create(device);
  faults().arm(sticky_plan(CUDA_ERROR_LAUNCH_FAILED, "cuStreamDestroy"));
  stream = Stream();
  CHECK(log.lines.size() == 1);
  CHECK(device.lost());
  CHECK_THROWS_AS(device.memory_info(), DeviceLost);
  faults().disarm();
}

TEST_CASE(
    "sticky: threads that use the device when it is lost all get DeviceLost, and none hangs") {
  DeviceRegistry& registry = new_registry(Seen::as_gpu);
  Device& device = registry.by_index(2);
  Belongings things(device);
  std::atomic<int> lost = 0;
  std::atomic<int> other = 0;
  FaultPlan plan = sticky_plan(CUDA_ERROR_ASSERT, "cuStreamQuery", 100);
  plan.delay = std::chrono::milliseconds(5);
  faults().arm(plan);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        for (int k = 0; k < 100000; ++k) {
          (void)things.stream.done();
          things.end.record(things.stream);
        }
      } catch (const DeviceLost&) {
        ++lost;
      } catch (...) {
        ++other;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(lost == 4);
  CHECK(other == 0);
  faults().disarm();
}

TEST_CASE("reset: after a sticky error the device works again, and what was made before does not") {
  for (const CUresult code : kSticky) {
    CAPTURE(code);
    DeviceRegistry& registry = new_registry(Seen::as_gpu);
    Device& device = registry.by_index(1);
    Belongings old(device);
    faults().arm(sticky_plan(code, "cuCtxSynchronize"));
    const std::string first = message_of<DeviceLost>([&] { device.synchronize(); });
    Device& fresh = device.reset();
    CHECK(&fresh != &device);
    CHECK(&device.newest() == &fresh);
    CHECK(&device.reset() == &fresh);
    CHECK(&registry.by_index(1) == &fresh);
    CHECK(&registry.by_name("cuda:1") == &fresh);
    CHECK(fresh.generation() == 1);
    CHECK(device.lost());
    CHECK_FALSE(fresh.lost());
    const std::string message = message_of<DeviceLost>([&] { device.synchronize(); });
    CHECK(contains(message, "cuda:1 (Kernwright simulated device) was reset"));
    CHECK(contains(message, first));
    check_lost(old, message);
    check_works(fresh);
    check_works(registry.by_index(0));
    // Objects of the two generations do not mix.
    const Stream stream = Stream::create(fresh);
    CHECK_THROWS_AS(old.end.record(stream), InvalidArgument);
    CHECK_THROWS_AS(stream.wait(old.end), Error);
    faults().disarm();
  }
}

TEST_CASE("reset: a healthy device, the simulated one, and one that was never used") {
  for (const Seen seen : {Seen::as_gpu, Seen::as_simulated}) {
    DeviceRegistry& registry = new_registry(seen);
    Device& device = registry.by_index(0);
    auto old = std::make_unique<Belongings>(device);
    CUcontext other = nullptr;
    sim::driver_api().cuCtxGetCurrent(&other);
    Device& fresh = device.reset();
    check_works(fresh);
    const std::string message = message_of<DeviceLost>([&] { old->stream.synchronize(); });
    CHECK(contains(message, "was reset: what was made on it before cannot be used any more"));
    const std::uint64_t calls = settled_calls();
    old.reset();
    CHECK(faults().calls() == calls);
    Device& again = fresh.reset();
    CHECK(again.generation() == 2);
    CHECK(&device.newest() == &again);
    check_works(again);
    Device& unused = registry.by_index(3).reset();
    check_works(unused);
    CHECK(current_context() == other);
  }
}

TEST_CASE("reset: a driver that makes no new context afterwards leaves the device lost") {
  DeviceRegistry& registry = new_registry(Seen::as_gpu);
  Device& device = registry.by_index(0);
  Belongings things(device);
  FaultPlan plan;
  plan.function = "cuDevicePrimaryCtxRetain";
  plan.result = CUDA_ERROR_ILLEGAL_ADDRESS;
  faults().arm(plan);
  const std::string message = message_of<DeviceLost>([&] { device.reset(); });
  CHECK(contains(message, "makes no new context in this process: CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(contains(message, "Start a new process"));
  CHECK(device.lost());
  CHECK(message_of<DeviceLost>([&] { things.launch(); }) == message);
  // The library believes a driver that works again.
  faults().disarm();
  check_works(device.reset());
}

TEST_CASE("reset: what the driver refuses changes nothing, and can be tried again") {
  DeviceRegistry& registry = new_registry(Seen::as_gpu);
  Device& device = registry.by_index(0);
  Belongings things(device);
  FaultPlan plan;
  plan.function = "cuDevicePrimaryCtxReset";
  plan.result = CUDA_ERROR_NOT_PERMITTED;
  faults().arm(plan);
  const std::string message = message_of<DeviceLost>([&] { device.reset(); });
  CHECK(contains(message, "cannot be reset: cuDevicePrimaryCtxReset: CUDA_ERROR_NOT_PERMITTED"));
  CHECK_FALSE(device.lost());
  CHECK(&device.newest() == &device);
  CHECK_NOTHROW(things.launch());
  // Once the context is gone, the next reset makes a device that could not be made before.
  plan.function = "cuDeviceGetName";
  faults().arm(plan);
  CHECK_THROWS_AS(device.reset(), Error);
  CHECK(device.lost());
  faults().disarm();
  check_works(device.reset());
  CHECK_THROWS_AS(things.launch(), DeviceLost);
}
