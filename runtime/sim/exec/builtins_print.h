// printf and assert as built-in functions, and how built-ins reach their arguments.
#pragma once

#include "sim/code/builtins.h"

#include <cstring>

namespace kernwright::sim {

/// Argument of `lane` at byte `offset` of its parameter block.
template <typename T>
T read_argument(const BuiltinCall& call, int lane, std::uint32_t offset) {
  T value;
  std::memcpy(&value, call.params + static_cast<unsigned>(lane) * call.param_stride + offset,
              sizeof value);
  return value;
}

template <typename T>
void write_result(const BuiltinCall& call, int lane, T value) {
  if (call.returns == nullptr) return;
  std::memcpy(call.returns + static_cast<unsigned>(lane) * call.return_stride, &value,
              sizeof value);
}

/// int vprintf(const char* format, void* arguments): the text of all lanes, in lane order, goes out
/// as one piece. Returns the number of conversions per lane, -1 for a null format.
const Op* call_vprintf(const Op* op, Warp& warp, const BuiltinCall& call);

/// void __assertfail(const char* message, const char* file, unsigned line, const char* function,
/// size_t char_size): the function behind assert(). Ends the launch.
const Op* call_assertfail(const Op* op, Warp& warp, const BuiltinCall& call);

}  // namespace kernwright::sim
