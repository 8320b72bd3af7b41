// ld.shared and st.shared whose addresses are the same whenever the op runs in a frame: checked
// once, then straight to memory.
#include "sim/exec/fast_handlers.h"
#include "sim/exec/ops/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {

OpFn select_fixed(const ptx::Instruction& instruction, const OperandWidths& widths);

namespace {

/// The first time, or after a time when lanes had to go one by one. Null after a fault.
[[gnu::noinline]] std::byte* settle(const Op* op, Warp& warp, FixedPlan& plan,
                                    const WarpAccess& access) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  std::byte* const base = replan(op, warp, site, access);
  if (base != nullptr && site.generation != 0) {
    plan.base = static_cast<std::uint32_t>(base - warp.shared);
    plan.half = static_cast<std::int32_t>(site.half);
    plan.pattern = site.pattern;
  }
  return base;
}

template <typename Mem, int kVec>
[[gnu::noinline]] const Op* load_first(const Op* op, Warp& warp, FixedPlan& plan) {
  const std::byte* base = settle(op, warp, plan, {AccessKind::read, sizeof(Mem) * kVec});
  if (base == nullptr) return nullptr;
  const MemorySite& site = warp.worker->sites.data()[op->site];
  load_masked<Mem, Mem, kVec>(warp, Elements<Mem, kVec>(warp, op->d), base, site);
  return op + 1;
}

template <typename Mem, int kVec>
[[gnu::noinline]] const Op* store_first(const Op* op, Warp& warp, FixedPlan& plan) {
  std::byte* base = settle(op, warp, plan, {AccessKind::write, sizeof(Mem) * kVec});
  if (base == nullptr) return nullptr;
  const MemorySite& site = warp.worker->sites.data()[op->site];
  store_masked<Mem, Mem, kVec>(warp, base, site, Elements<Mem, kVec>(warp, op->b));
  return op + 1;
}

template <typename Mem, int kVec, Form kForm>
const Op* load_fixed(const Op* op, Warp& warp) {
  constexpr int kHalf = kLanes / 2;
  FixedPlan& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  const std::byte* const base = warp.shared + plan.base;
  const Elements<Mem, kVec> to(warp, op->d);
  switch (static_cast<Pattern>(plan.pattern)) {
    case Pattern::none:
      return load_first<Mem, kVec>(op, warp, plan);
    case Pattern::uniform:
      load_same<Mem, Mem, kVec, kLanes>(to, 0, base);
      return op + 1;
    case Pattern::contiguous:
      load_run<Mem, Mem, kVec, kLanes>(to, 0, base);
      return op + 1;
    case Pattern::half_uniform:
      load_same<Mem, Mem, kVec, kHalf>(to, 0, base);
      load_same<Mem, Mem, kVec, kHalf>(to, kHalf, base + plan.half);
      return op + 1;
    case Pattern::half_contiguous:
      load_run<Mem, Mem, kVec, kHalf>(to, 0, base);
      load_run<Mem, Mem, kVec, kHalf>(to, kHalf, base + plan.half);
      return op + 1;
    default:
      return load<Mem, Mem, kVec, kForm, false>(op, warp);
  }
}

template <typename Mem, int kVec, Form kForm>
const Op* store_fixed(const Op* op, Warp& warp) {
  constexpr int kHalf = kLanes / 2;
  FixedPlan& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  std::byte* const base = warp.shared + plan.base;
  const Elements<Mem, kVec> from(warp, op->b);
  switch (static_cast<Pattern>(plan.pattern)) {
    case Pattern::none:
      return store_first<Mem, kVec>(op, warp, plan);
    case Pattern::uniform:
      store_one<Mem, Mem, kVec>(base, from, kLanes - 1);
      return op + 1;
    case Pattern::contiguous:
      store_run<Mem, Mem, kVec, kLanes>(base, from, 0);
      return op + 1;
    case Pattern::half_contiguous:
      store_run<Mem, Mem, kVec, kHalf>(base, from, 0);
      store_run<Mem, Mem, kVec, kHalf>(base + plan.half, from, kHalf);
      return op + 1;
    default:
      return store<Mem, Mem, kVec, kForm, false>(op, warp);
  }
}

template <typename Mem, int kVec>
OpFn choose(bool is_load, bool narrow) {
  if (is_load) {
    return narrow ? load_fixed<Mem, kVec, Form::shared32> : load_fixed<Mem, kVec, Form::shared>;
  }
  return narrow ? store_fixed<Mem, kVec, Form::shared32> : store_fixed<Mem, kVec, Form::shared>;
}

}  // namespace

OpFn select_fixed(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const bool is_load = instruction.row->handler == ptx::Handler::ld;
  if (!is_load && instruction.row->handler != ptx::Handler::st) return nullptr;
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const std::uint8_t address = widths[is_load ? 1 : 0], value = widths[is_load ? 0 : 1];
  const std::uint32_t flags = memory_flags(modifiers, address);
  if (modifiers.space != ptx::Space::shared || (flags & kOrdered) != 0) return nullptr;
  const int bits = ptx::bits(modifiers.type[0]);
  if (bits != 8 * value) return nullptr;
  if (bits == 64 && modifiers.vector == 1) return choose<std::uint64_t, 1>(is_load, address == 4);
  if (bits != 32) return nullptr;
  switch (modifiers.vector) {
    case 1:
      return choose<std::uint32_t, 1>(is_load, address == 4);
    case 2:
      return choose<std::uint32_t, 2>(is_load, address == 4);
    case 4:
      return choose<std::uint32_t, 4>(is_load, address == 4);
    default:
      return nullptr;
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
