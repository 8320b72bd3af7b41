// Copies and block-invariant instructions of a lowered function.
#include "sim/code/passes.h"

#include "sim/code/fast_handlers.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim {
namespace {

/// Long-lived registers take room from the others in the first-level cache.
constexpr std::uint32_t kMaxResultBytes = 6 * 1024;
constexpr std::uint32_t kMaxPlans = 512;

class Simplifier {
 public:
  Simplifier(Lowered& function, std::vector<std::uint32_t>& order)
      : function_(function),
        order_(order),
        once_(function.register_bytes.size(), false),
        invariant_(function.register_bytes.size(), false),
        copied_(function.register_bytes.size()) {}

  Prologue run(bool is_entry) {
    find_single_definitions();
    drop_copies();
    Prologue prologue;
    if (is_entry) prologue = move_invariants();
    fix_addresses(is_entry);
    return prologue;
  }

 private:
  template <typename F>
  void each_op(F f) {
    for (const std::uint32_t b : order_) {
      for (LoweredOp& op : function_.blocks[b].ops) f(op);
    }
  }

  void find_single_definitions() {
    std::vector<std::uint8_t> definitions(once_.size(), 0);
    each_op([&](const LoweredOp& op) {
      each_register(function_, op, [&](std::uint32_t reg, bool written) {
        // A guarded write leaves the old value in some lanes.
        if (written && definitions[reg] < 2) definitions[reg] += op.guarded ? 2 : 1;
      });
    });
    for (std::size_t r = 0; r < once_.size(); ++r) once_[r] = definitions[r] == 1;
    for (const std::uint32_t reg : live_at_entry(function_, order_)) once_[reg] = false;
  }

  bool is_once(const Ref& ref) const { return ref.kind == Ref::Kind::reg && once_[ref.index]; }

  /// If a register with one write copies a constant, or another such register, readers of the copy
  /// read the source instead: it still holds the value there.
  void drop_copies() {
    bool any = false;
    each_op([&](const LoweredOp& op) {
      const Ref& from = op.sources[0];
      if (!op.copies || op.guarded || !is_once(op.d)) return;
      if (from.kind != Ref::Kind::constant && !is_once(from)) return;
      copied_[op.d.index] = from;
      any = true;
    });
    if (!any) return;
    for (const std::uint32_t b : order_) {
      LoweredBlock& block = function_.blocks[b];
      std::erase_if(block.ops, [&](const LoweredOp& op) { return op.copies && is_copied(op.d); });
      for (LoweredOp& op : block.ops) {
        for (std::uint8_t i = 0; i < op.source_count; ++i) look_through(op.sources[i]);
      }
      look_through(block.condition);
    }
    for (Lowered::List& list : function_.lists) {
      if (list.is_destination) continue;
      for (Ref& element : list.elements) look_through(element);
    }
  }

  bool is_copied(const Ref& ref) const {
    return ref.kind == Ref::Kind::reg && copied_[ref.index].kind != Ref::Kind::none;
  }
  void look_through(Ref& ref) {
    Ref last = ref;
    while (is_copied(last)) last = copied_[last.index];
    while (is_copied(ref)) ref = std::exchange(copied_[ref.index], last);  // shortens the chain
    ref = last;
  }

  bool moves(const LoweredOp& op) const {
    if (!op.pure || op.guarded) return false;
    bool all = true;
    each_register(function_, op, [&](std::uint32_t reg, bool written) {
      all = all && (written ? once_[reg] : invariant_[reg]);
    });
    return all;
  }

  Prologue move_invariants() {
    Prologue prologue;
    LoweredBlock front;
    std::uint32_t bytes = 0;
    for (const std::uint32_t b : order_) {
      std::erase_if(function_.blocks[b].ops, [&](LoweredOp& op) {
        if (bytes >= kMaxResultBytes || !moves(op)) return false;
        each_register(function_, op, [&](std::uint32_t reg, bool written) {
          if (!written || invariant_[reg]) return;
          invariant_[reg] = true;
          bytes += slot_bytes(function_.register_bytes[reg]);
        });
        front.ops.push_back(op);
        return true;
      });
    }
    if (front.ops.empty()) return prologue;
    find_results(prologue.results);
    front.fall = order_.front();
    prologue.block = static_cast<std::uint32_t>(function_.blocks.size());
    function_.blocks.push_back(std::move(front));
    order_.insert(order_.begin(), prologue.block);
    return prologue;
  }

  /// Gives each memory op with a constant address its own plan in the frame.
  void fix_addresses(bool is_entry) {
    std::uint32_t plans = 0;
    each_op([&](LoweredOp& op) {
      if (op.fixed == nullptr) return;
      const Ref& address = op.sources[0];
      const bool keeps = address.kind == Ref::Kind::constant ||
                         (address.kind == Ref::Kind::reg && invariant_[address.index]);
      if (is_entry && keeps && plans < kMaxPlans) {
        op.plan = plans++;
      } else {
        op.fixed = nullptr;
      }
    });
    if (plans == 0) return;
    const auto bytes = plans * static_cast<std::uint32_t>(sizeof(FixedPlan));
    function_.plan_area = static_cast<std::uint32_t>(function_.areas.size());
    function_.areas.push_back({bytes, (bytes + 31) / 32});
  }

  /// Finds the moved registers read by ops that did not move.
  void find_results(std::vector<std::uint32_t>& results) {
    std::vector<bool> read(once_.size(), false);
    each_op([&](const LoweredOp& op) {
      each_register(function_, op, [&](std::uint32_t reg, bool written) {
        if (!written) read[reg] = true;
      });
    });
    for (const std::uint32_t b : order_) {
      const Ref& condition = function_.blocks[b].condition;
      if (condition.kind == Ref::Kind::reg) read[condition.index] = true;
    }
    for (std::uint32_t r = 0; r < read.size(); ++r) {
      if (read[r] && invariant_[r]) results.push_back(r);
    }
  }

  Lowered& function_;
  std::vector<std::uint32_t>& order_;
  std::vector<bool> once_;       ///< per register: written once, before every read
  std::vector<bool> invariant_;  ///< per register: moved
  std::vector<Ref> copied_;      ///< per register: what it is a copy of, or none
};

static_assert(kMaxPlans * sizeof(FixedPlan) <= 8 * 1024);

}  // namespace

Prologue simplify(Lowered& function, std::vector<std::uint32_t>& order, bool is_entry) {
  return Simplifier(function, order).run(is_entry);
}

}  // namespace kernwright::sim
