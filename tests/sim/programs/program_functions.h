// The functions that random programs call: one with a loop and an early return, one that calls
// itself. All lanes of a call give the latter the same depth: ptxas 13.0 takes lanes to come back
// from a call together and drops a bar.warp.sync behind it, but on an H200 those that called
// themselves less often come back before the others, and what is done together then goes wrong.
#pragma once

#include "sim/programs/program_operations.h"

#include <string_view>

namespace kernwright::sim {

/// Declared before the kernel; `functions` is a table of both.
inline constexpr std::string_view kFunctionText = R"(
.func (.param .b32 result) halve(.param .b32 a, .param .b32 b)
{
.reg .b32 %n, %left, %bit; .reg .pred %q;
ld.param.b32 %n, [a];
ld.param.b32 %left, [b];
and.b32 %left, %left, 15;
again:
setp.eq.u32 %q, %left, 0;
@%q bra end;
sub.u32 %left, %left, 1;
and.b32 %bit, %n, 1;
setp.eq.u32 %q, %bit, 0;
@%q bra even;
mad.lo.u32 %n, %n, 3, 1;
setp.gt.s32 %q, %n, 0;
@%q bra again;
xor.b32 %n, %n, %left;
st.param.b32 [result], %n;
ret;
even:
shr.u32 %n, %n, 1;
bra again;
end:
st.param.b32 [result], %n;
ret;
}
.func (.param .b32 result) descend(.param .b32 a, .param .b32 b)
{
.reg .b32 %n, %depth, %below; .reg .pred %q;
ld.param.b32 %n, [a];
ld.param.b32 %depth, [b];
and.b32 %depth, %depth, 7;
setp.eq.u32 %q, %depth, 0;
@%q bra bottom;
sub.u32 %below, %depth, 1;
mad.lo.u32 %depth, %n, 0x9e3779b1, %depth;
{
.param .b32 first;
.param .b32 second;
.param .b32 answer;
st.param.b32 [first], %depth;
st.param.b32 [second], %below;
call (answer), descend, (first, second);
ld.param.b32 %below, [answer];
}
shr.u32 %n, %n, 3;
add.u32 %n, %n, %below;
bottom:
st.param.b32 [result], %n;
ret;
}
.global .u64 functions[2] = {halve, descend};
)";

inline Word32 halve(Word32 n, Word32 b) {
  for (Word32 left = b & 15; left != 0;) {
    --left;
    if (n % 2 == 0) {
      n /= 2;
    } else {
      n = 3 * n + 1;
      if (static_cast<std::int32_t>(n) <= 0) return n ^ left;
    }
  }
  return n;
}

inline Word32 descend(Word32 n, Word32 b) {
  const Word32 depth = b & 7;
  return depth == 0 ? n : (n >> 3) + descend(n * 0x9e3779b1 + depth, depth - 1);
}

}  // namespace kernwright::sim
