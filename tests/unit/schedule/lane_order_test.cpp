// Two threads end tasks of one stream at once: the list of the stream has the order of the ends.
#include "core/device_registry.h"
#include "schedule/scheduler.h"
#include "sim/device.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;

namespace {

constexpr int kOthers = 1000;  ///< the number of events without a record

/// What the driver of the test knows of events: the n-th record since `is_armed` is number n.
struct Records {
  std::atomic<bool> is_armed = false;
  std::atomic<int> count = 0;
  std::atomic<int> done = 0;  ///< ends up to this number have happened
  std::mutex mutex;
  std::map<CUevent, int> numbers;
};

Records& records() {
  static Records instance;
  return instance;
}

/// Waits, not for ever, until the condition holds.
template <typename Condition>
void wait_until(const Condition& holds, std::chrono::milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  while (!holds() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

CUresult record(CUevent event, CUstream) {
  Records& all = records();
  if (!all.is_armed) return CUDA_SUCCESS;
  int number = 0;
  {
    const std::lock_guard lock(all.mutex);
    number = ++all.count;
    all.numbers[event] = number;
  }
  // The first end is recorded, and its thread is late: another one may come first from here on.
  if (number == 1) wait_until([&] { return all.count > 1; }, 100ms);
  return CUDA_SUCCESS;
}

CUresult query(CUevent event) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const auto number = all.numbers.find(event);
  const int order = number != all.numbers.end() ? number->second : kOthers;
  return order <= all.done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult elapsed(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 0;
  return CUDA_SUCCESS;
}

/// A device whose events end when the test says so.
Device& device_of_records() {
  static DeviceRegistry registry([] {
    DeviceRegistry::Options options;
    options.sim = []() -> const DriverApi& {
      static const DriverApi api = [] {
        DriverApi made = sim::driver_api();
        made.cuEventRecord = &record;
        made.cuEventQuery = &query;
        made.cuEventElapsedTime = &elapsed;
        return made;
      }();
      return api;
    };
    options.wanted = "sim";
    return options;
  }());
  return registry.by_index(0);
}

}  // namespace

TEST_CASE("lane order: ends of one stream are seen in their order, whichever thread is first") {
  Records& all = records();
  Scheduler scheduler(device_of_records(), {.memory = 1000, .background = false});
  const auto nothing = [](const Stream&) {};
  const auto first = scheduler.submit(
      {}, make_work([&](const Stream&) { wait_until([&] { return all.is_armed.load(); }, 20s); }));
  std::thread early([&] { scheduler.step(); });
  wait_until([&] { return first->state() == TaskState::running; }, 20s);
  // The other streams of the class have a task each, so that the next one is on that of the first.
  for (int i = 0; i < 2; ++i) {
    scheduler.submit({}, make_work(nothing));
    scheduler.step();
  }
  const auto second = scheduler.submit({}, make_work([&](const Stream&) {
                                         all.is_armed = true;
                                         wait_until([&] { return all.count != 0; }, 20s);
                                       }));
  std::thread late([&] { scheduler.step(); });
  early.join();
  late.join();
  CHECK(all.count == 2);
  CHECK(first->state() == TaskState::running);
  all.done = 1;
  scheduler.reap();
  CHECK(first->state() == TaskState::done);
  CHECK(second->state() == TaskState::running);
  all.done = kOthers;
  scheduler.drain();
  CHECK(second->state() == TaskState::done);
}
