// Wrappers around every slot: count the call, look at the handles it uses, record what it makes.
#include "driver/recording_driver.h"

#include "base/errors.h"
#include "base/format.h"
#include "driver/driver_record.h"
#include "driver/driver_rows.h"

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <type_traits>

namespace kernwright {

namespace {

using detail::kRowNames;
using detail::kRows;
using detail::Row;

struct State {
  DriverApi inner;
  DriverRecord record;
  std::array<std::atomic<std::uint64_t>, kRows> calls{};

  CUcontext current_context() const {
    CUcontext context = nullptr;
    inner.cuCtxGetCurrent(&context);
    return context;
  }
};

/// One for all recorders, as one exists at a time; leaked on purpose, so that a call in flight
/// never loses it.
State& shared_state() {
  static auto* const state = new State;
  return *state;
}

std::atomic<bool> is_active = false;

using Pending = std::optional<DriverObject>;
using Kind = DriverObject::Kind;

template <typename Handle>
std::uint64_t key(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uintptr_t>(handle);
  } else {
    return handle;
  }
}

// ---- what a row does to the record: begin() runs before the driver's function, end() after it

struct Plain {
  static Pending begin(State&, const char*, auto...) { return {}; }
  static void end(State&, const char*, Pending&, CUresult, auto...) {}
};

/// The first argument points to a new handle.
template <Kind kind>
struct Creates : Plain {
  template <typename Handle>
  static void end(State& state, const char* name, Pending&, CUresult result, Handle* made,
                  auto...) {
    if (result == CUDA_SUCCESS) {
      state.record.add({kind, key(*made), state.current_context(), name});
    }
  }
};

/// The first argument is a handle that goes.
template <Kind kind>
struct Destroys {
  template <typename Handle>
  static Pending begin(State& state, const char* name, Handle handle, auto...) {
    // NOTE: taken out before the call, as another thread may be given the same handle right after.
    return state.record.take(kind, key(handle), state.current_context(), name);
  }
  static void end(State& state, const char*, Pending& taken, CUresult result, auto...) {
    if (result != CUDA_SUCCESS && taken) state.record.add(*taken);
  }
};

template <Row row>
struct Hook : Plain {};

template <>
struct Hook<Row::cuModuleLoadData> : Creates<Kind::module> {};
template <>
struct Hook<Row::cuModuleLoadDataEx> : Creates<Kind::module> {};
template <>
struct Hook<Row::cuModuleUnload> : Destroys<Kind::module> {};
template <>
struct Hook<Row::cuStreamCreate> : Creates<Kind::stream> {};
template <>
struct Hook<Row::cuStreamCreateWithPriority> : Creates<Kind::stream> {};
template <>
struct Hook<Row::cuGreenCtxStreamCreate> : Creates<Kind::stream> {};
template <>
struct Hook<Row::cuGreenCtxCreate> : Creates<Kind::green_context> {};
template <>
struct Hook<Row::cuGreenCtxDestroy> : Destroys<Kind::green_context> {};
template <>
struct Hook<Row::cuStreamDestroy> : Destroys<Kind::stream> {};
template <>
struct Hook<Row::cuEventCreate> : Creates<Kind::event> {};
template <>
struct Hook<Row::cuEventDestroy> : Destroys<Kind::event> {};
template <>
struct Hook<Row::cuMemAlloc> : Creates<Kind::memory> {};
template <>
struct Hook<Row::cuMemAllocManaged> : Creates<Kind::memory> {};
template <>
struct Hook<Row::cuMemAllocAsync> : Creates<Kind::stream_memory> {};
template <>
struct Hook<Row::cuMemAllocFromPoolAsync> : Creates<Kind::stream_memory> {};
template <>
struct Hook<Row::cuMemFree> : Destroys<Kind::memory> {};
template <>
struct Hook<Row::cuMemFreeAsync> : Destroys<Kind::stream_memory> {};
template <>
struct Hook<Row::cuMemAllocHost> : Creates<Kind::host_memory> {};
template <>
struct Hook<Row::cuMemHostAlloc> : Creates<Kind::host_memory> {};
template <>
struct Hook<Row::cuMemFreeHost> : Destroys<Kind::host_memory> {};
template <>
struct Hook<Row::cuMemHostUnregister> : Destroys<Kind::registration> {};
template <>
struct Hook<Row::cuMemPoolCreate> : Creates<Kind::pool> {};
template <>
struct Hook<Row::cuMemPoolDestroy> : Destroys<Kind::pool> {};
template <>
struct Hook<Row::cuStreamEndCapture> : Plain {
  static void end(State& state, const char* name, Pending&, CUresult result, CUstream,
                  CUgraph* graph) {
    if (result != CUDA_SUCCESS || *graph == nullptr) return;
    state.record.add({Kind::graph, key(*graph), state.current_context(), name});
  }
};
template <>
struct Hook<Row::cuGraphCreate> : Creates<Kind::graph> {};
template <>
struct Hook<Row::cuGraphClone> : Creates<Kind::graph> {};
template <>
struct Hook<Row::cuGraphDestroy> : Destroys<Kind::graph> {};
template <>
struct Hook<Row::cuGraphInstantiateWithFlags> : Creates<Kind::graph_exec> {};
template <>
struct Hook<Row::cuGraphExecDestroy> : Destroys<Kind::graph_exec> {};
template <>
struct Hook<Row::cuArrayCreate> : Creates<Kind::array> {};
template <>
struct Hook<Row::cuArray3DCreate> : Creates<Kind::array> {};
template <>
struct Hook<Row::cuArrayDestroy> : Destroys<Kind::array> {};
template <>
struct Hook<Row::cuTexObjectCreate> : Creates<Kind::texture> {};
template <>
struct Hook<Row::cuTexObjectDestroy> : Destroys<Kind::texture> {};
template <>
struct Hook<Row::cuSurfObjectCreate> : Creates<Kind::surface> {};
template <>
struct Hook<Row::cuSurfObjectDestroy> : Destroys<Kind::surface> {};

template <>
struct Hook<Row::cuMemHostRegister> : Plain {
  static void end(State& state, const char* name, Pending&, CUresult result, void* address,
                  std::size_t, unsigned) {
    if (result != CUDA_SUCCESS) return;
    state.record.add({Kind::registration, key(address), state.current_context(), name});
  }
};

template <>
struct Hook<Row::cuModuleGetFunction> : Plain {
  static void end(State& state, const char*, Pending&, CUresult result, CUfunction* function,
                  CUmodule module, const char*) {
    if (result == CUDA_SUCCESS) state.record.add_function(*function, module);
  }
};

template <>
struct Hook<Row::cuDevicePrimaryCtxRetain> : Plain {
  static void end(State& state, const char*, Pending&, CUresult result, CUcontext* context,
                  CUdevice device) {
    if (result == CUDA_SUCCESS) state.record.retain(*context, device);
  }
};

template <>
struct Hook<Row::cuDevicePrimaryCtxRelease> : Plain {
  static void end(State& state, const char* name, Pending&, CUresult result, CUdevice device) {
    if (result == CUDA_SUCCESS) state.record.release(device, name);
  }
};

template <>
struct Hook<Row::cuDevicePrimaryCtxReset> : Plain {
  static void end(State& state, const char*, Pending&, CUresult result, CUdevice device) {
    if (result == CUDA_SUCCESS) state.record.reset(device);
  }
};

template <>
struct Hook<Row::cuLaunchKernelEx> : Plain {
  static Pending begin(State& state, const char* name, const CUlaunchConfig* config, auto...) {
    if (config != nullptr) state.record.use(Kind::stream, key(config->hStream), name);
    return {};
  }
};

// ---- handles among the arguments must be alive

void use(State& state, const char* name, CUmodule handle) {
  state.record.use(Kind::module, key(handle), name);
}
void use(State& state, const char* name, CUfunction handle) {
  state.record.use(Kind::function, key(handle), name);
}
void use(State& state, const char* name, CUstream handle) {
  state.record.use(Kind::stream, key(handle), name);
}
void use(State& state, const char* name, CUevent handle) {
  state.record.use(Kind::event, key(handle), name);
}
void use(State& state, const char* name, CUgraphExec handle) {
  state.record.use(Kind::graph_exec, key(handle), name);
}
void use(State& state, const char* name, CUarray handle) {
  state.record.use(Kind::array, key(handle), name);
}
void use(State& state, const char* name, CUgreenCtx handle) {
  state.record.use(Kind::green_context, key(handle), name);
}
void use(State& state, const char* name, CUgraph handle) {
  state.record.use(Kind::graph, key(handle), name);
}
template <typename Other>
void use(State&, const char*, Other) {}

// ---- the decorated table

template <Row row, auto member>
struct Wrapper;

template <Row row, typename... Parameters, CUresult (*DriverApi::*member)(Parameters...)>
struct Wrapper<row, member> {
  static CUresult call(Parameters... parameters) {
    if (!is_active.load(std::memory_order_acquire)) return CUDA_ERROR_DEINITIALIZED;
    State& state = shared_state();
    constexpr auto index = static_cast<std::size_t>(row);
    const char* const name = kRowNames[index];
    state.calls[index].fetch_add(1, std::memory_order_relaxed);
    (use(state, name, parameters), ...);
    Pending pending = Hook<row>::begin(state, name, parameters...);
    const CUresult result = (state.inner.*member)(parameters...);
    Hook<row>::end(state, name, pending, result, parameters...);
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

void clear(State& state) {
  state.record.clear();
  for (auto& count : state.calls) count.store(0);
}

}  // namespace

RecordingDriver::RecordingDriver(const DriverApi& inner) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (is_active.load()) {
    throw Error("there is a RecordingDriver already; only one can be active at a time");
  }
  clear(shared_state());
  shared_state().inner = inner;
  is_active.store(true, std::memory_order_release);
}

RecordingDriver::~RecordingDriver() { is_active.store(false); }

const DriverApi& RecordingDriver::api() const noexcept {
  static const DriverApi table = make_table();
  return table;
}

std::uint64_t RecordingDriver::calls(std::string_view name) const {
  for (std::size_t i = 0; i < kRows; ++i) {
    if (name == kRowNames[i]) return shared_state().calls[i].load();
  }
  throw NameNotFound(format("the driver table has no function {}", name));
}

std::size_t RecordingDriver::live_objects() const { return shared_state().record.live(); }

std::vector<std::string> RecordingDriver::check() const { return shared_state().record.check(); }

void RecordingDriver::reset() { clear(shared_state()); }

}  // namespace kernwright
