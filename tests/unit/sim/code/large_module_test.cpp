// Modules of a large size in one way: loading takes time and stack in proportion to the text.
#include "unit/sim/exec/control_support.h"
#include "unit/sim/ptx/ptx_fixture.h"

#include "sim/check/checked_program.h"
#include "sim/code/program.h"
#include "sim/observe/observed_program.h"
#include "sim/ptx/parse/parser.h"

#include <ctime>
#include <memory>
#include <random>
#include <string>

namespace kernwright::sim::testing {
namespace {

/// Seconds of the processor for decoding: plain, for the checks, and to be watched.
double seconds_to_load(const std::string& text) {
  const std::clock_t start = std::clock();
  const auto program = compile(text);
  make_checked(*program);
  make_observed(*decode(ptx::parse(text), {}, CodeForm::as_written));
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Far above what these take (below one), far below what a square of their size does.
constexpr double kSeconds = 20;

TEST_CASE("large module: a chain of calls as long as the text") {
  constexpr int kLength = 60000;
  std::string text = kHeader;
  text += ".func f0() { ret; }\n";
  for (int i = 1; i < kLength; ++i)
    text += ".func f" + std::to_string(i) + "() { .local .b8 v[4]; call f" + std::to_string(i - 1) +
            "; ret; }\n";
  text += ".visible .entry k() { call f" + std::to_string(kLength - 1) + "; ret; }\n";
  CHECK(seconds_to_load(text) < kSeconds);
  const auto program = compile(text);
  CHECK(program->find("k")->stack_bytes == 16 * (kLength - 1));
}

TEST_CASE("large module: many entries that call indirectly") {
  constexpr int kCount = 3000;
  std::string text = kHeader;
  for (int i = 0; i < kCount; ++i)
    text += ".func f" + std::to_string(i) + "() { .reg .b64 %d; mov.b64 %d, f" + std::to_string(i) +
            "; p: .callprototype _ (); call %d, (), p; ret; }\n";
  text += ".visible .entry k() { call f0; ret; }\n";
  CHECK(seconds_to_load(text) < kSeconds);
}

/// `blocks` blocks of one instruction, each ends in a branch to a random one.
std::string random_branches(int blocks, int registers) {
  std::mt19937_64 random(7);
  std::string text = ".reg .b32 %x<" + std::to_string(registers) + ">;\n";
  for (int i = 0; i < blocks; ++i) {
    const std::string from = std::to_string(random() % static_cast<unsigned>(registers));
    const std::string to = std::to_string(random() % static_cast<unsigned>(registers));
    text += "L" + std::to_string(i) + ":\nadd.u32 %x" + to + ", %x" + from + ", 1;\n" +
            "setp.eq.u32 %p1, %x" + from + ", " + std::to_string(random() % 100) + ";\n@%p1 bra L" +
            std::to_string(random() % static_cast<unsigned>(blocks)) + ";\n";
  }
  return kernel(text + "ret;");
}

TEST_CASE("large module: random branches") {
  CHECK(seconds_to_load(random_branches(40000, 8)) < kSeconds);
}

TEST_CASE("large module: random branches and as many registers") {
  CHECK(seconds_to_load(random_branches(20000, 20000)) < kSeconds);
}

TEST_CASE("large module: one block, many registers that live at once") {
  constexpr int kCount = 30000;
  std::string text = ".reg .b32 %x<" + std::to_string(kCount) + ">;\n";
  for (int i = 0; i < kCount; ++i)
    text += "add.u32 %x" + std::to_string(i) + ", %t, " + std::to_string(i) + ";\n";
  text += "mov.b32 %r2, 0;\n";
  for (int i = 0; i < kCount; ++i) text += "add.u32 %r2, %r2, %x" + std::to_string(i) + ";\n";
  text += "cvt.u64.u32 %d1, %r2;\nst.global.u64 [%out], %d1;\nret;";
  CHECK(seconds_to_load(kernel(text)) < kSeconds);
  check_words(kernel(text), {.block = 2}, [](std::uint64_t i) {
    return (std::uint64_t{kCount} * i + std::uint64_t{kCount} * (kCount - 1) / 2) & 0xffffffff;
  });
}

TEST_CASE("large module: a chain of copies, backwards through the text") {
  constexpr int kCount = 20000;
  std::string text =
      ".reg .b32 %x<" + std::to_string(kCount + 1) + ">;\nmov.b32 %x0, %t;\n" + "bra C0;\n";
  for (int i = kCount - 1; i >= 0; --i) {
    const std::string here = std::to_string(i), next = std::to_string(i + 1);
    text += "C" + here + ":\nmov.b32 %x" + next + ", %x" + here + ";\nbra " +
            (i + 1 == kCount ? std::string("DONE") : "C" + next) + ";\n";
  }
  text +=
      "DONE:\ncvt.u64.u32 %d1, %x" + std::to_string(kCount) + ";\nst.global.u64 [%out], %d1;\nret;";
  CHECK(seconds_to_load(kernel(text)) < kSeconds);
  check_words(kernel(text), {.block = 33}, [](std::uint64_t i) { return i; });
}

TEST_CASE("large module: one loop with many ways back to its head") {
  constexpr int kCount = 20000;
  std::string text = "mov.b32 %r2, 0;\nHEAD:\nadd.u32 %r2, %r2, 1;\n";
  for (int i = 0; i < kCount; ++i)
    text += "setp.eq.u32 %p1, %r2, " + std::to_string(i) + ";\n@%p1 bra HEAD;\n";
  CHECK(seconds_to_load(kernel(text + "ret;")) < kSeconds);
}

TEST_CASE("large module: a frame that no warp can have is refused") {
  constexpr int kCount = 150000;
  std::string text = ".reg .b64 %x<" + std::to_string(kCount) + ">;\n";
  for (int i = 0; i < kCount; ++i) text += "ld.global.b64 %x" + std::to_string(i) + ", [%out];\n";
  for (int i = 0; i < kCount; ++i) text += "st.global.b64 [%out], %x" + std::to_string(i) + ";\n";
  const std::string error = ptx::testing::error_of([&] { compile(kernel(text + "ret;")); });
  CHECK(ptx::testing::contains(error, "MiB for a warp"));
}

}  // namespace
}  // namespace kernwright::sim::testing
