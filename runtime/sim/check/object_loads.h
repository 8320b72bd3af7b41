// Which loads read parts of an object that the program takes as a whole.
#pragma once

#include "sim/ptx/ast.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// Of CUDA's own types, in bytes.
inline constexpr std::uint32_t kMostAlignment = 16;

/// Compilers copy an object of a class in several pieces, one of which may be nothing but padding.
class ObjectLoads {
 public:
  /// `blocks`, `writes` and `writers`: by instruction its block, by register how many instructions
  /// write it and the last of them. All have to outlive this object.
  ObjectLoads(const ptx::Function& function, const std::vector<std::uint32_t>& blocks,
              const std::vector<std::uint32_t>& writes, const std::vector<std::uint32_t>& writers);

  /// Bytes to which the object is aligned that the load reads a part of, as far as padding goes; 0
  /// where no others of its block read what lies beside, or where all might read elements of an
  /// array. Others that write more than it reads, what it reads among that, are taken for the same.
  std::uint32_t alignment_at(std::uint32_t load) const;

 private:
  struct Piece {
    std::uint32_t block, root;
    std::int64_t begin, end;  ///< counted from what the root holds
    std::uint32_t shape;      ///< equal for accesses of one kind
    bool stores;
  };
  Piece piece_of(std::uint32_t at) const;

  const ptx::Function& function_;
  const std::vector<std::uint32_t>&blocks_, &writes_, &writers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Piece>> pieces_;  ///< by root
};

}  // namespace kernwright::sim
