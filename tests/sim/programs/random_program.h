// Random PTX programs: straight lines, branches, loops, what warps and blocks do together, memory.
// An interpreter of their tree (program_interpreter.h) says what they compute.
#pragma once

#include "sim/programs/program_operations.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright::sim {

struct ProgramNode;
using ProgramNodes = std::vector<ProgramNode>;

/// One instruction, or a branch or loop with bodies. Registers d, a, b and c count up to 15; of 64
/// bits there are four, so that the lowest bits count.
struct ProgramNode {
  enum class Kind : std::uint8_t {
    operation,       ///< `number` of operation()
    branch,          ///< bodies[0] where condition `number` holds of a and b, else bodies[1]
    uniform_branch,  ///< the same by the block's number
    loop,            ///< bodies[0], a & 7 times
    uniform_loop,    ///< `immediate` times
    until,           ///< once and again until the condition holds, 5 times at most
    leave,           ///< leaves the loop around it where the condition holds
    choice,          ///< bodies[a & 3], by brx.idx
    warp,            ///< `number` of warp_operations()
    exchange,        ///< through shared memory, with barriers; five ways, by `number`
    atomic,          ///< `number` of atomic_operations(), on a slot of its own
    local,           ///< stores b at index a of an array, loads d at index c
    gather,          ///< loads word a of the input
    call,            ///< 0: halve(a, b), 1: descend(a, immediate), 2: one of these by c & 1
  };
  Kind kind = Kind::operation;
  unsigned number = 0;
  unsigned d = 0, a = 0, b = 0, c = 0;
  Word32 immediate = 0;
  bool masked = false;  ///< branch: lanes know who goes along; atomic: in global memory
  std::vector<ProgramNodes> bodies;

  std::size_t size() const;  ///< nodes in this tree
};

/// What the nodes of a body may do together. A node that may not is skipped wherever it stands, so
/// that every tree is a program.
struct ProgramContext {
  bool all = true;         ///< all threads of the block come here together
  bool members = true;     ///< a register holds the lanes that come here together
  bool may_leave = false;  ///< in a loop whose lanes may leave one by one

  ProgramContext inside(const ProgramNode& node) const;
  bool runs(const ProgramNode& node, unsigned block) const;
};

/// A kernel `random_program(in, out)`. Each thread reads kInputs words of `in` and writes kOutputs
/// words to `out`; behind them lie the shared slots of each block and the global ones. The same
/// seed gives the same program everywhere.
class RandomProgram {
 public:
  static constexpr unsigned kInputs = 8, kRegisters = 16, kWideRegisters = 4;
  static constexpr unsigned kOutputs = kRegisters + 2 * kWideRegisters;
  static constexpr unsigned kLocals = 8;            ///< words of a thread's array
  static constexpr Word32 kSlotStart = 0x3f800000;  ///< each word of the shared slots

  explicit RandomProgram(std::uint64_t seed);

  std::uint64_t seed() const { return seed_; }
  unsigned grid() const { return seed_ % 10 == 0 ? 1 : 2; }
  /// Of every ten programs one has one warp, and one a last warp that is not full.
  unsigned block() const { return seed_ % 10 == 0 ? 32 : seed_ % 10 == 5 ? 45 : 64; }
  unsigned threads() const { return grid() * block(); }
  /// Words of `out`.
  std::size_t words() const { return first_slot() + std::size_t{grid() + 1} * slot_words(); }
  /// Where the shared slots of block 0 begin; the global ones come last.
  std::size_t first_slot() const { return std::size_t{threads()} * kOutputs; }
  static std::size_t slot_words() { return 2 * atomic_operations().size(); }

  std::string ptx() const;
  /// Edge values and random ones.
  std::vector<Word32> input() const;

  ProgramNodes& body() { return body_; }
  const ProgramNodes& body() const { return body_; }
  std::size_t size() const;

 private:
  std::uint64_t seed_;
  ProgramNodes body_;
};

}  // namespace kernwright::sim
