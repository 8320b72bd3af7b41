// Functions called by device code but defined in no module: printf, assert, malloc, free, ...
#pragma once

#include "sim/code/op.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kernwright::sim {

/// The arguments of a call: lane i finds its parameter block, laid out as the PTX declaration says,
/// at params + i * param_stride, and leaves its result at returns + i * return_stride.
struct BuiltinCall {
  std::byte* params = nullptr;
  std::uint32_t param_stride = 0;
  std::byte* returns = nullptr;
  std::uint32_t return_stride = 0;
  std::uint32_t mask = 0;  ///< lanes that call
};

/// Returns `op`, or null when the call ended in a finding (Warp::stop is fault then). The caller
/// decides about the next op.
using BuiltinFn = const Op* (*)(const Op* op, Warp& warp, const BuiltinCall& call);

/// A built-in function, and the sizes of its parameters and result in bytes. Parameters lie one
/// after the other, each aligned to its size.
struct Builtin {
  std::string_view name;
  BuiltinFn run = nullptr;
  std::array<std::uint8_t, 5> parameters{};  ///< zeros behind the last one
  std::uint8_t result = 0;                   ///< 0: none
  bool any_signature = false;                ///< reads no parameters
};

/// The implementation of extern function `name`, or null. Functions of the CUDA device runtime have
/// one for reporting its absence in the simulation.
const Builtin* find_builtin(std::string_view name) noexcept;

}  // namespace kernwright::sim
