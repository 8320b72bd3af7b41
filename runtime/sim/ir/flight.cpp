// Registers of wgmma that are in flight between the instruction and its wait.
#include "sim/ir/flight.h"

#include "sim/exec/warpgroup.h"
#include "sim/ptx/isa.h"

#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

constexpr std::size_t kRegistersOf = 4;  ///< source of a wgmma: Op::f

bool multiplies(const LoweredOp& op) {
  return op.origin != nullptr && op.part == OpOrigin::Part::execute &&
         op.origin->row->handler == ptx::Handler::wgmma &&
         op.origin->modifiers.verb == ptx::Verb::mma;
}

class Watcher {
 public:
  Watcher(Lowered& function, std::uint32_t index)
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
    for (LoweredBlock& block : function_.blocks) watch(block);
  }

 private:
  Ref flight(std::uint32_t reg) const { return {Ref::Kind::fixed, flight_register(index_, reg)}; }

  Ref add_list(std::vector<Ref> elements) {
    function_.lists.push_back({std::move(elements), false});
    return {Ref::Kind::list, static_cast<std::uint32_t>(function_.lists.size() - 1)};
  }

  void name_registers(LoweredOp& op) {
    std::vector<Ref> registers;
    const auto add = [&](const Ref& list, std::vector<bool>& kind) {
      for (const Ref& element : function_.lists[list.index].elements) {
        // NOTE: a constant in A's place is nobody's register.
        const bool is_register = element.kind == Ref::Kind::reg;
        registers.push_back(is_register ? flight(element.index) : Ref{Ref::Kind::fixed, ~0u});
        if (is_register) kind[element.index] = true;
      }
    };
    add(op.d, is_sum_);
    if (op.sources[0].kind == Ref::Kind::list) add(op.sources[0], is_input_);
    op.sources[kRegistersOf] = add_list(std::move(registers));
    op.source_count = kRegistersOf + 1;
  }

  void watch(LoweredBlock& block) {
    std::vector<LoweredOp> ops;
    for (LoweredOp& op : block.ops) {
      LoweredOp check;
      if (!multiplies(op) && touches(op, check)) {
        // Nothing may come between an op and the guard in front of it.
        if (op.guarded && !ops.empty()) {
          const LoweredOp guard = ops.back();
          check.sources[2] = guard.sources[0];
          check.source_count = 3;
          check.handlers.flags =
              guard.handlers.full == internal_handlers(Internal::guard).full ? 1 : 2;
          ops.insert(ops.end() - 1, std::move(check));
        } else {
          ops.push_back(std::move(check));
        }
      }
      ops.push_back(std::move(op));
    }
    block.ops = std::move(ops);
  }

  /// Makes the check that `op` needs; false when it needs none.
  bool touches(const LoweredOp& op, LoweredOp& check) {
    std::vector<Ref> reads, writes;
    each_register(function_, op, [&](std::uint32_t reg, bool written) {
      if (reg >= is_sum_.size()) return;
      if (written && (is_sum_[reg] || is_input_[reg])) writes.push_back(flight(reg));
      if (!written && is_sum_[reg]) reads.push_back(flight(reg));
    });
    if (reads.empty() && writes.empty()) return false;
    check.handlers = {check_flight, check_flight};
    check.imm = static_cast<std::int64_t>(reads.size());
    check.imm2 = static_cast<std::int32_t>(writes.size());
    check.sources[0] = add_list(std::move(reads));
    check.sources[1] = add_list(std::move(writes));
    check.source_count = 2;
    check.origin = op.origin;
    return true;
  }

  Lowered& function_;
  std::uint32_t index_;
  std::vector<bool> is_sum_, is_input_;
};

}  // namespace

void watch_flight(Lowered& function, std::uint32_t index) { Watcher(function, index).run(); }

}  // namespace kernwright::sim
