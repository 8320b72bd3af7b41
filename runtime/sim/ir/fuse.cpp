// Addresses of array elements: one op for product and sum, one handler for that and the access.
// Shuffles by constants.
#include "sim/ir/fuse.h"

#include "sim/exec/fast_handlers.h"
#include "sim/ptx/isa.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::Type;

/// A product that more sums read is worth an op of its own.
constexpr std::uint32_t kMostSums = 3;
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
        if (ops[i].origin != nullptr) specialise_shuffle(ops[i]);
      }
      std::erase_if(ops, [](const LoweredOp& op) { return op.handlers.full == nullptr; });
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

  /// shfl of a whole warp by a constant.
  void specialise_shuffle(LoweredOp& op) const {
    if (!is_alone(op) || op.origin->row->handler != Handler::shfl) return;
    const Ref &lane = op.sources[1], &clamp = op.sources[2];
    if (lane.kind != Ref::Kind::constant || clamp.kind != Ref::Kind::constant) return;
    const std::uint32_t whole = op.origin->modifiers.shfl == ptx::ShflMode::up ? 0 : 31;
    if ((constant(clamp) & 0x1f1f) != whole) return;
    const OpFn handler = constant_shuffle_handler(op.handlers.full);
    if (handler == nullptr) return;
    op.handlers.full = handler;
    op.imm = constant(lane) & 31;
  }

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

  /// Where sums alone read the product ops[i], they compute it, and it loses its handlers.
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

  /// An address and the access that alone reads it.
  void join(LoweredOp& address, const LoweredOp& access) const {
    if (address.element_bytes == 0 || !is_alone(access) || !access.handlers.uses_site) return;
    const std::uint32_t reg = address.d.index;
    if (address.d.kind != Ref::Kind::reg || writes_[reg] != 1 || reads_[reg] != 1 ||
        !names(access.sources[0], reg))
      return;
    const ptx::Modifiers& modifiers = access.origin->modifiers;
    const auto bytes =
        static_cast<std::uint32_t>(ptx::bits(modifiers.type[0]) / 8 * modifiers.vector);
    if (bytes == address.element_bytes) address.with_next = indexed_handler(access.handlers.full);
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
