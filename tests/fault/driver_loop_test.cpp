// Each driver call of every scenario fails once: the promised exception, nothing left behind, and
// the next clean run works.
#include "base/errors.h"
#include "base/log.h"
#include "fault/fault_fixture.h"
#include "sim/device.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// Nothing of a failing run is printed.
struct Quiet {
  Quiet() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~Quiet() { set_log_sink({}); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

FaultPlan nth(std::uint64_t call, CUresult result,
              FaultPlan::Repeat repeat = FaultPlan::Repeat::once,
              FaultPlan::Moment moment = FaultPlan::Moment::before) {
  FaultPlan plan;
  plan.call = call;
  plan.result = result;
  plan.repeat = repeat;
  plan.moment = moment;
  return plan;
}

/// No context, or one of another device.
CUcontext some_context(std::uint64_t number) {
  if (number % 2 == 0) return nullptr;
  static CUcontext of_last_device = [] {
    CUcontext made = nullptr;
    sim::driver_api().cuDevicePrimaryCtxRetain(&made, 3);
    return made;
  }();
  return of_last_device;
}

/// Runs the scenario with call 1, 2, ... failing until a run meets no fault.
template <typename Check>
void fail_each_call(const Scenario& scenario, const FaultPlan& first, Check&& check) {
  constexpr std::uint64_t kTooMany = 5000;
  FaultPlan plan = first;
  for (plan.call = 1; plan.call < kTooMany; ++plan.call) {
    CAPTURE(scenario.name);
    CAPTURE(plan.call);
    const Outcome outcome = run_under(scenario, plan, some_context(plan.call));
    CAPTURE(outcome.function);
    CAPTURE(outcome.message);
    if (outcome.fired == 0) {
      REQUIRE_FALSE(outcome.threw);
      CHECK(outcome.left == "");
      CHECK(outcome.context_restored);
      return;
    }
    check(outcome);
    const Outcome clean = run_under(scenario, nth(kTooMany, CUDA_SUCCESS), some_context(plan.call));
    CAPTURE(clean.message);
    REQUIRE_FALSE(clean.threw);
    CHECK(clean.left == "");
  }
  FAIL("the scenario does not end");
}

/// Names of the driver's functions called by the library's sources through a table.
std::set<std::string> called_functions() {
  std::set<std::string> names;
  const std::regex call("(?:\\.|->)(cu[A-Z]\\w+|kw[A-Z]\\w+)\\(");
  const std::filesystem::path root(KW_SOURCE_FOLDER);
  for (const char* room : {"runtime/core", "runtime/memory", "runtime/array", "runtime/schedule",
                           "jit", "kernels_src"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      const std::string source = text.str();
      for (std::sregex_iterator match(source.begin(), source.end(), call), end; match != end;
           ++match) {
        names.insert((*match)[1]);
      }
    }
  }
  return names;
}

/// Whether the library reports any failure of the function as an error of its own. Without an
/// answer, a stream counts as not captured.
bool is_translated(const std::string& function) {
  return function == "cuStreamGetCaptureInfo" || function == "cuStreamIsCapturing";
}

/// Functions missing in the simulated device: the loop cannot reach code behind them.
std::set<std::string> absent_functions() {
  std::set<std::string> names;
  const DriverApi& sim = sim::driver_api();
  const DriverApi none;
  std::vector<const void*> stubs;
  for_each_slot(none, [&](const DriverRow&, const auto& slot) {
    stubs.push_back(reinterpret_cast<const void*>(slot));
  });
  std::size_t row_number = 0;
  for_each_slot(sim, [&](const DriverRow& row, const auto& slot) {
    if (reinterpret_cast<const void*>(slot) == stubs[row_number++]) names.insert(row.name);
  });
  return names;
}

}  // namespace

TEST_CASE("driver faults: each call fails once") {
  const Quiet quiet;
  for (const Scenario& scenario : all_scenarios()) {
    fail_each_call(scenario, nth(1, CUDA_ERROR_UNKNOWN), [&](const Outcome& outcome) {
      CHECK((outcome.threw_error || (!outcome.threw && may_pass(scenario, outcome.function))));
      if (outcome.threw_error && !is_translated(outcome.function)) {
        CHECK(outcome.code == CUDA_ERROR_UNKNOWN);
      }
      // The context made by a reset, or the first one of all.
      if (outcome.function != "cuDevicePrimaryCtxRetain") {
        CHECK(outcome.was_lost == (outcome.function == "cuDevicePrimaryCtxReset"));
      }
      if (!may_leave(scenario, outcome.function)) CHECK(outcome.left == "");
      CHECK(outcome.left_count <= 1);
      CHECK(outcome.context_restored);
    });
  }
}

TEST_CASE("driver faults: a call that took place but whose result was lost") {
  const Quiet quiet;
  for (const Scenario& scenario : all_scenarios()) {
    const FaultPlan plan =
        nth(1, CUDA_ERROR_UNKNOWN, FaultPlan::Repeat::once, FaultPlan::Moment::after);
    fail_each_call(scenario, plan, [&](const Outcome& outcome) {
      CHECK((outcome.threw_error || (!outcome.threw && may_pass(scenario, outcome.function))));
      CHECK(outcome.context_restored);
    });
  }
}

TEST_CASE("driver faults: out of memory for one call") {
  const Quiet quiet;
  for (const Scenario& scenario : all_scenarios()) {
    fail_each_call(scenario, nth(1, CUDA_ERROR_OUT_OF_MEMORY), [&](const Outcome& outcome) {
      const bool retried =
          outcome.function.starts_with("cuMemAlloc") || outcome.function == "cuMemHostAlloc";
      const bool passed = !outcome.threw && (retried || may_pass(scenario, outcome.function));
      const bool translated = outcome.threw_error && is_translated(outcome.function);
      CHECK(
          (passed || translated || outcome.was_memory || outcome.code == CUDA_ERROR_OUT_OF_MEMORY));
      if (!may_leave(scenario, outcome.function)) CHECK(outcome.left == "");
      CHECK(outcome.context_restored);
    });
  }
}

TEST_CASE(
    "driver faults: all calls from the Nth on fail, so every function the library calls did") {
  const Quiet quiet;
  for (const CUresult result : {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY}) {
    for (const Scenario& scenario : all_scenarios()) {
      fail_each_call(scenario, nth(1, result, FaultPlan::Repeat::forever),
                     [&](const Outcome& outcome) {
                       CHECK((!outcome.threw || outcome.threw_error));
                       CHECK((outcome.threw || may_pass(scenario, outcome.function)));
                     });
    }
  }
  std::set<std::string> failed = faults().failed_functions();
  failed.merge(absent_functions());
  std::string untouched;
  for (const std::string& name : called_functions()) {
    if (!failed.contains(name)) untouched += name + " ";
  }
  CHECK(untouched == "");
}

TEST_CASE("driver faults: want of memory that lasts is OutOfMemory with its sizes, each time") {
  const Quiet quiet;
  for (const Scenario& scenario : memory_scenarios()) {
    for (const char* function : {"cuMemAllocAsync", "cuMemAlloc", "cuMemHostAlloc"}) {
      FaultPlan plan = nth(1, CUDA_ERROR_OUT_OF_MEMORY, FaultPlan::Repeat::forever);
      plan.function = function;
      fail_each_call(scenario, plan, [&](const Outcome& outcome) {
        CHECK(outcome.was_memory);
        CHECK(outcome.left == "");
        CHECK(outcome.context_restored);
      });
    }
  }
}
