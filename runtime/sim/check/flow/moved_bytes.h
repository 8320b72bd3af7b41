// Where instructions that only move bytes put those of a register.
#pragma once

#include "sim/ptx/ast.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// Bytes [first, first + count) of a register are those of something else from its byte `of` on.
struct ByteWindow {
  std::uint32_t reg = 0;
  int first = 0, count = 0, of = 0;

  /// Those in [begin, end) of the register, counted from `to` on in another one.
  ByteWindow part(int begin, int end, std::uint32_t other, int to) const;
};

/// Of an instruction that reads the window's register as that operand: where the bytes are in what
/// it writes, also beside other bits (`or`, `bfi`). None where it computes with them, as where it
/// copies a sign, unless `with_signs`.
std::optional<std::vector<ByteWindow>> move_bytes(const ptx::Function& function,
                                                  const ptx::Instruction& one,
                                                  std::uint32_t operand, const ByteWindow& window,
                                                  bool with_signs = false);

}  // namespace kernwright::sim
