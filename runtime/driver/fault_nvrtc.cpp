// Wrappers around NVRTC's functions that fail when the plan says so.
#include "driver/fault_nvrtc.h"

#include "base/errors.h"
#include "base/format.h"

#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>

namespace kernwright {

namespace {

struct State {
  NvrtcApi inner;
  FaultSchedule schedule;
  std::atomic<bool> armed{false};
  std::atomic<std::int64_t> programs{0};
};

/// Leaked on purpose, so that a compile in the last moment of the process still has it.
State& shared_state() {
  static auto* const state = new State;
  return *state;
}

std::atomic<bool> is_active = false;

/// The differences between the wrappers of slots: name and place in the table.
template <auto member, const char* name>
struct Wrapper;

template <typename Result, typename... Parameters, const char* name,
          Result (*NvrtcApi::*member)(Parameters...)>
struct Wrapper<member, name> {
  static Result call(Parameters... parameters) {
    State& state = shared_state();
    if constexpr (std::is_same_v<Result, nvrtcResult>) {
      if (is_active.load(std::memory_order_acquire) &&
          state.armed.load(std::memory_order_acquire)) {
        if (const auto plan = state.schedule.enter(name)) {
          if (plan->delay.count() > 0) std::this_thread::sleep_for(plan->delay);
          if (plan->moment == FaultPlan::Moment::after) forward(state, parameters...);
          return static_cast<nvrtcResult>(plan->result);
        }
      }
    }
    return forward(state, parameters...);
  }

  static Result forward(State& state, Parameters... parameters) {
    const Result result = (state.inner.*member)(parameters...);
    if constexpr (std::is_same_v<Result, nvrtcResult>) {
      if (result == NVRTC_SUCCESS && std::string_view(name) == "nvrtcCreateProgram") {
        state.programs.fetch_add(1);
      }
      if (result == NVRTC_SUCCESS && std::string_view(name) == "nvrtcDestroyProgram") {
        state.programs.fetch_sub(1);
      }
    }
    return result;
  }
};

#define KW_NVRTC(result, name, since, need, parameters) constexpr char k_##name[] = #name;
#include "driver/nvrtc_api.def"

NvrtcApi make_table() {
  NvrtcApi api;
#define KW_NVRTC(result, name, since, need, parameters) \
  api.name = &Wrapper<&NvrtcApi::name, k_##name>::call;
#include "driver/nvrtc_api.def"
  return api;
}

bool is_known(std::string_view function) {
  bool found = false;
  const NvrtcApi table;
  for_each_nvrtc_slot(table,
                      [&](const NvrtcRow& row, const auto&) { found |= function == row.name; });
  return found;
}

}  // namespace

FaultNvrtc::FaultNvrtc(const NvrtcApi& inner) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (is_active.load()) {
    throw Error("there is a FaultNvrtc already; only one can be active at a time");
  }
  State& state = shared_state();
  state.inner = inner;
  state.programs.store(0);
  state.schedule.reset();
  is_active.store(true, std::memory_order_release);
}

FaultNvrtc::~FaultNvrtc() {
  disarm();
  is_active.store(false);
}

const NvrtcApi& FaultNvrtc::api() const noexcept {
  static const NvrtcApi table = make_table();
  return table;
}

FaultSchedule& FaultNvrtc::schedule() const noexcept { return shared_state().schedule; }

void FaultNvrtc::arm(const FaultPlan& plan) {
  if (!plan.function.empty() && !is_known(plan.function)) {
    throw NameNotFound(format("NVRTC's table has no function {}", plan.function));
  }
  schedule().arm(plan);
  shared_state().armed.store(true, std::memory_order_release);
}

void FaultNvrtc::disarm() {
  shared_state().armed.store(false, std::memory_order_release);
  schedule().disarm();
}

std::uint64_t FaultNvrtc::fired() const { return schedule().fired(); }

std::string FaultNvrtc::last_function() const { return schedule().last_function(); }

std::set<std::string> FaultNvrtc::failed_functions() const { return schedule().failed_functions(); }

std::int64_t FaultNvrtc::live_programs() const noexcept { return shared_state().programs.load(); }

}  // namespace kernwright
