// Side tables of a decoded program for its control-flow ops.
#pragma once

#include "sim/code/builtins.h"
#include "sim/code/op.h"
#include "sim/code/program.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace kernwright::sim {

/// One value of a call, as an argument or a result. In the caller's frame lane i's bytes lie at
/// offset + i * stride, in the callee's block at `target`.
struct CallValue {
  std::uint32_t offset = 0, stride = 0, bytes = 0, target = 0;
};

inline constexpr std::uint32_t kIndirect = ~0u;

struct CallSite {
  std::uint32_t function = kIndirect;  ///< index into Program::functions
  std::vector<CallValue> arguments, results;
  std::uint32_t parameter_bytes = 0, return_bytes = 0;  ///< of the signature that the call assumes
  /// Builtins get their parameter and return blocks in the caller's frame.
  std::uint32_t block_offset = 0, block_stride = 0;
  std::uint32_t return_offset = 0, return_stride = 0;
};

/// Whether the call's arguments and result fit the built-in function.
bool suits(const CallSite& site, const Builtin& builtin);
/// "takes parameters of 8, 8 bytes and returns 4 bytes", for messages.
std::string signature_text(const Builtin& builtin);

/// The relation of an op to its original instruction.
struct OpOrigin {
  enum class Part : std::uint8_t {
    helper,   ///< prepares operands, or jumps where the text falls through
    execute,  ///< does it, or the last part of it
    branch,   ///< bra, brx.idx
    guard,    ///< decides which lanes run the ops of the guarded instruction that follow
    skip,     ///< the same by a branch around them
    results,  ///< after a call: puts a result in a register
  };
  const ptx::Instruction* instruction = nullptr;  ///< null for none
  Part part = Part::helper;
};

struct Program::Tables {
  std::vector<CallSite> call_sites;
  std::vector<std::vector<std::int32_t>> branch_tables;  ///< distances from the op, in ops
  std::vector<OpFn> behind_leader;  ///< per op: handler that Internal::leader stands in front of
  /// Per op: the instruction that it is, or null for moves and jumps around instructions.
  std::vector<const ptx::Instruction*> instructions;
  /// Ops of Program::full whose handlers do the next one too: handler_alone() does not.
  std::vector<std::uint32_t> fused;
  std::vector<bool> busy_waits;            ///< per op: of a loop that only waits (passes.h)
  std::deque<ptx::Instruction> rewritten;  ///< that stand for others; `instructions` may name them
  std::vector<OpOrigin> origins;           ///< per op; only of code as written
  /// Per function: where the frame has its registers, by index; only of code as written.
  std::vector<std::vector<std::uint32_t>> register_offsets;
  std::vector<const Builtin*> builtins;        ///< per function; null for functions with a body
  std::vector<std::uint32_t> function_starts;  ///< (first op, function) sorted, see function_at()
  std::vector<std::uint32_t> function_order;

  /// Function that the op at `index` belongs to.
  std::uint32_t function_at(std::uint32_t index) const noexcept;
};

}  // namespace kernwright::sim
