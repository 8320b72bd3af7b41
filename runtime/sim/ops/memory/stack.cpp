// alloca, stacksave, stackrestore: local memory requested by a thread while it runs.
#include "base/format.h"
#include "sim/ops/lanes.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;

constexpr std::uint32_t kDefaultAlignment = 8;

std::uint32_t* stack_tops(const Warp& warp) { return warp.reg<std::uint32_t>(kLocalTopOffset); }

/// Op::flags: alignment in bytes.
template <typename T>
const Op* allocate(const Op* op, Warp& warp) {
  const T* sizes = warp.reg<T>(op->a);
  T* d = warp.reg<T>(op->d);
  std::uint32_t* tops = stack_tops(warp);
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    const std::uint64_t begin = (std::uint64_t{tops[i]} + op->flags - 1) / op->flags * op->flags;
    if (begin > warp.local_bytes || sizes[i] > warp.local_bytes - begin) {
      return warp.fault(op, FaultKind::bounds, i, begin, sizes[i],
                        format("the stack of {} bytes per thread is used up by an alloca of {}",
                               warp.local_bytes, std::uint64_t{sizes[i]}));
    }
    tops[i] = static_cast<std::uint32_t>(begin + sizes[i]);
    d[i] = static_cast<T>(begin);
  }
  return op + 1;
}

template <typename T>
const Op* save(const Op* op, Warp& warp) {
  const std::uint32_t* tops = stack_tops(warp);
  write_lanes<true, T>(warp, op->d, [=](int i) { return T{tops[i]}; });
  return op + 1;
}

template <typename T>
const Op* restore(const Op* op, Warp& warp) {
  const T* saved = warp.reg<T>(op->a);
  std::uint32_t* tops = stack_tops(warp);
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    if (saved[i] > tops[i]) {
      return warp.fault(op, FaultKind::bounds, i, saved[i], 0,
                        format("stackrestore to {:#x}, above the stack's end at {:#x}",
                               std::uint64_t{saved[i]}, tops[i]));
    }
    tops[i] = static_cast<std::uint32_t>(saved[i]);
  }
  return op + 1;
}

template <typename T>
OpPair select_width(const ptx::Instruction& inst) {
  switch (inst.row->handler) {
    case Handler::alloca: {
      const bool aligned = inst.operands.size() > 2;
      const std::uint64_t bytes = aligned ? inst.operands[2].bits : kDefaultAlignment;
      if (!std::has_single_bit(bytes) || bytes > 1u << 20) return {};
      return {allocate<T>, allocate<T>, static_cast<std::uint32_t>(bytes)};
    }
    case Handler::stacksave: return {save<T>, save<T>};
    default: return {restore<T>, restore<T>};
  }
}

}  // namespace

OpPair select_stack(const ptx::Instruction& inst, const OperandWidths&) {
  switch (inst.row->handler) {
    case Handler::alloca:
    case Handler::stacksave:
    case Handler::stackrestore:
      return ptx::bits(inst.modifiers.type[0]) == 32 ? select_width<std::uint32_t>(inst)
                                                     : select_width<std::uint64_t>(inst);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
