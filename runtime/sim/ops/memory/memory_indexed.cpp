// x[i]: the address of an array's element, and the access behind it, in one step where the lanes'
// elements follow each other.
#include "sim/code/fast_handlers.h"
#include "sim/ops/memory/memory_choice.h"
#include "sim/ops/memory/memory_elements.h"

#include <array>

namespace kernwright::sim::KW_SIM_NS {

OpFn select_indexed(OpFn access);

namespace {

#ifndef KW_SIM_SMALL

/// Host address of lane 0's element; null where the ops have to run one by one.
template <std::uint32_t kBytes>
[[gnu::always_inline]] inline std::byte* element_address(const Op* op, const Warp& warp,
                                                         const MemorySite& site) {
  std::uint64_t address = 0;
  return find_elements(op, warp, site, kBytes, address) ? host_pointer(address) : nullptr;
}

/// The address alone, by its original handler; its access comes next.
const Op* run_alone(const Op* op, Warp& warp) { return handler_alone(*op)(op, warp); }

template <typename T, int kVec>
const Op* load_indexed(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op[1].site];
  const std::byte* from = element_address<sizeof(T) * kVec>(op, warp, site);
  if (from == nullptr) return run_alone(op, warp);
  fetch_ahead<sizeof(T) * kVec * kLanes>(site, from);
  load_run<T, kVec, kLanes>(Elements<T, kVec>(warp, op[1].d), 0, from);
  return op + 2;
}

template <typename T, int kVec>
const Op* store_indexed(const Op* op, Warp& warp) {
  const MemorySite& site = warp.worker->sites.data()[op[1].site];
  std::byte* to = element_address<sizeof(T) * kVec>(op, warp, site);
  if (to == nullptr) return run_alone(op, warp);
  store_run<T, kVec, kLanes>(to, Elements<T, kVec>(warp, op[1].b), 0);
  return op + 2;
}

struct Fused {
  OpFn access, whole;
};
template <typename T, int kVec>
constexpr Fused kLoad{load<T, kVec, Form::global>, load_indexed<T, kVec>};
template <typename T, int kVec>
constexpr Fused kStore{store<T, kVec, Form::global>, store_indexed<T, kVec>};

constexpr std::array kFused{
    kLoad<std::uint32_t, 1>,  kLoad<std::uint32_t, 2>,  kLoad<std::uint32_t, 4>,
    kLoad<std::uint64_t, 1>,  kLoad<std::uint64_t, 2>,  kStore<std::uint32_t, 1>,
    kStore<std::uint32_t, 2>, kStore<std::uint32_t, 4>, kStore<std::uint64_t, 1>,
    kStore<std::uint64_t, 2>,
};

#endif

}  // namespace

OpFn select_indexed(OpFn access) {
#ifndef KW_SIM_SMALL
  for (const Fused& fused : kFused) {
    if (fused.access == access) return fused.whole;
  }
#endif
  static_cast<void>(access);
  return nullptr;
}

}  // namespace kernwright::sim::KW_SIM_NS
