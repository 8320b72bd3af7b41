// Addresses of array elements: one op for product and sum, at its access; one handler for both.
#include "sim/code/passes.h"

#include "sim/code/fast_handlers.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <map>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::Type;

/// With more sums as readers, a product keeps an op of its own.
constexpr std::uint32_t kMostSums = 3;
/// With more accesses as readers, an address keeps an op of its own.
constexpr std::uint32_t kMostAccesses = 3;
/// How many ops behind a product its sums are looked for: the work stays linear in the code.
constexpr std::size_t kReach = 64;

class Fuser {
 public:
  Fuser(Lowered& function, const std::vector<std::uint32_t>& order)
      : function_(function),
        order_(order),
        reads_(function.register_bytes.size(), 0),
        writes_(function.register_bytes.size(), 0) {}

  void run() {
    for (const std::uint32_t b : order_) {
      const LoweredBlock& block = function_.blocks[b];
      for (const LoweredOp& op : block.ops) count(op);
      if (block.condition.kind == Ref::Kind::reg) ++reads_[block.condition.index];
    }
    for (const std::uint32_t b : order_) {
      std::vector<LoweredOp>& ops = function_.blocks[b].ops;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (is_product(ops[i], Handler::mad)) ops[i].element_bytes = factor(ops[i]);
        if (is_product(ops[i], Handler::mul)) fold(ops, i);
      }
      std::erase_if(ops, [](const LoweredOp& op) { return op.handlers.full == nullptr; });
      move_to_accesses(ops);
      for (std::size_t i = 0; i + 1 < ops.size(); ++i) join(ops[i], ops[i + 1]);
    }
  }

 private:
  void count(const LoweredOp& op) {
    each_register(function_, op,
                  [&](std::uint32_t reg, bool written) { ++(written ? writes_ : reads_)[reg]; });
  }

  static bool is_alone(const LoweredOp& op) { return op.whole && !op.guarded; }

  /// mul.wide or mad.wide of 32-bit integers, by a constant.
  static bool is_product(const LoweredOp& op, Handler handler) {
    if (!is_alone(op) || op.origin->row->handler != handler) return false;
    const ptx::Modifiers& modifiers = op.origin->modifiers;
    const bool is_word = modifiers.type[0] == Type::s32 || modifiers.type[0] == Type::u32;
    return is_word && modifiers.part == ptx::MulPart::wide && op.d.kind == Ref::Kind::reg &&
           op.sources[0].kind == Ref::Kind::reg && op.sources[1].kind == Ref::Kind::constant;
  }

  std::uint32_t constant(const Ref& ref) const {
    return static_cast<std::uint32_t>(function_.constants[ref.index].bits);
  }
  std::uint32_t factor(const LoweredOp& product) const { return constant(product.sources[1]); }

  static bool is_sum(const LoweredOp& op) {
    if (!is_alone(op) || op.origin->row->handler != Handler::add || !op.pure) return false;
    const Type type = op.origin->modifiers.type[0];
    return type == Type::s64 || type == Type::u64;
  }

  static bool names(const Ref& ref, std::uint32_t reg) {
    return ref.kind == Ref::Kind::reg && ref.index == reg;
  }

  bool writes(const LoweredOp& op, std::uint32_t which) const {
    bool found = false;
    each_register(function_, op, [&](std::uint32_t reg, bool written) {
      found = found || (written && reg == which);
    });
    return found;
  }

  /// If only sums read the product ops[i], they compute it, and it loses its handlers.
  void fold(std::vector<LoweredOp>& ops, std::size_t i) {
    LoweredOp& product = ops[i];
    const std::uint32_t result = product.d.index, index = product.sources[0].index;
    if (writes_[result] != 1 || reads_[result] == 0 || reads_[result] > kMostSums) return;
    std::vector<LoweredOp*> sums;
    const std::size_t end = std::min(ops.size(), i + 1 + kReach);
    for (std::size_t k = i + 1; k < end && sums.size() < reads_[result]; ++k) {
      LoweredOp& op = ops[k];
      const bool first = names(op.sources[0], result), second = names(op.sources[1], result);
      if (is_sum(op) && first != second) sums.push_back(&op);
      if (writes(op, index)) break;
    }
    if (sums.size() != reads_[result]) return;
    const OpPair handlers = index_address_handlers(product.origin->modifiers.type[0] == Type::s32);
    for (LoweredOp* const sum : sums) {
      const Ref base = names(sum->sources[0], result) ? sum->sources[1] : sum->sources[0];
      sum->handlers = handlers;
      sum->sources = {product.sources[0], product.sources[1], base};
      sum->source_count = 3;
      sum->whole = false;
      sum->element_bytes = factor(product);
      ++reads_[index];
    }
    --reads_[index];
    reads_[result] = writes_[result] = 0;
    product.handlers = {};
  }

  /// The handler of an address and the access behind it; null when there is none.
  static OpFn joined(const LoweredOp& address, const LoweredOp& access) {
    if (!is_alone(access) || !access.handlers.uses_site ||
        !names(access.sources[0], address.d.index))
      return nullptr;
    const ptx::Modifiers& modifiers = access.origin->modifiers;
    const auto bytes =
        static_cast<std::uint32_t>(ptx::bits(modifiers.type[0]) / 8 * modifiers.vector);
    return bytes == address.element_bytes ? indexed_handler(access.handlers.full) : nullptr;
  }

  /// Addresses move to their accesses, where join() finds them. If x[i] is read and then written,
  /// each access but the first gets the address op once more, with a register of its own.
  void move_to_accesses(std::vector<LoweredOp>& ops) {
    std::map<std::size_t, LoweredOp> moved;  // by the access
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::vector<std::size_t> accesses = find_accesses(ops, i);
      if (accesses.empty()) continue;
      const LoweredOp address = ops[i];
      const bool stays = accesses.front() == i + 1;
      reads_[address.d.index] = 1;
      if (!stays) {
        moved.emplace(accesses.front(), address);
        ops[i].handlers = {};
      }
      for (std::size_t n = 1; n < accesses.size(); ++n) {
        LoweredOp again = address;
        again.d.index = function_.add_register(function_.register_bytes[address.d.index]);
        ops[accesses[n]].sources[0] = again.d;
        reads_.push_back(1);
        writes_.push_back(0);
        count(again);
        moved.emplace(accesses[n], std::move(again));
      }
    }
    if (moved.empty()) return;
    std::vector<LoweredOp> all;
    all.reserve(ops.size() + moved.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto found = moved.find(i);
      if (found != moved.end()) all.push_back(std::move(found->second));
      if (ops[i].handlers.full != nullptr) all.push_back(std::move(ops[i]));
    }
    ops = std::move(all);
  }

  /// The readers of the address ops[i], in order, if all are accesses, before its operands change;
  /// else empty.
  std::vector<std::size_t> find_accesses(const std::vector<LoweredOp>& ops, std::size_t i) const {
    const LoweredOp& address = ops[i];
    if (address.element_bytes == 0 || address.d.kind != Ref::Kind::reg) return {};
    const std::uint32_t readers = reads_[address.d.index];
    if (writes_[address.d.index] != 1 || readers > kMostAccesses) return {};
    std::vector<std::size_t> accesses;
    const std::size_t end = std::min(ops.size(), i + 1 + kReach);
    for (std::size_t k = i + 1; k < end && accesses.size() < readers; ++k) {
      if (joined(address, ops[k]) != nullptr) accesses.push_back(k);
      if (writes_any(ops[k], address.sources)) break;
    }
    if (accesses.size() != readers) return {};
    return accesses;
  }

  bool writes_any(const LoweredOp& op, const std::array<Ref, 5>& sources) const {
    return std::any_of(sources.begin(), sources.end(), [&](const Ref& source) {
      return source.kind == Ref::Kind::reg && writes(op, source.index);
    });
  }

  /// Joins an address and its only reader, an access.
  void join(LoweredOp& address, const LoweredOp& access) const {
    if (address.element_bytes == 0 || address.d.kind != Ref::Kind::reg) return;
    const std::uint32_t reg = address.d.index;
    if (writes_[reg] == 1 && reads_[reg] == 1) address.pair_handler = joined(address, access);
  }

  Lowered& function_;
  const std::vector<std::uint32_t>& order_;
  std::vector<std::uint32_t> reads_, writes_;  ///< per register: ops that do
};

}  // namespace

void fuse(Lowered& function, const std::vector<std::uint32_t>& order) {
  Fuser(function, order).run();
}

}  // namespace kernwright::sim
