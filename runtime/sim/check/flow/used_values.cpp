// Follows the values of loads to their uses.
#include "sim/check/flow/used_values.h"

#include "sim/check/flow/data_flow.h"
#include "sim/check/flow/moved_bytes.h"
#include "sim/check/flow/object_loads.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Semantics;
using ptx::Space;

constexpr std::uint32_t kWholeValue = ~std::uint32_t{0};
/// How far values are followed through arithmetic: compilers speculate a handful of instructions.
constexpr int kMostSteps = 8;
constexpr std::size_t kMostUses = 16;
constexpr int kRegisterBytes = 16;  ///< of a register
constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};
/// The guard's index, in place of an operand.
constexpr std::uint32_t kAsGuard = ~std::uint32_t{0};

std::uint32_t low_bytes(int bits) { return bits >= 256 ? kWholeValue : (1u << bits / 8) - 1; }

/// Arithmetic on registers, without side effects.
bool computes(const Instruction& one) {
  const Handler handler = one.row->handler;
  const bool carries = one.modifiers.cc || handler == Handler::addc || handler == Handler::subc ||
                       handler == Handler::madc;
  const OperandKind target = one.operands[0].kind;
  return works_by_lane(one) && !carries && !one.guarded &&
         (target == OperandKind::reg || target == OperandKind::vector);
}

/// Whether another handler may stand before the op for it: it is not part of a fused op.
bool runs_alone(const Instruction& one) {
  const Handler handler = one.row->handler;
  if (handler == Handler::add || handler == Handler::mul)
    return ptx::class_id(one.modifiers.type[0]) == ptx::TypeClass::floating;
  return is_any(handler, {Handler::selp, Handler::mov, Handler::cvt, Handler::ld, Handler::st,
                          Handler::and_, Handler::or_, Handler::xor_, Handler::not_, Handler::shl,
                          Handler::shr, Handler::fma, Handler::sub, Handler::neg, Handler::abs,
                          Handler::min, Handler::max});
}

class Follower {
 public:
  explicit Follower(const ptx::Function& function)
      : function_(function),
        outline_(make_outline(function)),
        objects_(find_object_loads(function, outline_)),
        reads_(function.registers.size()) {
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      const Instruction& one = function.body[i];
      if (one.guarded) reads_[one.guard].push_back({i, kAsGuard});
      for (std::uint32_t k = 0; k < one.operands.size(); ++k) note(one.operands[k], i, k);
    }
  }

  UsedValues run() {
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      const Instruction& one = function_.body[i];
      if (one.row->handler == Handler::ld || one.row->handler == Handler::ldu) look_at(i, one);
    }
    return std::move(found_);
  }

 private:
  struct Read {
    std::uint32_t at, operand;
  };

  void note(const Operand& operand, std::uint32_t at, std::uint32_t number) {
    each_register(operand, [&](std::uint32_t reg, bool written) {
      std::vector<Read>& reads = reads_[reg];
      const bool known = !reads.empty() && reads.back().at == at && reads.back().operand == number;
      if (!written && !known) reads.push_back({at, number});
    });
  }

  bool is_written_once(std::uint32_t reg) const { return outline_.writers[reg].size() == 1; }

  /// Bytes of a register used by one of its readers: those that it moves on, or all.
  std::uint32_t used_by(std::uint32_t reg, const Read& read, int steps) const {
    if (read.operand == kAsGuard) return kWholeValue;
    const Instruction& one = function_.body[read.at];
    const Handler handler = one.row->handler;
    if (handler == Handler::st)
      return read.operand == 1 ? low_bytes(ptx::bits(one.modifiers.type[0])) : kWholeValue;
    if (handler == Handler::shr && read.operand == 1) {
      const Operand& by = one.operands[2];
      const std::uint64_t gone = by.kind == OperandKind::integer ? by.bits / 8 : 0;
      return kWholeValue << std::min<std::uint64_t>(gone, 31);
    }
    const auto moved = move_bytes(function_, one, read.operand, {reg, 0, kRegisterBytes, 0}, true);
    if (!moved) return kWholeValue;
    std::uint32_t bytes = 0;
    for (const ByteWindow& part : *moved) {
      const std::uint32_t wanted =
          handler == Handler::mov ? get_used(part.reg, steps - 1) >> part.first : kWholeValue;
      bytes |= (wanted & low_bytes(8 * part.count)) << part.byte;
    }
    return bytes;
  }

  /// Bytes of a register with a use.
  std::uint32_t get_used(std::uint32_t reg, int steps) const {
    if (steps <= 0 || !is_written_once(reg)) return kWholeValue;
    std::uint32_t bytes = 0;
    for (const Read& read : reads_[reg]) bytes |= used_by(reg, read, steps);
    return bytes;
  }

  /// The operations between a loaded value and a register.
  enum class Way : std::uint8_t { copies, bits, arithmetic };

  static bool sets_bits(const Instruction& one) {
    const Handler handler = one.row->handler;
    return handler == Handler::and_ || handler == Handler::or_ || handler == Handler::bfi;
  }

  /// Whether the instruction stores a value, as it was loaded or with other bits set.
  static bool stores(const Instruction& one, std::uint32_t operand, Way way) {
    const ptx::Semantics semantics = one.modifiers.semantics;
    return one.row->handler == Handler::st && operand == 1 && way != Way::arithmetic &&
           (semantics == Semantics::none || semantics == Semantics::weak);
  }

  /// Whether it puts it back where it was.
  static bool updates(const Instruction& store, const Instruction& load) {
    const Space from = load.modifiers.space;
    const Operand &source = load.operands[1], &target = store.operands[0];
    return (from == Space::local || from == Space::generic) && from == store.modifiers.space &&
           load.modifiers.vector == 1 && store.modifiers.vector == 1 &&
           ptx::bits(store.modifiers.type[0]) == ptx::bits(load.modifiers.type[0]) &&
           source.base == OperandKind::reg && target.base == OperandKind::reg &&
           source.reg == target.reg && source.offset == target.offset;
  }

  /// A use of a loaded value.
  struct Use {
    std::uint32_t where = 0;
    ValueUse how = {};
  };

  static ValueUse get_use(const ByteWindow& window, std::uint32_t load, UsingLanes lanes) {
    return {load, ((1u << window.count) - 1) << window.byte, lanes, window.first - window.byte};
  }

  /// The store's places for the window, possibly in several elements of a vector.
  static void note_copies(const ByteWindow& window, std::uint32_t where, const Instruction& store,
                          std::uint32_t load, std::vector<Use>& uses) {
    const Operand& value = store.operands[1];
    const int bytes = ptx::bits(store.modifiers.type[0]) / 8;
    const auto note = [&](int at) {
      const ByteWindow part = window.part(0, bytes, window.reg, at);
      if (part.count > 0) uses.push_back({where, get_use(part, load, UsingLanes::copied)});
    };
    if (value.kind != OperandKind::vector) return note(0);
    for (std::size_t i = 0; i < value.elements.size(); ++i) {
      const Operand& element = value.elements[i];
      if (element.kind == OperandKind::reg && element.reg == window.reg)
        note(static_cast<int>(i) * bytes);
    }
  }

  /// The starting point for following a loaded value. `away`: a value may leave the load's block;
  /// then this is the one where its arithmetic goes on. A value in a third block may be an earlier
  /// load's.
  struct Place {
    std::uint32_t load, since;
    int steps;
    Way way;
    std::uint32_t away = kNoBlock;
  };

  /// Collects uses of the bytes in only some lanes. False: all lanes use them, or it is unknown.
  bool follow(const ByteWindow& window, const Place& place, std::vector<Use>& uses) const {
    if (place.steps <= 0 || !is_written_once(window.reg)) return false;
    const Instruction& from = function_.body[place.load];
    const bool may_move = from.modifiers.space != Space::global;  // loads that cannot fault
    for (const Read& read : reads_[window.reg]) {
      const Instruction& one = function_.body[read.at];
      const bool is_away = place.away != kNoBlock;
      const std::uint32_t block = is_away ? place.away : outline_.blocks[place.load];
      const bool here = outline_.blocks[read.at] == block;
      if (is_away && !here) return false;
      if (read.operand == kAsGuard || (here && read.at <= place.since)) return false;
      if (uses.size() >= kMostUses) return false;
      const bool is_value = read.operand == 1 || read.operand == 2;
      if (one.row->handler == Handler::selp && !one.guarded && is_value) {
        const auto lanes = read.operand == 1 ? UsingLanes::where : UsingLanes::where_not;
        uses.push_back({read.at, get_use(window, place.load, lanes)});
      } else if (here && computes(one)) {
        if (!follow_result(window, place, read, uses)) return false;
      } else if (!here && may_move && computes(one) && goes_on(window, place, read, uses)) {
        continue;
      } else if (stores(one, read.operand, place.way)) {
        if (place.way == Way::bits && updates(one, from)) {
          uses.push_back({read.at, get_use(window, place.load, UsingLanes::updated)});
        } else {
          note_copies(window, read.at, one, place.load, uses);
        }
      } else {
        const bool same_lanes =
            here && !is_away && (!one.guarded || (from.guarded && one.guard == from.guard));
        if (same_lanes || !(may_move || one.guarded) || !runs_alone(one)) return false;
        uses.push_back({read.at, get_use(window, place.load, UsingLanes::all)});
      }
    }
    return true;
  }

  /// The same for the result of an instruction of another block. False: `uses` is unchanged.
  bool goes_on(const ByteWindow& window, Place place, const Read& read,
               std::vector<Use>& uses) const {
    const std::size_t before = uses.size();
    place.away = outline_.blocks[read.at];
    if (follow_result(window, place, read, uses) && uses.size() > before) return true;
    uses.resize(before);
    return false;
  }

  /// The same for an instruction's result.
  bool follow_result(const ByteWindow& window, const Place& place, const Read& read,
                     std::vector<Use>& uses) const {
    const Instruction& one = function_.body[read.at];
    const auto moved = place.way == Way::arithmetic
                           ? std::nullopt
                           : move_bytes(function_, one, read.operand, window);
    const Way way = !moved ? Way::arithmetic : sets_bits(one) ? Way::bits : place.way;
    const Place next{place.load, read.at, place.steps - 1, way, place.away};
    if (!moved) {
      const Operand& result = one.operands[0];
      return result.kind == OperandKind::reg &&
             follow({result.reg, window.first, window.count, window.byte}, next, uses);
    }
    return std::all_of(moved->begin(), moved->end(),
                       [&](const ByteWindow& part) { return follow(part, next, uses); });
  }

  /// Whether the lanes of the use count, and not those of the load.
  bool decides(const Use& use, std::uint32_t load) const {
    const Instruction &from = function_.body[load], &to = function_.body[use.where];
    if (to.modifiers.space == Space::param) return false;
    if (outline_.blocks[use.where] != outline_.blocks[load])
      return from.modifiers.space != Space::global;  // which may fault, and is not moved
    return to.guarded && !(from.guarded && to.guard == from.guard);
  }

  void look_at(std::uint32_t at, const Instruction& load) {
    const ptx::Modifiers& modifiers = load.modifiers;
    const bool plain =
        modifiers.semantics == Semantics::none || modifiers.semantics == Semantics::weak;
    if (!plain) return;
    const Operand& target = load.operands[0];
    const bool is_vector = target.kind == OperandKind::vector;
    const std::size_t count = is_vector ? target.elements.size() : 1;
    const int bits = ptx::bits(modifiers.type[0]);
    if (bits < 8 || bits * static_cast<int>(count) > 256) return;
    const std::uint32_t given = load.used_bytes != 0 ? load.used_bytes : kWholeValue;
    const auto object = objects_.find(at);
    LoadedBytes bytes{0, 0, 0, 0, object == objects_.end() ? 0 : object->second};
    std::vector<Use> all;
    for (std::size_t i = 0; i < count; ++i) {
      const Operand& element = is_vector ? target.elements[i] : target;
      if (element.kind != OperandKind::reg || element.reg == ptx::kNoRegister) continue;
      const int first = static_cast<int>(i) * bits / 8;
      const std::uint32_t part =
          ((get_used(element.reg, kMostSteps) & low_bytes(bits)) << first) & given;
      std::vector<Use> uses;
      const ByteWindow window{element.reg, 0, bits / 8, first};
      const bool later = follow(window, {at, at, kMostSteps, Way::copies}, uses) && !uses.empty();
      if (!later) bytes.now |= part;
      for (std::size_t k = 0; later && k < uses.size(); ++k) {
        Use use = uses[k];
        use.how.bytes &= part;
        const bool passes = function_.body[use.where].modifiers.space == Space::param;
        (passes ? bytes.passed : bytes.later) |= use.how.bytes;
        if (!passes && use.how.bytes != 0) all.push_back(use);
      }
      const auto chooses = [&](const Use& use) {
        return use.how.lanes == UsingLanes::where || use.how.lanes == UsingLanes::where_not;
      };
      const bool speculates = later && std::any_of(uses.begin(), uses.end(), chooses) &&
                              std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
                                return chooses(use) || decides(use, at);
                              });
      if (speculates) bytes.speculated |= part;
    }
    // A load with all bytes unused is meant as a read: compilers leave no such loads.
    const std::uint32_t whole = low_bytes(bits * static_cast<int>(count)) & given;
    if ((bytes.now | bytes.later | bytes.passed) == 0 || bytes.now == whole) return;
    found_.loads.emplace(at, bytes);
    for (const Use& use : all) {
      std::vector<ValueUse>& uses = found_.uses[use.where];
      const auto same = std::find_if(uses.begin(), uses.end(), [&](const ValueUse& other) {
        return other.load == at && other.lanes == use.how.lanes && other.shift == use.how.shift;
      });
      if (same == uses.end()) {
        uses.push_back(use.how);
      } else {
        same->bytes |= use.how.bytes;
      }
    }
  }

  const ptx::Function& function_;
  const Outline outline_;
  const std::unordered_map<std::uint32_t, std::uint32_t> objects_;
  std::vector<std::vector<Read>> reads_;  ///< by register
  UsedValues found_;
};

}  // namespace

UsedValues find_used_values(const ptx::Function& function) { return Follower(function).run(); }

}  // namespace kernwright::sim
