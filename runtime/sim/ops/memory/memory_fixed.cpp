// ld.shared and st.shared with the same addresses in every run in a frame: checked once, then
// straight to memory.
#include "sim/code/fast_handlers.h"
#include "sim/ops/memory/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {

OpFn select_fixed(const ptx::Instruction& instruction, const OperandWidths& widths);

#ifdef KW_SIM_SMALL

OpFn select_fixed(const ptx::Instruction&, const OperandWidths&) { return nullptr; }

#else

namespace {

/// The first time, or after a time when lanes had to go one by one. Null after a fault.
template <bool kStore>
[[gnu::noinline]] const Op* move_first(const Op* op, Warp& warp, FixedPlan& plan) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  const AccessKind kind = kStore ? AccessKind::write : AccessKind::read;
  std::byte* const base = replan(op, warp, site, {kind, AccessShape(op->flags).bytes()});
  if (base == nullptr) return nullptr;
  if (site.generation != 0) {
    plan.base = static_cast<std::uint32_t>(base - warp.shared);
    const bool halves = static_cast<Pattern>(site.pattern) != Pattern::gather;
    plan.half = halves ? static_cast<std::int32_t>(site.half) : 0;
    plan.pattern = site.pattern;
  }
  return move_planned<kStore>(op, warp, base, site);
}

template <typename T, int kVec>
const Op* load_fixed(const Op* op, Warp& warp) {
  constexpr int kHalf = kLanes / 2;
  FixedPlan& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  const std::byte* const base = warp.shared + plan.base;
  const Elements<T, kVec> to(warp, op->d);
  switch (static_cast<Pattern>(plan.pattern)) {
    case Pattern::none: return move_first<false>(op, warp, plan);
    case Pattern::uniform: load_same<T, kVec, kLanes>(to, 0, base); return op + 1;
    case Pattern::contiguous: load_run<T, kVec, kLanes>(to, 0, base); return op + 1;
    case Pattern::half_uniform:
      load_same<T, kVec, kHalf>(to, 0, base);
      load_same<T, kVec, kHalf>(to, kHalf, base + plan.half);
      return op + 1;
    case Pattern::half_contiguous:
      load_run<T, kVec, kHalf>(to, 0, base);
      load_run<T, kVec, kHalf>(to, kHalf, base + plan.half);
      return op + 1;
    default:
      return (op->flags & kAddress32) != 0 ? load<T, kVec, Form::shared32>(op, warp)
                                           : load<T, kVec, Form::shared>(op, warp);
  }
}

template <typename T, int kVec>
const Op* store_fixed(const Op* op, Warp& warp) {
  constexpr int kHalf = kLanes / 2;
  FixedPlan& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  std::byte* const base = warp.shared + plan.base;
  const Elements<T, kVec> from(warp, op->b);
  switch (static_cast<Pattern>(plan.pattern)) {
    case Pattern::none: return move_first<true>(op, warp, plan);
    case Pattern::uniform: store_one<T, kVec>(base, from, kLanes - 1); return op + 1;
    case Pattern::contiguous: store_run<T, kVec, kLanes>(base, from, 0); return op + 1;
    case Pattern::half_contiguous:
      store_run<T, kVec, kHalf>(base, from, 0);
      store_run<T, kVec, kHalf>(base + plan.half, from, kHalf);
      return op + 1;
    default:
      return (op->flags & kAddress32) != 0 ? store<T, kVec, Form::shared32>(op, warp)
                                           : store<T, kVec, Form::shared>(op, warp);
  }
}

template <typename T, int kVec>
OpFn choose(bool is_load) {
  return is_load ? OpFn{load_fixed<T, kVec>} : OpFn{store_fixed<T, kVec>};
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
  if (bits == 64 && modifiers.vector == 1) return choose<std::uint64_t, 1>(is_load);
  if (bits != 32) return nullptr;
  switch (modifiers.vector) {
    case 1: return choose<std::uint32_t, 1>(is_load);
    case 2: return choose<std::uint32_t, 2>(is_load);
    case 4: return choose<std::uint32_t, 4>(is_load);
    default: return nullptr;
  }
}

#endif

}  // namespace kernwright::sim::KW_SIM_NS
