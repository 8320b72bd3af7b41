// Which loads read parts of an object that the program takes as a whole.
#pragma once

#include "sim/check/flow/data_flow.h"
#include "sim/ptx/ast.h"

#include <cstdint>
#include <unordered_map>

namespace kernwright::sim {

/// Of CUDA's own types, in bytes.
inline constexpr std::uint32_t kMostAlignment = 16;

/// Compilers copy an object of a class in several pieces, one of which may be nothing but padding.
/// By instruction, of loads that read such a piece, to how many bytes the object is aligned as far
/// as padding goes. A load is one where others of its block read what lies beside, unless all might
/// read elements of an array, or where a store writes what it reads and more.
std::unordered_map<std::uint32_t, std::uint32_t> find_object_loads(const ptx::Function& function,
                                                                   const Outline& outline);

}  // namespace kernwright::sim
