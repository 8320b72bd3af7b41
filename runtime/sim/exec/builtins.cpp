// malloc, free, memcpy and kin, and the table of all built-in functions.
#include "sim/code/builtins.h"

#include "base/format.h"
#include "sim/exec/builtins_print.h"
#include "sim/exec/heap.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/watcher.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace kernwright::sim {
namespace {

template <typename F>
const Op* each_lane(const Op* op, const BuiltinCall& call, F f) {
  for (std::uint32_t m = call.mask; m != 0; m &= m - 1) {
    if (!f(std::countr_zero(m))) return nullptr;
  }
  return op;
}

/// Cost of malloc() or free() by one lane.
constexpr unsigned kHeapCost = 50;

const Op* call_malloc(const Op* op, Warp& warp, const BuiltinCall& call) {
  auto* heap = static_cast<Heap*>(warp.worker->launch->heap);
  return each_lane(op, call, [&](int lane) {
    const auto bytes = read_argument<std::uint64_t>(call, lane, 0);
    Watcher* const check = warp.worker->check;
    const std::uint64_t address = heap == nullptr ? 0 : heap->allocate(bytes, check != nullptr);
    if (address != 0) warp.charge(kHeapCost);
    write_result(call, lane, address);
    if (check != nullptr && address != 0) check->allocated(address, bytes);
    return true;
  });
}

const Op* call_free(const Op* op, Warp& warp, const BuiltinCall& call) {
  auto* heap = static_cast<Heap*>(warp.worker->launch->heap);
  return each_lane(op, call, [&](int lane) {
    const auto address = read_argument<std::uint64_t>(call, lane, 0);
    warp.charge(kHeapCost);
    if (address == 0 || (heap != nullptr && heap->free(address))) return true;
    bool freed = false;
    std::string place = warp.worker->launch->memory->describe(address, 1, &freed);
    warp.fault(op, freed ? FaultKind::use_after_free : FaultKind::bounds, lane, address, 0,
               format("free({:#x}): {}", address,
                      freed ? "freed before" : "not a block that device malloc() returned"));
    warp.block->fault.allocation = std::move(place);
    return false;
  });
}

std::byte* locate_generic(const Op* op, Warp& warp, int lane, AccessKind kind,
                          std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t at = seen_from_block(warp, ptx::Space::generic, address);
  return locate(op, warp, lane, {.kind = kind, .address = at, .size = bytes});
}

void charge_copy(Warp& warp, std::uint64_t bytes) { warp.charge(bytes / 64); }

/// memcpy and memmove: (destination, source, bytes) -> destination.
const Op* call_copy(const Op* op, Warp& warp, const BuiltinCall& call) {
  return each_lane(op, call, [&](int lane) {
    const auto to = read_argument<std::uint64_t>(call, lane, 0);
    const auto from = read_argument<std::uint64_t>(call, lane, 8);
    const auto bytes = read_argument<std::uint64_t>(call, lane, 16);
    write_result<std::uint64_t>(call, lane, to);
    if (bytes == 0) return true;
    const std::byte* source = locate_generic(op, warp, lane, AccessKind::read, from, bytes);
    if (source == nullptr) return false;
    std::byte* target = locate_generic(op, warp, lane, AccessKind::write, to, bytes);
    if (target == nullptr) return false;
    std::memmove(target, source, bytes);
    charge_copy(warp, bytes);
    return true;
  });
}

/// (destination, value, bytes) -> destination.
const Op* call_fill(const Op* op, Warp& warp, const BuiltinCall& call) {
  return each_lane(op, call, [&](int lane) {
    const auto to = read_argument<std::uint64_t>(call, lane, 0);
    const auto value = read_argument<std::uint32_t>(call, lane, 8);
    const auto bytes = read_argument<std::uint64_t>(call, lane, 16);
    write_result<std::uint64_t>(call, lane, to);
    if (bytes == 0) return true;
    std::byte* target = locate_generic(op, warp, lane, AccessKind::write, to, bytes);
    if (target != nullptr) std::memset(target, static_cast<int>(value & 0xff), bytes);
    charge_copy(warp, bytes);
    return target != nullptr;
  });
}

/// The CUDA device runtime (dynamic parallelism and host-like calls from kernels).
constexpr std::array<std::string_view, 14> kDeviceRuntime{
    "cudaDeviceSynchronize",  "cudaGetLastError",         "cudaPeekAtLastError",
    "cudaGetErrorString",     "cudaGetErrorName",         "cudaGetDevice",
    "cudaGetDeviceCount",     "cudaDeviceGetAttribute",   "cudaFuncGetAttributes",
    "cudaGetParameterBuffer", "cudaGetParameterBufferV2", "cudaLaunchDevice",
    "cudaLaunchDeviceV2",     "cudaStreamCreateWithFlags"};

template <std::size_t kIndex>
const Op* refuse(const Op* op, Warp& warp, const BuiltinCall& call) {
  return warp.fault(op, FaultKind::unsupported, std::countr_zero(call.mask), 0, 0,
                    format("{}() called in a kernel: the CUDA device runtime is not simulated",
                           kDeviceRuntime[kIndex]));
}

constexpr std::array kBuiltins{
    Builtin{"vprintf", call_vprintf, {8, 8}, 4},
    Builtin{"__assertfail", call_assertfail, {8, 8, 4, 8, 8}, 0},
    Builtin{"malloc", call_malloc, {8}, 8},
    Builtin{"free", call_free, {8}, 0},
    Builtin{"memcpy", call_copy, {8, 8, 8}, 8},
    Builtin{"memmove", call_copy, {8, 8, 8}, 8},
    Builtin{"memset", call_fill, {8, 4, 8}, 8},
};

template <std::size_t... kIndex>
constexpr auto make_refusals(std::index_sequence<kIndex...>) {
  return std::array{Builtin{kDeviceRuntime[kIndex], refuse<kIndex>, {}, 0, true}...};
}
constexpr auto kRefusals = make_refusals(std::make_index_sequence<kDeviceRuntime.size()>());

}  // namespace

const Builtin* find_builtin(std::string_view name) noexcept {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  for (const Builtin& builtin : kRefusals) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

}  // namespace kernwright::sim
