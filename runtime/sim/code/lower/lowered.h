// A function between the parsed text and its final code: blocks of ops over virtual registers.
#pragma once

#include "sim/code/dispatch.h"
#include "sim/code/tables.h"
#include "sim/ptx/ast.h"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace kernwright::sim {

/// The target of an op's operand field before the frame is laid out.
struct Ref {
  enum class Kind : std::uint8_t {
    none,
    reg,       ///< virtual register `index`
    constant,  ///< Lowered::constants[index]
    fixed,     ///< byte offset `index` itself (frame header, or a plain number)
    list,      ///< Lowered::lists[index]
    area,      ///< Lowered::areas[index]: frame offset of lane 0's bytes
  };
  Kind kind = Kind::none;
  std::uint32_t index = 0;
};

/// A frame has one of each.
struct ConstantValue {
  std::uint8_t bytes = 4;  ///< kPredicateWidth: a predicate
  std::uint64_t bits = 0;
  bool in_shared = false;  ///< an address in shared memory
  auto operator<=>(const ConstantValue&) const = default;
};

/// Private bytes of each lane in the frame: parameters and results of calls.
struct LaneArea {
  std::uint32_t bytes = 0;
  std::uint32_t stride = 0;  ///< distance between two lanes
};

struct LoweredOp {
  OpPair handlers;
  Ref d, d2;
  std::array<Ref, 5> sources;  ///< a, b, c, e, f
  std::uint8_t source_count = 0;
  std::uint8_t count = 0;
  bool guarded = false;  ///< runs under a guard: does not kill what it writes
  bool whole = false;    ///< does what `origin` says, no more and no less
  bool spins = false;    ///< a loop around it may wait for other threads
  bool pure = false;     ///< computes d and d2 from its sources and the launch alone; cannot fault
  OpFn fixed = nullptr;  ///< handler for when the address never changes; simplify() decides
  std::uint32_t plan = 0;           ///< number of its FixedPlan
  std::uint32_t element_bytes = 0;  ///< d = c + a * b, with this b; 0 for other ops
  OpFn pair_handler = nullptr;  ///< full-warp handler for this op and the next one: see passes.h
  bool copies = false;          ///< d = the first source, bit by bit
  OpOrigin::Part part = OpOrigin::Part::helper;
  std::int64_t imm = 0;
  std::int32_t imm2 = 0;
  std::int32_t table = 0;  ///< Op::target when it indexes a table
  const ptx::Instruction* origin = nullptr;
};

/// How a block ends. `taken` and `fall` are block numbers.
struct LoweredBlock {
  enum class End : std::uint8_t { fall, jump, branch, table, leave };
  std::vector<LoweredOp> ops;  ///< without the branch itself
  End end = End::fall;
  bool negated = false;           ///< branch where the predicate does not hold
  bool is_meeting_point = false;  ///< lanes can arrive here at different times
  bool busy_waits = false;        ///< of a loop that only waits for shared memory: passes.h
  Ref condition;                  ///< predicate of a branch, index register of a table
  std::uint32_t taken = 0, fall = 0;
  std::vector<std::uint32_t> table;  ///< targets of brx.idx
  const ptx::Instruction* origin = nullptr;

  /// Calls f(block number) for each successor.
  template <typename F>
  void successors(F f) const {
    if (end == End::jump || end == End::branch) f(taken);
    if (end == End::table) {
      for (const std::uint32_t target : table) f(target);
    }
    if (end == End::fall || end == End::branch) f(fall);
  }
};

struct Lowered {
  std::vector<LoweredBlock> blocks;  ///< [0] is the entry
  std::vector<std::uint8_t>
      register_bytes;  ///< per virtual register; kPredicateWidth for predicates
  std::vector<ConstantValue> constants;
  std::map<ConstantValue, std::uint32_t> constant_index;
  std::vector<LaneArea> areas;
  struct List {
    std::vector<Ref> elements;
    bool is_destination = false;
  };
  std::vector<List> lists;
  std::uint32_t local_bytes = 0;
  std::uint32_t plan_area = 0;  ///< area of the frame with the FixedPlans, if there are any

  std::uint32_t add_register(std::uint8_t bytes) {
    register_bytes.push_back(bytes);
    return static_cast<std::uint32_t>(register_bytes.size() - 1);
  }
};

/// Calls f(register, is_written) for each virtual register of `op`, reads first.
template <typename F>
void each_register(const Lowered& function, const LoweredOp& op, F f) {
  const auto visit = [&](const Ref& ref, bool written) {
    if (ref.kind == Ref::Kind::reg) f(ref.index, written);
    if (ref.kind != Ref::Kind::list) return;
    const Lowered::List& list = function.lists[ref.index];
    if (list.is_destination != written) return;
    for (const Ref& element : list.elements) {
      if (element.kind == Ref::Kind::reg) f(element.index, written);
    }
  };
  for (std::uint8_t i = 0; i < op.source_count; ++i) visit(op.sources[i], false);
  visit(op.d, true);
  visit(op.d2, true);
}

}  // namespace kernwright::sim
