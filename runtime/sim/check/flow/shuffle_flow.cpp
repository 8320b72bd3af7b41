// Follows the values of shuffles through a function, register by register.
#include "sim/check/flow/shuffle_flow.h"

#include "sim/check/flow/data_flow.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;

/// Registers with more sources are not followed.
constexpr std::size_t kMostSources = 16;

bool is_shuffle(const Instruction& one) {
  return one.row->handler == Handler::shfl && one.modifiers.sync;
}

bool is_choice(const Instruction& one) { return one.row->handler == Handler::selp; }

/// Whether something may stand in front of its op: addresses are computed in one with others.
bool runs_by_itself(const Instruction& one) {
  const ptx::Modifiers& modifiers = one.modifiers;
  const bool is_long = modifiers.type[0] == ptx::Type::s64 || modifiers.type[0] == ptx::Type::u64;
  switch (one.row->handler) {
    case Handler::ld:
    case Handler::ldu: return true;
    case Handler::add: return !is_long;
    case Handler::mul:
    case Handler::mad: return modifiers.part != ptx::MulPart::wide;
    default: return is_shuffle(one) || works_by_lane(one);
  }
}

/// One register, of a shuffle beside its predicate.
bool has_one_result(const Instruction& one) {
  if (one.operands.empty() || !one.operands[0].is_destination) return false;
  const Operand& to = one.operands[0];
  return to.reg != ptx::kNoRegister &&
         (to.kind == OperandKind::reg || (to.kind == OperandKind::reg_pair && is_shuffle(one)));
}

/// Whether an undefined value does harm in this instruction.
bool gives_away(const Instruction& one) {
  const Handler handler = one.row->handler;
  const Space space = one.modifiers.space;
  if (handler == Handler::st)
    return space == Space::global || space == Space::shared || space == Space::cluster;
  return is_any(handler, {Handler::atom, Handler::red, Handler::redux, Handler::match});
}

class Flow {
 public:
  Flow(const ptx::Function& function, const std::function<bool(std::uint32_t)>& is_op)
      : function_(function),
        is_op_(is_op),
        writers_(make_outline(function).writers),
        sources_(function.registers.size()) {}

  std::unordered_map<std::uint32_t, FlowStep> run() {
    // Registers only gain sources, kMostSources at most.
    while (pass()) {}
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) add_step(i);
    return std::move(steps_);
  }

 private:
  using Sources = std::vector<std::uint32_t>;

  bool is_predicate(std::uint32_t reg) const {
    return function_.registers[reg].type == ptx::Type::pred;
  }

  /// Whether all instructions with writes to the register are visible.
  bool is_merged(std::uint32_t reg) const {
    return std::all_of(writers_[reg].begin(), writers_[reg].end(), [&](std::uint32_t at) {
      const Instruction& one = function_.body[at];
      return has_one_result(one) && one.operands[0].reg == reg && runs_by_itself(one) && is_op_(at);
    });
  }

  static bool add(Sources& to, const Sources& from) {
    bool grows = false;
    for (const std::uint32_t one : from) {
      if (to.size() == kMostSources || std::find(to.begin(), to.end(), one) != to.end()) continue;
      to.push_back(one);
      grows = true;
    }
    return grows;
  }

  /// Sources of the registers read by the instruction, or of this operand alone.
  Sources read_by(const Instruction& one, std::size_t operand = ~std::size_t{0}) const {
    Sources result;
    for (std::size_t k = 0; k < one.operands.size(); ++k) {
      if (operand != ~std::size_t{0} && k != operand) continue;
      each_register(one.operands[k], [&](std::uint32_t reg, bool written) {
        if (!written && !is_predicate(reg)) add(result, sources_[reg]);
      });
    }
    return result;
  }

  /// Sources of the instruction's result in a register.
  Sources given(std::uint32_t at, std::uint32_t reg) const {
    const Instruction& one = function_.body[at];
    if (is_predicate(reg)) return {};
    Sources read;
    if (works_by_lane(one)) read = read_by(one);
    if (writers_[reg].size() > 1) {
      const bool flows = is_shuffle(one) || !read.empty();
      return flows && is_merged(reg) ? Sources{writers_[reg].front()} : Sources{};
    }
    if (is_shuffle(one)) return {at};
    if (read.empty() || !(is_choice(one) || reads_merged(one))) return read;
    return runs_by_itself(one) && is_op_(at) ? Sources{at} : Sources{};
  }

  /// Whether it reads a register whose value may change before the use of the result: then its
  /// current value is a source.
  bool reads_merged(const Instruction& one) const {
    bool found = false;
    for (const Operand& operand : one.operands)
      each_register(operand, [&](std::uint32_t reg, bool written) {
        found |= !written && writers_[reg].size() > 1 && !sources_[reg].empty();
      });
    return found;
  }

  bool pass() {
    bool grows = false;
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      for (const Operand& operand : function_.body[i].operands)
        each_register(operand, [&](std::uint32_t reg, bool written) {
          if (written) grows |= add(sources_[reg], given(i, reg));
        });
    }
    return grows;
  }

  /// Whether some register has the instruction as a source and as its only writer.
  bool gives_itself(std::uint32_t at) const {
    bool found = false;
    for (const Operand& operand : function_.body[at].operands)
      each_register(operand, [&](std::uint32_t reg, bool written) {
        if (!written || writers_[reg].size() != 1) return;
        found |= std::find(sources_[reg].begin(), sources_[reg].end(), at) != sources_[reg].end();
      });
    return found;
  }

  void add_step(std::uint32_t at) {
    const Instruction& one = function_.body[at];
    if (gives_away(one)) {
      if (Sources read = read_by(one); !read.empty())
        steps_[at] = {FlowRole::use, 0, std::move(read), {}};
      return;
    }
    if (works_by_lane(one) && !is_choice(one) && gives_itself(at)) {
      steps_[at] = {FlowRole::merge, at, read_by(one), {}};
      return;
    }
    if (!has_one_result(one) || sources_[one.operands[0].reg].empty()) return;
    const std::vector<std::uint32_t>& writers = writers_[one.operands[0].reg];
    const bool merges = writers.size() > 1;
    const std::uint32_t source = merges ? writers.front() : at;
    if (is_shuffle(one)) {
      steps_[at] = {FlowRole::shuffle, source, read_by(one, 1), {}};
    } else if (is_choice(one)) {
      steps_[at] = {FlowRole::choice, source, read_by(one, 1), read_by(one, 2)};
    } else if (merges) {
      steps_[at] = {FlowRole::merge, source, works_by_lane(one) ? read_by(one) : Sources{}, {}};
    }
  }

  const ptx::Function& function_;
  const std::function<bool(std::uint32_t)>& is_op_;
  const std::vector<std::vector<std::uint32_t>> writers_;  ///< by register
  std::vector<Sources> sources_;                           ///< by register
  std::unordered_map<std::uint32_t, FlowStep> steps_;
};

}  // namespace

std::unordered_map<std::uint32_t, FlowStep> find_shuffle_flow(
    const ptx::Function& function, const std::function<bool(std::uint32_t)>& is_op) {
  if (std::none_of(function.body.begin(), function.body.end(), is_shuffle)) return {};
  return Flow(function, is_op).run();
}

}  // namespace kernwright::sim
