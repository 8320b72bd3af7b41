// Each host allocation of the library fails once: an exception, nothing left behind, and the next
// run works.
#include "base/errors.h"
#include "base/log.h"
#include "fault/fault_fixture.h"
#include "sim/device.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// Allocations of this thread until one fails; 0: none does.
thread_local std::uint64_t countdown = 0;
/// Driver calls in progress in this thread. Their allocations are the simulated device's.
thread_local int in_driver = 0;
thread_local bool failed = false;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (countdown != 0 && in_driver == 0 && --countdown == 0) {
    failed = true;
    throw std::bad_alloc();
  }
  void* const memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes != 0 ? bytes : 1)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes, 0);
  } catch (...) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, tag);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace {

template <auto member>
struct Wrapper;

template <typename... Parameters, CUresult (*DriverApi::*member)(Parameters...)>
struct Wrapper<member> {
  static CUresult call(Parameters... parameters) {
    ++in_driver;
    const CUresult result = (faults().api().*member)(parameters...);
    --in_driver;
    return result;
  }
};

/// The faulty table. Its own allocations always succeed.
const DriverApi& sheltered_table() {
  static const DriverApi table = [] {
    DriverApi api;
#define KW_DRIVER(name, symbol, since, need, parameters) \
  api.name = &Wrapper<&DriverApi::name>::call;
#define KW_DRIVER_EXTENSION(name, parameters) api.name = &Wrapper<&DriverApi::name>::call;
#include "driver/driver_api.def"
    return api;
  }();
  return table;
}

/// The outcome of a run with a failing allocation, the one of this number.
struct Run {
  bool failed = false;  ///< there were as many
  bool threw = false;
  std::string message;
  std::string left;
  bool context_restored = true;
};

Run run_with(const Scenario& scenario, std::uint64_t number) {
  recorder().reset();
  const CUcontext before = current_context();
  Run run;
  failed = false;
  DeviceRegistry& registry = new_registry(scenario.seen);
  try {
    countdown = number;
    scenario.run(registry);
    countdown = 0;
  } catch (const std::exception& error) {
    countdown = 0;
    run.threw = true;
    run.message = error.what();
  }
  run.failed = failed;
  empty_pools(registry);
  for (const std::string& line : recorder().check()) {
    if (line.find("primary context") == std::string::npos) run.left += line + "\n";
  }
  run.context_restored = current_context() == before;
  return run;
}

}  // namespace

TEST_CASE("host memory: each allocation of every scenario fails once") {
  static std::atomic<int> logged = 0;
  set_log_sink([](LogLevel, std::string_view) { ++logged; });
  prepare_runtime();
  put_in_front(sheltered_table());
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const Run first = run_with(scenario, 0);  // compiles, and makes objects of the whole process
    REQUIRE_FALSE(first.threw);
    for (std::uint64_t number = 1; number < 100000; ++number) {
      CAPTURE(number);
      logged = 0;
      const Run run = run_with(scenario, number);
      CAPTURE(run.message);
      CAPTURE(run.left);
      // Without memory for its list, a destructor leaks the object and logs it.
      const bool said = !run.threw && logged.load() > 0;
      CHECK((run.left == "" || said));
      CHECK(run.context_restored);
      if (!run.failed) {
        CHECK_FALSE(run.threw);
        break;
      }
      if (number % 16 != 0) continue;
      const Run clean = run_with(scenario, 0);
      CAPTURE(clean.message);
      REQUIRE_FALSE(clean.threw);
    }
  }
  set_log_sink({});
}
