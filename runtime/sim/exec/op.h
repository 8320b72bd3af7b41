// A decoded instruction: what the interpreter's handlers work on.
#pragma once

#include <cstdint>

namespace kernwright::sim {

struct Op;
struct Warp;

/// Executes one instruction for the active lanes and returns the next op, or null to leave the run loop
/// (Warp::stop says why). Every handler exists twice: for a full warp and for a masked one.
using OpFn = const Op* (*)(const Op* op, Warp& warp);

/// Registers are byte offsets into the running frame (Warp::frame). A register is 32 lanes side by side:
/// 16-bit types 64 bytes, 32-bit 128, 64-bit 256, predicates one 32-bit mask. Immediates are
/// registers that the frame's constructor fills; so every operand is an offset.
struct alignas(64) Op {
  OpFn fn = nullptr;
  std::uint32_t d = 0;       ///< destination
  std::uint32_t a = 0, b = 0, c = 0;
  std::uint32_t e = 0;       ///< second destination or fourth source
  std::uint32_t target = 0;  ///< op index of a branch; else an index into a side table of Program
  std::int64_t imm = 0;      ///< displacement of an address, or a small constant
  std::uint32_t site = 0;    ///< memory instructions: index of the per-worker MemorySite
  std::uint32_t guard = 0;   ///< offset of the guard predicate, used by masked wrappers only
  std::uint32_t flags = 0;   ///< meaning belongs to the handler's family
};
static_assert(sizeof(Op) == 64);

}  // namespace kernwright::sim
