// Registers of wgmma in use between the instruction and its wait.
#include "sim/code/wgmma_registers.h"

#include "sim/code/lower/lowered.h"
#include "sim/ptx/isa.h"

#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

constexpr std::size_t kSourceRegisters = 4;  ///< source of a wgmma: Op::f

bool multiplies(const LoweredOp& op) {
  return op.origin != nullptr && op.part == OpOrigin::Part::execute &&
         op.origin->row->handler == ptx::Handler::wgmma &&
         op.origin->modifiers.verb == ptx::Verb::mma;
}

class RegisterLists {
 public:
  RegisterLists(Lowered& function, std::uint32_t index)
      : function_(function),
        index_(index),
        is_sum_(function.register_bytes.size()),
        is_input_(function.register_bytes.size()) {}

  void run() {
    bool any = false;
    for (LoweredBlock& block : function_.blocks) {
      for (LoweredOp& op : block.ops) {
        if (!multiplies(op)) continue;
        any = true;
        name_registers(op);
      }
    }
    if (!any) return;
    for (LoweredBlock& block : function_.blocks) add_touches(block);
  }

 private:
  Ref name(std::uint32_t reg) const { return {Ref::Kind::fixed, wgmma_register(index_, reg)}; }

  Ref add_list(std::vector<Ref> elements) {
    function_.lists.push_back({std::move(elements), false});
    return {Ref::Kind::list, static_cast<std::uint32_t>(function_.lists.size() - 1)};
  }

  void name_registers(LoweredOp& op) {
    std::vector<Ref> registers;
    const auto add = [&](const Ref& list, std::vector<bool>& kind) {
      for (const Ref& element : function_.lists[list.index].elements) {
        // NOTE: a constant in A's place is no register.
        const bool is_register = element.kind == Ref::Kind::reg;
        registers.push_back(is_register ? name(element.index) : Ref{Ref::Kind::fixed, ~0u});
        if (is_register) kind[element.index] = true;
      }
    };
    add(op.d, is_sum_);
    if (op.sources[0].kind == Ref::Kind::list) add(op.sources[0], is_input_);
    op.sources[kSourceRegisters] = add_list(std::move(registers));
    op.source_count = kSourceRegisters + 1;
  }

  void add_touches(LoweredBlock& block) {
    std::vector<LoweredOp> ops;
    for (LoweredOp& op : block.ops) {
      LoweredOp touch;
      if (!multiplies(op) && touches(op, touch)) {
        // Nothing may come between an op and the guard in front of it.
        if (op.guarded && !ops.empty()) {
          const LoweredOp guard = ops.back();
          touch.sources[2] = guard.sources[0];
          touch.source_count = 3;
          touch.handlers.flags =
              guard.handlers.full == internal_handlers(Internal::guard).full ? 1 : 2;
          ops.insert(ops.end() - 1, std::move(touch));
        } else {
          ops.push_back(std::move(touch));
        }
      }
      ops.push_back(std::move(op));
    }
    block.ops = std::move(ops);
  }

  /// Makes the check before `op`; false when it needs none.
  bool touches(const LoweredOp& op, LoweredOp& touch) {
    std::vector<Ref> reads, writes;
    each_register(function_, op, [&](std::uint32_t reg, bool written) {
      if (reg >= is_sum_.size()) return;
      if (written && (is_sum_[reg] || is_input_[reg])) writes.push_back(name(reg));
      if (!written && is_sum_[reg]) reads.push_back(name(reg));
    });
    if (reads.empty() && writes.empty()) return false;
    touch.handlers = {touch_product_registers, touch_product_registers};
    touch.imm = static_cast<std::int64_t>(reads.size());
    touch.imm2 = static_cast<std::int32_t>(writes.size());
    touch.sources[0] = add_list(std::move(reads));
    touch.sources[1] = add_list(std::move(writes));
    touch.source_count = 2;
    touch.origin = op.origin;
    return true;
  }

  Lowered& function_;
  std::uint32_t index_;
  std::vector<bool> is_sum_, is_input_;
};

}  // namespace

void list_wgmma_registers(Lowered& function, std::uint32_t index) {
  RegisterLists(function, index).run();
}

}  // namespace kernwright::sim
