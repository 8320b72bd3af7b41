// A decoded instruction, the input of the interpreter's handlers.
#pragma once

#include <cstdint>

namespace kernwright::sim {

struct Op;
struct Warp;

/// Executes one instruction for the active lanes and returns the next op (op + 1 unless it is a
/// branch), or null to leave the run loop (Warp::stop says why). Every handler exists twice: for a
/// full warp (Warp::mask is all ones) and for a masked one (only lanes of Warp::mask may be written
/// or may fault).
using OpFn = const Op* (*)(const Op* op, Warp& warp);

/// Registers are byte offsets into the running frame (Warp::frame). A register is 32 lanes side by
/// side: 8- and 16-bit registers 64 bytes, 32-bit 128, 64-bit 256, 128-bit 512 (lane i at 16 * i);
/// a predicate is one 32-bit mask (4 bytes). Slots are aligned to 64 bytes, predicates to 4. Bits
/// of an 8-bit register's 16-bit lane above bit 7 are undefined.
///
/// How decode() fills the operand fields:
/// - `d` is the destination, `d2` the second one (`p|q`, `d|p`). Instructions without a destination
///   (st, red, bar.sync, cp.async, ...) leave both alone.
/// - Sources fill a, b, c, e, f in written order, whatever their kind:
///   - a register: its offset. Immediates are registers too: frame constants of the operand's width
///     (dispatch.h, OperandWidths). So is a special register (a mov to a temporary comes before)
///     and the address of a symbol (64-bit). A negated predicate `!p` arrives as a temporary that
///     holds the complement; handlers never see negation.
///   - an address [base + displacement]: the offset of the register that holds the base (4 or 8
///   bytes
///     wide: OperandWidths); a symbol or a number as base is a 64-bit frame constant. `imm` holds
///     the displacement of the first address of the instruction, `imm2` that of the second.
///   - a vector {x, y, ...} (as destination too): index into Program::lists, where the elements'
///     offsets follow each other; their number is known from the modifiers or from Op::count.
///   - `_` as destination or element: kSinkOffset, 512 bytes that nobody reads; `_` as a source: a
///   zero.
/// - A destination may be the same register as a source (PTX allows it); two different registers of
/// one
///   instruction never overlap, except that immediates and sources may be shared with each other.
struct alignas(64) Op {
  OpFn fn = nullptr;
  std::uint32_t d = 0;                              ///< destination
  std::uint32_t d2 = 0;                             ///< second destination
  std::uint32_t a = 0, b = 0, c = 0, e = 0, f = 0;  ///< sources
  std::int32_t target = 0;   ///< branches: distance to the target, in ops; else index into Tables
  std::int64_t imm = 0;      ///< displacement of the first address, or a small constant
  std::int32_t imm2 = 0;     ///< displacement of the second address
  std::uint32_t site = 0;    ///< memory instructions: index of the per-worker MemorySite
  std::uint32_t flags = 0;   ///< OpPair::flags of the family that was chosen
  std::uint8_t count = 0;    ///< elements of the first vector operand
  std::uint8_t sources = 0;  ///< number of source operands (optional ones are present or not)
};
static_assert(sizeof(Op) == 64);

/// The share of one backward branch in the fairness window: 4096 in all. So a loop yields every
/// 4096 iterations, or every 16 where it may wait for another thread. In `flags`.
inline constexpr std::uint32_t kPlainLoopCost = 1;
inline constexpr std::uint32_t kSpinLoopCost = 256;

/// Fixed places at the start of every frame.
inline constexpr std::uint32_t kSinkOffset = 0;      ///< 512 bytes: destination of `_`
inline constexpr std::uint32_t kReturnOffset = 512;  ///< 32 x u32: op index to return to, per lane
inline constexpr std::uint32_t kLocalBaseOffset = 640;  ///< 32 x u32: where the lane's locals begin
inline constexpr std::uint32_t kCarryOffset = 768;  ///< u32: carry bit of each lane (add.cc, ...)
inline constexpr std::uint32_t kLocalTopOffset = 832;  ///< 32 x u32: where they end (alloca)
inline constexpr std::uint32_t kFrameHeaderBytes = 960;

}  // namespace kernwright::sim
