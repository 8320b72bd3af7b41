// Finds loops that wait for shared memory.
#include "sim/code/passes.h"

#include "sim/ptx/isa.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::Space;
using ptx::Verb;

/// Waiting loops are short.
constexpr std::size_t kMostBlocks = 32;
constexpr std::size_t kMostOps = 1024;

bool is_internal(const LoweredOp& op, std::initializer_list<Internal> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](Internal kind) {
    return op.handlers.full == internal_handlers(kind).full;
  });
}

bool tests_barrier(const LoweredOp& op) {
  if (!op.whole || op.origin->row->handler != Handler::mbarrier) return false;
  const Verb verb = op.origin->modifiers.verb;
  return verb == Verb::test_wait || verb == Verb::try_wait;
}

bool loads(const LoweredOp& op) { return op.whole && op.origin->row->handler == Handler::ld; }

/// Whether the op changes neither memory nor the lanes' positions.
bool is_harmless(const LoweredOp& op) {
  if (op.pure || tests_barrier(op) || loads(op)) return true;
  if (op.whole && op.origin->row->handler == Handler::nanosleep) return true;
  return is_internal(
      op, {Internal::guard, Internal::guard_not, Internal::not_predicate, Internal::special_uniform,
           Internal::special_lane, Internal::local_address, Internal::load_parameter});
}

class Finder {
 public:
  Finder(Lowered& function, const std::vector<std::uint32_t>& order)
      : function_(function),
        order_(order),
        place_(function.blocks.size(), kNowhere),
        before_(function.blocks.size()) {
    for (std::uint32_t i = 0; i < order.size(); ++i) place_[order[i]] = i;
    for (const std::uint32_t b : order) {
      function.blocks[b].successors([&](std::uint32_t to) { before_[to].push_back(b); });
    }
  }

  void run() {
    for (const std::uint32_t head : order_) {
      const std::vector<std::uint32_t> body = find_loop(head);
      if (body.empty() || !waits(body)) continue;
      for (const std::uint32_t b : body) function_.blocks[b].busy_waits = true;
    }
  }

 private:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  /// The blocks of the loops with the head `head`; none if there are none or too many.
  std::vector<std::uint32_t> find_loop(std::uint32_t head) const {
    std::vector<std::uint32_t> body{head};
    const auto add = [&](std::uint32_t b) {
      if (std::find(body.begin(), body.end(), b) == body.end()) body.push_back(b);
    };
    bool repeats = false;
    for (const std::uint32_t from : before_[head]) {
      if (place_[from] < place_[head]) continue;
      repeats = true;
      add(from);
      if (body.size() > kMostBlocks) return {};
    }
    std::size_t ops = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      ops += function_.blocks[body[i]].ops.size();
      if (ops > kMostOps || place_[body[i]] < place_[head]) return {};
      if (i == 0) continue;
      for (const std::uint32_t from : before_[body[i]]) {
        add(from);
        if (body.size() > kMostBlocks) return {};
      }
    }
    return repeats ? body : std::vector<std::uint32_t>();
  }

  bool waits(const std::vector<std::uint32_t>& body) const {
    bool any = false;
    for (const std::uint32_t b : body) {
      const LoweredBlock& block = function_.blocks[b];
      if (!std::all_of(block.ops.begin(), block.ops.end(), is_harmless)) return false;
      bool leaves = block.end == LoweredBlock::End::leave;
      block.successors([&](std::uint32_t to) {
        leaves |= std::find(body.begin(), body.end(), to) == body.end();
      });
      if (!leaves) continue;
      if (block.end != LoweredBlock::End::branch || !depends_on_memory(block, body)) return false;
      any = true;
    }
    return any;
  }

  /// Whether the block computes its condition from shared memory and values kept by the loop.
  bool depends_on_memory(const LoweredBlock& block, const std::vector<std::uint32_t>& body) const {
    std::vector<std::uint32_t> needed;
    const auto need = [&](const Ref& ref) {
      if (ref.kind == Ref::Kind::reg) needed.push_back(ref.index);
    };
    need(block.condition);
    bool reads = false;
    for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op) {
      bool wanted = false;
      each_register(function_, *op, [&](std::uint32_t reg, bool written) {
        wanted |= written && std::erase(needed, reg) != 0;
      });
      if (!wanted) continue;
      if (op->guarded) return false;
      const bool computes = op->pure || is_internal(*op, {Internal::not_predicate});
      const bool is_load = loads(*op);
      if (!computes && !tests_barrier(*op) && !is_load) return false;
      if (is_load && op->origin->modifiers.space != Space::shared &&
          op->origin->modifiers.space != Space::cluster)
        return false;
      reads |= !computes;
      each_register(function_, *op, [&](std::uint32_t reg, bool written) {
        if (!written) needed.push_back(reg);
      });
    }
    return reads && std::none_of(needed.begin(), needed.end(),
                                 [&](std::uint32_t reg) { return is_written(reg, body); });
  }

  bool is_written(std::uint32_t which, const std::vector<std::uint32_t>& body) const {
    bool found = false;
    for (const std::uint32_t b : body) {
      for (const LoweredOp& op : function_.blocks[b].ops) {
        each_register(function_, op,
                      [&](std::uint32_t reg, bool written) { found |= written && reg == which; });
      }
    }
    return found;
  }

  Lowered& function_;
  const std::vector<std::uint32_t>& order_;
  std::vector<std::uint32_t> place_;                ///< by block: position in order_
  std::vector<std::vector<std::uint32_t>> before_;  ///< by block: those that go on to it
};

}  // namespace

void mark_busy_waits(Lowered& function, const std::vector<std::uint32_t>& order) {
  Finder(function, order).run();
}

}  // namespace kernwright::sim
