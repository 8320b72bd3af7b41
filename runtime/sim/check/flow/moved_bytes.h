// The places of a register's bytes after instructions that only move bytes.
#pragma once

#include "sim/ptx/ast.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// Bytes [first, first + count) of a register are those of something else from its byte `of` on.
struct ByteWindow {
  std::uint32_t reg = 0;
  int first = 0, count = 0, byte = 0;

  /// The bytes in [begin, end) of the register, counted from `to` on in another one.
  ByteWindow part(int begin, int end, std::uint32_t other, int to) const;
};

/// For an instruction that reads the window's register as this operand: the places of the bytes in
/// its result, also next to other bits (`or`, `bfi`). None if it computes with them, for example
/// copies a sign, unless `keeps_sign`.
std::optional<std::vector<ByteWindow>> move_bytes(const ptx::Function& function,
                                                  const ptx::Instruction& one,
                                                  std::uint32_t operand, const ByteWindow& window,
                                                  bool keeps_sign = false);

}  // namespace kernwright::sim
