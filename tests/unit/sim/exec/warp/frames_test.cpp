// Frames of warps: what their memory holds when they begin.
#include "unit/sim/exec/control_support.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

TEST_CASE("frames: constants of each width reach all lanes, whatever their memory held before") {
  // The memory of a frame with other constants and of all its registers goes to the next one.
  const std::string used = R"(
    mov.u64 %d1, 0xfedcba9876543210;
    mov.u64 %d2, -1;
    mov.u32 %r3, -1;
    setp.ne.u32 %p0, %r3, %t;
    @%p0 add.u64 %d1, %d1, %d2;
    st.global.u64 [%out], %d1;
    ret;)";
  const std::string body = R"(
    .reg .b16 %h<3>;
    mov.b16 %h0, 0x8421;
    cvt.u16.u32 %h1, %t;
    xor.b16 %h2, %h0, %h1;
    cvt.u64.u16 %d1, %h2;
    add.u64 %d3, %d7, %d1;
    cvt.u64.u32 %d4, %t;
    mad.lo.u64 %d3, %d4, 0x123456789abc, %d3;
    mad.lo.u32 %r4, %t, 0x89abcdef, %r7;
    cvt.u64.u32 %d5, %r4;
    add.u64 %d3, %d3, %d5;
    @%p7 add.u64 %d3, %d3, 1;
    st.global.u64 [%out], %d3;
    ret;)";
  for (int i = 0; i < 2; ++i) {
    check_words(kernel(used), {.grid = 2, .block = 65},
                [](std::uint64_t) { return std::uint64_t{0xfedcba987654320f}; });
    check_words(kernel(body), {.grid = 2, .block = 65}, [](std::uint64_t t) {
      return (0x8421 ^ t) + t * 0x123456789abc + static_cast<std::uint32_t>(t * 0x89abcdef);
    });
  }
}
