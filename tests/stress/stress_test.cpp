// Thousands of streams, events and modules, and random work of several threads: memory and handles
// stay as they are. On the device that KERNWRIGHT_DEVICE names; KERNWRIGHT_SOAK lengthens it.
#include "array/array.h"
#include "core/event.h"
#include "core/kernel.h"
#include "core/runtime.h"
#include "driver/driver_loader.h"
#include "driver/fault_driver.h"
#include "memory/memory_resource.h"
#include "memory/pinned_resource.h"
#include "sim/device.h"
#include "stress/random_work.h"
#include "unit/core/saxpy.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::testing;
using std::chrono::steady_clock;

namespace {

bool wants_gpu() {
  const char* const wanted = std::getenv("KERNWRIGHT_DEVICE");
  return wanted != nullptr && std::string_view(wanted).starts_with("cuda");
}

/// Counts the calls of the driver behind all devices.
FaultDriver& counter() {
  static auto* const instance = [] {
    const DriverApi* const real = wants_gpu() ? load_cuda_driver() : nullptr;
    return new FaultDriver(real != nullptr ? *real : sim::driver_api());
  }();
  return *instance;
}

Device& device_under_test() {
  static Device& device = []() -> Device& {
    if (wants_gpu() && load_cuda_driver() != nullptr) Runtime::override_cuda(&counter().api());
    Runtime::register_sim([]() -> const DriverApi& { return counter().api(); });
    return Runtime::get().current_device();
  }();
  return device;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t calls(std::initializer_list<const char*> names) {
  std::uint64_t all = 0;
  for (const char* name : names) all += counter().calls(name);
  return all;
}

/// Objects of the driver that were made and not destroyed.
std::int64_t live_handles() {
  const std::uint64_t made =
      calls({"cuStreamCreate", "cuStreamCreateWithPriority", "cuEventCreate", "cuModuleLoadData",
             "cuModuleLoadDataEx", "cuMemAlloc", "cuMemAllocAsync", "cuMemHostAlloc",
             "cuGraphInstantiateWithFlags"});
  const std::uint64_t gone =
      calls({"cuStreamDestroy", "cuEventDestroy", "cuModuleUnload", "cuMemFree", "cuMemFreeAsync",
             "cuMemFreeHost", "cuGraphExecDestroy"});
  return static_cast<std::int64_t>(made - gone);
}

/// Sanitizers keep freed memory, and have leak checks of their own.
constexpr bool measures_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

/// Runs `round` up to `count` times or for ten seconds. Memory of host and device after the first
/// fifth must be what it is in the end, and handles what they were before.
template <typename Round>
void check_flat(int count, Round&& round) {
  Device& device = device_under_test();
  device.context();
  default_resource(device)->trim();
  const std::int64_t handles = live_handles();
  const auto deadline = steady_clock::now() + std::chrono::seconds(10);
  std::uint64_t host = 0;
  std::uint64_t free = 0;
  int done = 0;
  while (done < count && steady_clock::now() < deadline) {
    round();
    if (++done == std::max(1, count / 5)) {
      host = resident_bytes();
      free = device.memory_info().free;
    }
  }
  MESSAGE(done << " rounds");
  device.synchronize();
  default_resource(device)->trim();
  CHECK(live_handles() == handles);
  if (host == 0 || !measures_memory()) return;
  constexpr std::uint64_t kSlack = 4 << 20;
  CHECK(resident_bytes() <= host + kSlack);
  // Others may use the same GPU: some of its memory may come and go.
  CHECK(device.memory_info().free + 16 * kSlack >= free);
}

}  // namespace

TEST_CASE("stress: 10^5 streams are made and destroyed") {
  Device& device = device_under_test();
  check_flat(100000, [&] { Stream::create(device); });
}

TEST_CASE("stress: 10^5 events are made, recorded and destroyed") {
  Device& device = device_under_test();
  const Stream stream = Stream::create(device);
  check_flat(100000, [&] { stream.wait(stream.record()); });
}

TEST_CASE("stress: 10^4 modules are loaded, used and dropped") {
  Device& device = device_under_test();
  const Array array = Array::empty(device, {64}, ScalarType::float32);
  check_flat(10000, [&] {
    const Kernel kernel(Module::load(device, kSaxpyPtx), saxpy_signature());
    float a = 0;
    int n = 0;
    CUdeviceptr address = array.address();
    void* arguments[] = {&a, &address, &address, &n};
    kernel.launch({.grid = {1}, .block = {32}}, arguments);
  });
  device.synchronize();
}

TEST_CASE("stress: 10^5 arrays come and go on two streams") {
  Device& device = device_under_test();
  const Stream streams[] = {Stream::create(device), Stream::create(device)};
  int number = 0;
  check_flat(100000, [&] {
    const Array array =
        Array::empty(device, {1 + number % 5000}, ScalarType::float32, streams[number % 2]);
    array.use_on(streams[(number / 2) % 2]);
    ++number;
  });
}

TEST_CASE("stress: random work of three threads, checked against a model") {
  Device& device = device_under_test();
  const char* const asked = std::getenv("KERNWRIGHT_SOAK");
  const double seconds = asked != nullptr && *asked != '\0' ? std::atof(asked) : 2;
  const char* const given = std::getenv("KERNWRIGHT_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  std::vector<std::uint64_t> resident;
  default_resource(device)->trim();
  const std::int64_t handles = live_handles();
  std::atomic<std::uint64_t> steps = 0;
  // In rounds, so that memory can be looked at while nothing is in use.
  const int rounds = 8;
  for (int round = 0; round < rounds; ++round) {
    const auto deadline =
        steady_clock::now() + std::chrono::milliseconds(static_cast<int>(seconds * 1000 / rounds));
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(3);
    for (std::size_t i = 0; i < failures.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          steps += work_at_random(device, seed * 1000 + static_cast<std::uint64_t>(round) * 10 + i,
                                  deadline);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    device.synchronize();
    resident.push_back(resident_bytes());
  }
  default_resource(device)->trim();
  pinned_resource(device)->trim();
  MESSAGE(steps.load() << " steps in " << seconds << " s, seed " << seed);
  CHECK(steps > 100);
  CHECK(live_handles() == handles);
  if (!measures_memory()) return;
  // The first half fills pools and caches; the second adds nothing.
  const std::uint64_t first = *std::max_element(resident.begin(), resident.begin() + rounds / 2);
  CHECK(resident.back() <= first + (std::uint64_t{16} << 20));
}
