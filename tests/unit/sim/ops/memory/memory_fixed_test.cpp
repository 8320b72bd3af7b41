// Shared-memory accesses whose address is the same in every block: each pattern, many blocks,
// faults.
#include "unit/sim/exec/exec_support.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

constexpr unsigned kSharedBytes = 4096;

/// Each thread stores `words` values (its number in the grid times 8, plus 0, 1, ...) at shared
/// address `store` and, behind a barrier, loads as many from `load`; both are computed in %addr
/// from %t. The values go to out[(block * threads + thread) * words].
std::string exchange(const std::string& store, const std::string& load, int words) {
  const std::string vector = words == 1 ? "" : ".v" + std::to_string(words);
  const auto list = [&](const std::string& reg) {
    std::string text = reg + "0";
    for (int w = 1; w < words; ++w) text += ", " + reg + std::to_string(w);
    return words == 1 ? text : "{" + text + "}";
  };
  std::string text = kHeader;
  text +=
      ".visible .entry k(.param .u64 out) {\n.reg .b32 %t, %c, %n, %i, %s, %l, %v<4>, %w<4>;\n"
      ".reg .b64 %o, %x, %at;\n.shared .align 16 .b8 buffer[" +
      std::to_string(kSharedBytes) +
      "];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\n" + store + load +
      "mov.u32 %c, %ctaid.x;\nmad.lo.u32 %i, %c, %n, %t;\nshl.b32 %v0, %i, 3;\n";
  for (int w = 1; w < words; ++w) {
    text += "add.u32 %v" + std::to_string(w) + ", %v0, " + std::to_string(w) + ";\n";
  }
  text += "st.shared" + vector + ".u32 [%s], " + list("%v") + ";\nbar.sync 0;\n";
  text += "ld.shared" + vector + ".u32 " + list("%w") + ", [%l];\n";
  text += "mul.wide.u32 %x, %i, " + std::to_string(4 * words) + ";\nadd.s64 %at, %o, %x;\n";
  return text + "st.global" + vector + ".u32 [%at], " + list("%w") + ";\nret;\n}\n";
}

/// Runs exchange() with threads that write slot `to(t)` and read slot `from(t)`, in units of
/// `words` values, over 5 blocks.
template <typename To, typename From>
void check_exchange(const std::string& store, const std::string& load, int words, unsigned threads,
                    To to, From from) {
  constexpr unsigned kBlocks = 5;
  const auto per_thread = static_cast<unsigned>(words);
  Machine machine;
  const std::size_t count = std::size_t{kBlocks} * threads * per_thread;
  const std::uint64_t out = machine.upload(std::vector<std::uint32_t>(count, 0));
  const auto program = compile(exchange(store, load, words));
  REQUIRE_FALSE(machine.run(*program, {out}, {.grid = kBlocks, .block = threads}));
  const auto result = machine.download<std::uint32_t>(out, count);
  for (unsigned b = 0; b < kBlocks; ++b) {
    std::vector<std::uint32_t> shared(kSharedBytes / 4, 0xcdcdcdcd);
    for (unsigned t = 0; t < threads; ++t) {
      for (unsigned w = 0; w < per_thread; ++w)
        shared[to(t) * per_thread + w] = (b * threads + t) * 8 + w;
    }
    for (unsigned t = 0; t < threads; ++t) {
      for (unsigned w = 0; w < per_thread; ++w) {
        CHECK(result[(b * threads + t) * per_thread + w] == shared[from(t) * per_thread + w]);
      }
    }
  }
}

std::string scaled(const std::string& reg, int words) {
  return "shl.b32 " + reg + ", " + reg + ", " +
         std::to_string(words == 1   ? 2
                        : words == 2 ? 3
                                     : 4) +
         ";\n";
}

}  // namespace

TEST_CASE("fixed addresses: every pattern and vector length, whole and partial warps") {
  for (const int words : {1, 2, 4}) {
    for (const unsigned threads : {32u, 96u, 64u, 50u}) {
      CAPTURE(words);
      CAPTURE(threads);
      const auto same = [](unsigned t) { return t; };
      const std::string own = "mov.u32 %s, %t;\n" + scaled("%s", words);
      check_exchange(own, "mov.u32 %l, %t;\n" + scaled("%l", words), words, threads, same, same);
      check_exchange(own, "and.b32 %l, %t, 0;\n" + scaled("%l", words), words, threads, same,
                     [](unsigned) { return 0u; });
      check_exchange(own, "and.b32 %l, %t, 16;\n" + scaled("%l", words), words, threads, same,
                     [](unsigned t) { return t & 16; });
      check_exchange(own, "and.b32 %l, %t, 15;\n" + scaled("%l", words), words, threads, same,
                     [](unsigned t) { return t & 15; });
      check_exchange(own, "xor.b32 %l, %t, 1;\n" + scaled("%l", words), words, threads & ~1u, same,
                     [](unsigned t) { return t ^ 1; });
      // Stores where all lanes, or both halves, hit the same place: the highest lane stays.
      check_exchange(
          "and.b32 %s, %t, 15;\n" + scaled("%s", words),
          "and.b32 %l, %t, 7;\n" + scaled("%l", words), words, threads,
          [](unsigned t) { return t & 15; }, [](unsigned t) { return t & 7; });
      check_exchange(
          "and.b32 %s, %t, 0;\n" + scaled("%s", words),
          "and.b32 %l, %t, 0;\n" + scaled("%l", words), words, threads, [](unsigned) { return 0u; },
          [](unsigned) { return 0u; });
    }
  }
}

TEST_CASE("fixed addresses: out of bounds and misaligned accesses are found in the first block") {
  struct Case {
    const char* address;
    FaultKind kind;
    unsigned thread;
  };
  for (const Case& wrong : {Case{"mad.lo.u32 %s, %t, 4, 4000;\n", FaultKind::bounds, 24},
                            Case{"mad.lo.u32 %s, %t, 2, 0;\n", FaultKind::alignment, 1}}) {
    Machine machine;
    const std::uint64_t out = machine.upload(std::vector<std::uint32_t>(64, 0));
    const auto program = compile(exchange(wrong.address, "mov.u32 %l, 0;\n", 1));
    const auto fault = machine.run(*program, {out}, {.grid = 2, .block = 32});
    REQUIRE(fault);
    CHECK(fault->kind == wrong.kind);
    CHECK(fault->opcode == "st.shared.u32");
    CHECK(fault->block == std::array<unsigned, 3>{0, 0, 0});
    CHECK(fault->thread == std::array<unsigned, 3>{wrong.thread, 0, 0});
  }
}
