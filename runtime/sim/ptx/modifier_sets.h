// The vocabulary of the ISA table's patterns: the effect of each modifier word on Modifiers, and
// the named sets (.CMP, .SPACE, ...) used by rows.
#pragma once

#include "sim/ptx/types.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kernwright::sim::ptx {

/// The member of Modifiers set by a word. `ignored` words (cache hints) set nothing.
enum class Field : std::uint8_t {
  ignored,
  type,
  rounding,
  compare,
  bool_op,
  part,
  space,
  semantics,
  scope,
  atom,
  shfl,
  vote,
  prmt,
  vector,
  shape,
  layout,
  verb,
  selector,
  geometry,
  component,
#define KW_FLAG(member, text) member,
#include "sim/ptx/flags.inc"
#undef KW_FLAG
  count,
};

inline constexpr std::size_t kFields = static_cast<std::size_t>(Field::count);

/// One word and its effect. `value` is the enumerator, the vector length, or for shapes an index
/// for apply().
struct Word {
  std::string_view text;
  Field field = Field::ignored;
  std::uint16_t value = 1;
};

/// The words of the named set, empty when there is no such set. Thread-safe.
std::span<const Word> named_set(std::string_view name) noexcept;

/// The meaning of a word spelled out in a pattern: flags, types, shapes, roundings. Throws
/// std::logic_error for a word forbidden in the table.
Word literal_word(std::string_view text);

/// Applies one matched word.
void apply(const Word& word, Modifiers& modifiers) noexcept;

}  // namespace kernwright::sim::ptx
