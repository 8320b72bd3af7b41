// Finds loads of parts of an object, where the program takes the object as a whole.
#pragma once

#include "sim/check/flow/data_flow.h"
#include "sim/ptx/ast.h"

#include <cstdint>
#include <unordered_map>

namespace kernwright::sim {

/// The largest alignment of CUDA's own types, in bytes.
inline constexpr std::uint32_t kMostAlignment = 16;

/// Compilers copy an object of a class in several pieces. One of them may be nothing but padding.
/// By instruction, of loads of such a piece: the alignment of the object as far as padding goes.
/// Two signs tell such a load: others of its block read the bytes beside it, unless all might read
/// elements of an array; or a store writes the loaded bytes and more.
std::unordered_map<std::uint32_t, std::uint32_t> find_object_loads(const ptx::Function& function,
                                                                   const Outline& outline);

}  // namespace kernwright::sim
