// Blocks over host threads: every block once, the same result and the same finding on any number of
// threads, text in block order.
#include "sim/device/launch/grid.h"

#include "sim/code/program.h"
#include "sim/device/launch/print.h"
#include "sim/ptx/parse/parser.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <vector>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// x[block] += block + 1 in thread 0; traps in blocks at and above `bad` that are a multiple of 7.
constexpr char kText[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry mark(.param .u64 x, .param .u32 bad)
{
  .reg .b32 %r<12>;
  .reg .b64 %rd<4>;
  .reg .pred %p<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [bad];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ctaid.y;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r5, %r3, %r4, %r2;
  setp.lt.u32 %p1, %r5, %r1;
  @%p1 bra GOOD;
  rem.u32 %r6, %r5, 7;
  setp.ne.u32 %p2, %r6, 0;
  @%p2 bra GOOD;
  trap;
GOOD:
  mov.u32 %r7, %tid.x;
  setp.ne.u32 %p3, %r7, 0;
  @%p3 bra DONE;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r8, [%rd3];
  add.u32 %r9, %r8, %r5;
  add.u32 %r10, %r9, 1;
  st.global.u32 [%rd3], %r10;
DONE:
  ret;
}
)";

class Marked {
 public:
  explicit Marked(std::uint32_t blocks) : memory_(64 << 20), blocks_(blocks) {
    program_ = decode(ptx::parse(kText), {});
    address_ = memory_.allocate(4 * std::uint64_t{blocks}, AllocationKind::device).value();
  }
  GridResult run(std::array<std::uint32_t, 3> grid, std::uint32_t bad, int width) {
    std::byte parameters[16] = {};
    std::memcpy(parameters, &address_, 8);
    std::memcpy(parameters + 8, &bad, 4);
    LaunchContext launch;
    launch.program = program_.get();
    launch.function =
        static_cast<std::uint32_t>(program_->find("mark") - program_->functions.data());
    launch.grid = grid;
    launch.block = {40, 1, 1};
    launch.parameters = parameters;
    launch.parameter_bytes = 12;
    launch.memory = &memory_;
    return run_grid(launch, width);
  }
  std::vector<std::uint32_t> marks() const {
    std::vector<std::uint32_t> values(blocks_);
    std::memcpy(values.data(), host_pointer(address_), 4 * values.size());
    return values;
  }

 private:
  Memory memory_;
  std::uint32_t blocks_;
  std::unique_ptr<Program> program_;
  std::uint64_t address_ = 0;
};

constexpr std::uint32_t kNever = ~std::uint32_t{0};

}  // namespace

TEST_CASE("grid: every block runs once, on any number of threads") {
  for (const int width : {1, 2, 3, 8, 64}) {
    for (const std::uint32_t columns : {1u, 2u, 7u, 1000u}) {
      INFO(width, " threads, ", columns, " columns");
      Marked marked(columns * 3);
      CHECK_FALSE(marked.run({columns, 3, 1}, kNever, width).fault);
      std::vector<std::uint32_t> expected(columns * 3);
      std::iota(expected.begin(), expected.end(), 1u);
      CHECK(marked.marks() == expected);
    }
  }
}

TEST_CASE("grid: the failing block with the lowest index is reported, whatever ran when") {
  for (const int width : {1, 2, 5, 16}) {
    for (const std::uint32_t bad : {0u, 1u, 100u, 997u}) {
      INFO(width, " threads, first bad block from ", bad);
      Marked marked(2000);
      const GridResult result = marked.run({500, 4, 1}, bad, width);
      REQUIRE(result.fault);
      CHECK(result.fault->kind == FaultKind::trap);
      const std::uint32_t first = (bad + 6) / 7 * 7;
      CHECK(result.fault->block == std::array<unsigned, 3>{first % 500, first / 500, 0});
      const auto marks = marked.marks();
      for (std::uint32_t block = 0; block < first; ++block) REQUIRE(marks[block] == block + 1);
      CHECK(marks[1999] == 0);
    }
  }
}

TEST_CASE("print buffer: text is joined in block order and cut where it gets too long") {
  std::vector<PrintBuffer> buffers(2);
  const auto print = [&](std::size_t buffer, std::uint64_t block, std::string_view text) {
    buffers[buffer].begin_block(block);
    PrintBuffer::append(&buffers[buffer], text);
  };
  print(0, 0, "a");
  print(1, 1, "b");
  print(0, 2, "c");
  print(0, 2, "d");
  print(1, 3, "e");
  CHECK(join(buffers) == "abcde");
  CHECK(join(buffers).empty());
  std::vector<PrintBuffer> one(1);
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) PrintBuffer::append(&one[0], piece);
  const std::string text = join(one);
  CHECK(text.size() < (17u << 20));
  CHECK(text.find("the rest is dropped") != std::string::npos);
}
