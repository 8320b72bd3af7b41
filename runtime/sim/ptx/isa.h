// The ISA table: one row per instruction form. Parser checks, dispatch, the documentation page and
// the tests' coverage list all come from it.
#pragma once

#include "sim/ptx/types.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace kernwright::sim::ptx {

/// The executor of a row. One handler serves many types: the op family's selector reads Modifiers.
enum class Handler : std::uint16_t {
#define KW_HANDLER(name) name,
#define KW_COMPUTE(name) name,
#include "sim/ptx/handlers.inc"
  count_
};

/// Rows are written in ptx/isa/<family>.inc in the manual's own syntax:
///   KW_ISA("add", "[.sat].s32", "d a b", add)
///   KW_ISA("setp", ".CMP[.BOOL][.ftz].f32", "p|q a b [c]", setp)
///   KW_ISA("ld", "[.weak].SPACE[.CACHE][.VEC].{b8,b16,b32,b64,u8,...,f32,f64}", "d [a]", ld)
/// `[.x]` is optional, `.{x,y}` a choice, upper case a named set (isa.cpp). Operand letters: see
/// isa.cpp.
struct IsaRow {
  std::string_view stem;
  std::string_view modifiers;
  std::string_view operands;
  Handler handler;
  int min_sm = 0;         ///< 75 = everywhere we care about
  std::string_view note;  ///< for the documentation page; empty = exact
};

/// All rows, in table order.
std::span<const IsaRow> isa_rows();

/// Matches `opcode` (stem and dotted modifiers) against the rows of its stem. Null when none fits.
/// On success fills `modifiers`.
const IsaRow* match(std::string_view opcode, Modifiers& modifiers);

/// Whether it is a KW_COMPUTE of handlers.inc.
bool computes(Handler handler) noexcept;

}  // namespace kernwright::sim::ptx
