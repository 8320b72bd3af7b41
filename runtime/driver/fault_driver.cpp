// Wrappers around every slot: count the call, fail it when the plan or a broken context says so.
#include "driver/fault_driver.h"

#include "base/errors.h"
#include "base/format.h"
#include "driver/driver_rows.h"

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace kernwright {

namespace {

using detail::kRowNames;
using detail::kRows;
using detail::Row;

/// A context that answers everything with one result.
struct BrokenContext {
  CUcontext context;
  CUdevice device;
  CUresult result;
};

struct State {
  DriverApi inner;
  FaultSchedule schedule;
  std::array<std::atomic<std::uint64_t>, kRows> calls{};
  std::atomic<std::uint64_t> all_calls{0};
  std::atomic<bool> armed{false};   ///< a plan is armed
  std::atomic<bool> broken{false};  ///< some context is broken
  std::atomic<void (*)(const char*)> observer{nullptr};
  std::mutex mutex;  ///< guards contexts
  std::vector<BrokenContext> contexts;

  /// The result of calls in a broken context.
  CUresult refusal();
  void break_current(CUresult result);
  void repair(CUdevice device);
};

/// One for all fault drivers, as one exists at a time; leaked on purpose, so that a call in flight
/// never loses it.
State& shared_state() {
  static auto* const state = new State;
  return *state;
}

std::atomic<bool> is_active = false;

CUresult State::refusal() {
  CUcontext current = nullptr;
  if (inner.cuCtxGetCurrent(&current) != CUDA_SUCCESS) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex);
  for (const BrokenContext& entry : contexts) {
    if (entry.context == current) return entry.result;
  }
  return CUDA_SUCCESS;
}

void State::break_current(CUresult result) {
  CUcontext current = nullptr;
  CUdevice device = 0;
  if (inner.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return;
  if (inner.cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
  const std::lock_guard lock(mutex);
  contexts.push_back({current, device, result});
  broken.store(true, std::memory_order_release);
}

void State::repair(CUdevice device) {
  const std::lock_guard lock(mutex);
  std::erase_if(contexts, [&](const BrokenContext& entry) { return entry.device == device; });
  broken.store(!contexts.empty(), std::memory_order_release);
}

/// Whether the function does its work in the current context. The others ask for or select devices
/// and contexts, and go on working when a context is broken.
constexpr bool works_in_context(std::string_view name) {
  for (const std::string_view prefix : {"cuInit", "cuDriver", "cuGet", "cuDevice", "kw"}) {
    if (name.starts_with(prefix)) return false;
  }
  for (const std::string_view other : {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent",
                                       "cuCtxPopCurrent", "cuCtxGetDevice"}) {
    if (name == other) return false;
  }
  return true;
}

/// A wrapper's decision about one call.
struct Verdict {
  bool runs = true;      ///< the driver is called
  bool answers = false;  ///< `result` is returned, whatever the driver said
  bool breaks = false;   ///< the current context is broken then
  CUresult result = CUDA_SUCCESS;
};

/// Counts a call and decides on it. One copy for all wrappers.
[[gnu::noinline]] Verdict begin_call(State& state, std::size_t index, bool in_context) {
  Verdict verdict;
  if (!is_active.load(std::memory_order_acquire)) return verdict;
  const char* const name = kRowNames[index];
  if (const auto observer = state.observer.load(std::memory_order_relaxed)) observer(name);
  state.calls[index].fetch_add(1, std::memory_order_relaxed);
  state.all_calls.fetch_add(1, std::memory_order_relaxed);
  if (in_context && state.broken.load(std::memory_order_acquire)) {
    if (const CUresult refusal = state.refusal(); refusal != CUDA_SUCCESS)
      return {.runs = false, .answers = true, .result = refusal};
  }
  if (!state.armed.load(std::memory_order_acquire)) return verdict;
  const auto plan = state.schedule.enter(name);
  if (!plan) return verdict;
  if (plan->delay.count() > 0) std::this_thread::sleep_for(plan->delay);
  return {.runs = plan->moment == FaultPlan::Moment::after,
          .answers = true,
          .breaks = plan->sticky,
          .result = static_cast<CUresult>(plan->result)};
}

[[gnu::noinline]] CUresult end_call(State& state, const Verdict& verdict) {
  if (verdict.breaks) state.break_current(verdict.result);
  return verdict.result;
}

template <Row row, auto member>
struct Wrapper;

template <Row row, typename... Parameters, CUresult (*DriverApi::*member)(Parameters...)>
struct Wrapper<row, member> {
  static constexpr auto index = static_cast<std::size_t>(row);
  static constexpr bool in_context = works_in_context(kRowNames[index]);

  static CUresult call(Parameters... parameters) {
    State& state = shared_state();
    const Verdict verdict = begin_call(state, index, in_context);
    CUresult result = CUDA_SUCCESS;
    if (verdict.runs) result = (state.inner.*member)(parameters...);
    if (verdict.answers) return end_call(state, verdict);
    if constexpr (row == Row::cuDevicePrimaryCtxReset) {
      if (result == CUDA_SUCCESS && is_active.load(std::memory_order_acquire))
        state.repair(parameters...);
    }
    return result;
  }
};

DriverApi make_table() {
  DriverApi api;
#define KW_DRIVER(name, symbol, since, need, parameters) \
  api.name = &Wrapper<Row::name, &DriverApi::name>::call;
#define KW_DRIVER_EXTENSION(name, parameters) \
  api.name = &Wrapper<Row::name, &DriverApi::name>::call;
#include "driver/driver_api.def"
  return api;
}

std::size_t find_row(std::string_view name) {
  for (std::size_t i = 0; i < kRows; ++i) {
    if (name == kRowNames[i]) return i;
  }
  throw NameNotFound(format("the driver table has no function {}", name));
}

}  // namespace

FaultDriver::FaultDriver(const DriverApi& inner) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (is_active.load()) {
    throw Error("there is a FaultDriver already; only one can be active at a time");
  }
  State& state = shared_state();
  state.inner = inner;
  state.schedule.reset();
  for (auto& count : state.calls) count.store(0);
  state.all_calls.store(0);
  is_active.store(true, std::memory_order_release);
}

FaultDriver::~FaultDriver() {
  disarm();
  observe(nullptr);
  is_active.store(false);
}

const DriverApi& FaultDriver::api() const noexcept {
  static const DriverApi table = make_table();
  return table;
}

void FaultDriver::arm(const FaultPlan& plan) {
  if (!plan.function.empty()) find_row(plan.function);
  State& state = shared_state();
  state.schedule.arm(plan);
  state.armed.store(true, std::memory_order_release);
}

void FaultDriver::disarm() {
  State& state = shared_state();
  state.armed.store(false, std::memory_order_release);
  state.schedule.disarm();
  const std::lock_guard lock(state.mutex);
  state.contexts.clear();
  state.broken.store(false, std::memory_order_release);
}

std::uint64_t FaultDriver::fired() const { return shared_state().schedule.fired(); }

std::string FaultDriver::last_function() const { return shared_state().schedule.last_function(); }

std::set<std::string> FaultDriver::failed_functions() const {
  return shared_state().schedule.failed_functions();
}

std::uint64_t FaultDriver::calls(std::string_view name) const {
  return shared_state().calls[find_row(name)].load(std::memory_order_relaxed);
}

std::uint64_t FaultDriver::calls() const noexcept {
  return shared_state().all_calls.load(std::memory_order_relaxed);
}

void FaultDriver::observe(void (*observer)(const char* name)) noexcept {
  shared_state().observer.store(observer, std::memory_order_relaxed);
}

}  // namespace kernwright
