// Addresses of array elements as one op, and with their accesses: the joined instructions, and
// equal results for all patterns of indices and bases.
#include "unit/sim/exec/exec_support.h"

#include "sim/code/dispatch.h"
#include "sim/code/passes.h"
#include "sim/code/tables.h"

#include <doctest/doctest.h>

#include <random>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

struct Joined {
  std::vector<std::string> opcodes;  ///< without those of the kernel's frame
  std::size_t accesses = 0;          ///< run together with their addresses

  bool operator==(const Joined&) const = default;
};

/// The ops of `body`, behind %a = shared memory's value at 0 and %x = the one at 8.
Joined joined(const std::string& body) {
  const auto program =
      compile(std::string(kHeader) +
              ".visible .entry k() {\n.reg .pred %p;\n.reg .b32 %a, %b, %c, %v;\n"
              ".reg .b64 %w, %x, %y, %z, %u;\nld.shared.u32 %a, [0];\nld.shared.u64 %x, [8];\n" +
              body + "ret;\n}\n");
  Joined result;
  for (std::size_t i = 2; i + 1 < program->full.size(); ++i)
    result.opcodes.emplace_back(program->places[i].opcode);
  result.accesses = program->tables->fused.size();
  return result;
}

/// Of joined(): builds for size have no handlers for two ops.
std::size_t accesses(std::size_t count) {
  return std::string_view(selected_isa()) == "baseline" ? 0 : count;
}

constexpr int kRounds = 64;

/// The indices and bases of one launch: 32 of each for each round.
struct Pattern {
  std::vector<std::uint32_t> index;
  std::vector<std::uint64_t> base;

  /// Address of element k, of `bytes` bytes.
  std::uint64_t element(std::size_t k, std::uint32_t bytes, bool is_signed) const {
    const std::int64_t at =
        is_signed ? std::int64_t{static_cast<std::int32_t>(index[k])} : std::int64_t{index[k]};
    return base[k] + static_cast<std::uint64_t>(at * bytes);
  }
};

/// Elements of `bytes` bytes in 64 KiB at `memory`, all of them inside: mostly rows of neighbours,
/// and rows with a small gap.
Pattern make_pattern(std::mt19937& random, std::uint64_t memory, std::uint32_t bytes,
                     bool is_signed) {
  const auto pick = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random()) % limit;
  };
  const std::uint32_t elements = 65536 / bytes;
  Pattern pattern;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint32_t start = pick(elements - 64) + 16, kind = pick(10);
    // Far away from zero, where sums of 32 bits would wrap or signs differ.
    const std::uint32_t shift =
        std::vector<std::uint32_t>{0, 0, 0, 0x7fffffe0u, 0xfffffff0u, 0x80000000u}[pick(6)];
    const std::uint32_t odd = pick(32);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      std::uint32_t at = start + lane;
      if (kind == 0) at = start + 31 - lane;
      if (kind == 1) at = start;
      if (kind == 2) at = start + lane / 16;
      if (kind == 3 && lane == odd) at = start;
      if (kind == 4) at = pick(elements);
      const std::uint32_t written = at + shift;
      const std::int64_t read =
          is_signed ? std::int64_t{static_cast<std::int32_t>(written)} : std::int64_t{written};
      std::uint64_t base =
          memory + static_cast<std::uint64_t>((std::int64_t{at} - read) * std::int64_t{bytes});
      if (kind == 5 && lane == odd) base += bytes;
      pattern.index.push_back(written);
      pattern.base.push_back(base);
    }
  }
  return pattern;
}

/// For each round: the thread's index and base, then `access`, with the element at [%z] and value
/// registers %v0 to %v3. The first is the number of thread and round.
std::string rounds(const std::string& sign, std::uint32_t bytes, const std::string& access) {
  return std::string(kHeader) +
         ".visible .entry k(.param .u64 index, .param .u64 base, .param .u64 out) {\n"
         ".reg .pred %p;\n.reg .b32 %t, %i, %n, %k, %v<4>;\n.reg .b64 %in, %ba, %o, %w, %x, %y, "
         "%z, %d<2>;\nld.param.u64 %in, [index];\nld.param.u64 %ba, [base];\n"
         "ld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %n, 0;\nLOOP:\n"
         "mad.lo.u32 %k, %n, 32, %t;\nmad.wide.u32 %w, %k, 4, %in;\nld.global.u32 %i, [%w];\n"
         "mad.wide.u32 %w, %k, 8, %ba;\nld.global.u64 %x, [%w];\n"
         "mad.wide.u32 %w, %k, 16, %o;\nadd.u32 %v0, %k, 1;\nadd.u32 %v1, %k, 2;\n"
         "add.u32 %v2, %k, 3;\nadd.u32 %v3, %k, 4;\nmov.b64 %d0, {%v0, %v1};\n"
         "mov.b64 %d1, {%v2, %v3};\n"
         "mul.wide." +
         sign + " %y, %i, " + std::to_string(bytes) + ";\nadd.s64 %z, %x, %y;\n" + access +
         "add.u32 %n, %n, 1;\nsetp.lt.u32 %p, %n, " + std::to_string(kRounds) +
         ";\n@%p bra LOOP;\nret;\n}\n";
}

struct Access {
  std::uint32_t bytes;
  std::string load, store;
};

/// Loads into the value registers; these go to out.
const std::vector<Access> kAccesses{
    {4, "ld.global.u32 %v0, [%z];\n", "st.global.u32 [%z], %v0;\n"},
    {8, "ld.global.v2.u32 {%v0, %v1}, [%z];\n", "st.global.v2.u32 [%z], {%v0, %v1};\n"},
    {16, "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%z];\n",
     "st.global.v4.u32 [%z], {%v0, %v1, %v2, %v3};\n"},
    {8, "ld.global.u64 %d0, [%z];\nmov.b64 {%v0, %v1}, %d0;\n", "st.global.u64 [%z], %d0;\n"},
    {16, "ld.global.v2.u64 {%d0, %d1}, [%z];\nmov.b64 {%v0, %v1}, %d0;\nmov.b64 {%v2, %v3}, %d1;\n",
     "st.global.v2.u64 [%z], {%d0, %d1};\n"},
};

}  // namespace

TEST_CASE("fused addresses: product, sum and access become one") {
  const std::string product = "mul.wide.s32 %y, %a, 4;\n", sum = "add.s64 %z, %x, %y;\n";
  CHECK(joined(product + sum + "ld.global.u32 %v, [%z+8];\n") ==
        Joined{{"add.s64", "ld.global.u32"}, accesses(1)});
  CHECK(joined("mul.wide.u32 %y, %a, 8;\nadd.u64 %z, %y, %x;\nst.global.u64 [%z], %x;\n") ==
        Joined{{"add.u64", "st.global.u64"}, accesses(1)});
  CHECK(joined("mad.wide.s32 %z, %a, 4, %x;\nld.global.u32 %v, [%z];\n") ==
        Joined{{"mad.wide.s32", "ld.global.u32"}, accesses(1)});
}

TEST_CASE("fused addresses: each access has its address in front of it") {
  const std::string product = "mul.wide.s32 %y, %a, 4;\n", sum = "add.s64 %z, %x, %y;\n";
  const std::string load = "ld.global.u32 %v, [%z];\n", store = "st.global.u32 [%z], %v;\n";
  using Opcodes = std::vector<std::string>;
  const bool joins = accesses(1) == 1;
  // Two addresses and then their accesses; one element read and then written.
  const std::string other = "add.s64 %u, %y, 64;\nld.global.u32 %v, [%u];\n";
  CHECK(joined(product + sum + other + store) ==
        Joined{joins ? Opcodes{"add.s64", "ld.global.u32", "add.s64", "st.global.u32"}
                     : Opcodes{"add.s64", "add.s64", "ld.global.u32", "st.global.u32"},
               accesses(2)});
  CHECK(joined(product + sum + load + "add.u32 %v, %v, 1;\n" + store) ==
        Joined{joins ? Opcodes{"add.s64", "ld.global.u32", "add.u32", "add.s64", "st.global.u32"}
                     : Opcodes{"add.s64", "ld.global.u32", "add.u32", "st.global.u32"},
               accesses(2)});
  CHECK(joined(product + sum + load + "st.global.u32 [%z+4], %v;\nst.global.u32 [%z+8], %v;\n")
            .accesses == accesses(3));
  // One access too many, another reader, an operand changed before the last access.
  CHECK(joined(product + sum + load + store + store + store).accesses == 0);
  CHECK(joined(product + sum + load + "st.global.u64 [%z], %z;\n").accesses == 0);
  CHECK(joined(product + sum + load + "atom.global.add.u32 %v, [%z], 1;\n").accesses == 0);
  for (const std::string change : {"add.s32", "add.s64"}) {
    const char* reg = change == "add.s32" ? "%a" : "%x";
    const std::string changes = change + " " + reg + ", " + reg + ", 1;\n";
    CHECK(joined(product + sum + load + changes + store) ==
          Joined{{"add.s64", "ld.global.u32", change, "st.global.u32"}, 0});
  }
  CHECK(joined(product + sum + "ld.global.u32 %a, [%z];\n" + store).accesses == 0);
  // The last access may change them.
  CHECK(joined(product + sum + store + "ld.global.u32 %a, [%z];\n").accesses == accesses(2));
  // Another block.
  CHECK(joined(product + sum + load + "setp.eq.u32 %p, %v, 1;\n@%p bra ON;\n" + store + "ON:\n")
            .accesses == 0);
}

TEST_CASE("fused addresses: what has another reader, writer or size stays apart") {
  const std::string product = "mul.wide.s32 %y, %a, 4;\n", sum = "add.s64 %z, %x, %y;\n";
  const std::string load = "ld.global.u32 %v, [%z];\n";
  using Opcodes = std::vector<std::string>;
  // The address is a value too.
  CHECK(joined(product + sum + "st.global.u64 [%z], %z;\n").accesses == 0);
  // Other bytes than the access has, or another space.
  CHECK(joined("mul.wide.s32 %y, %a, 8;\n" + sum + load).accesses == 0);
  CHECK(joined(product + sum + "ld.shared.u32 %v, [%z];\n").accesses == 0);
  CHECK(joined(product + sum + "ld.u32 %v, [%z];\n").accesses == 0);
  CHECK(joined(product + sum + "ld.acquire.gpu.global.u32 %v, [%z];\n").accesses == 0);
  CHECK(joined(product + sum + "atom.global.add.u32 %v, [%z], 1;\n").accesses == 0);
  // The product is read by something else, by too many, or twice by one.
  CHECK(joined(product + sum + load + "st.shared.u64 [16], %y;\n").opcodes.front() ==
        "mul.wide.s32");
  CHECK(joined(product + "add.s64 %z, %y, %y;\n" + load).opcodes ==
        Opcodes{"mul.wide.s32", "add.s64", "ld.global.u32"});
  // The index or the product is written again.
  CHECK(joined(product + "add.s32 %a, %a, 1;\n" + sum + load).opcodes.front() == "mul.wide.s32");
  CHECK(joined(product + sum + load +
               "mul.wide.s32 %y, %a, 16;\nadd.s64 %u, %y, %x;\n"
               "ld.global.u32 %v, [%u];\n")
            .opcodes.front() == "mul.wide.s32");
  // No constant, no 32 bits, a guard, another block.
  CHECK(joined("ld.shared.u32 %b, [4];\nmul.wide.s32 %y, %a, %b;\n" + sum + load).opcodes[1] ==
        "mul.wide.s32");
  CHECK(joined("mul.lo.s64 %y, %x, 4;\n" + sum + load).opcodes.front() == "mul.lo.s64");
  const std::string test = "setp.eq.u32 %p, %a, 1;\n";
  CHECK(joined(test + product + sum + "@%p " + load).accesses == 0);
  CHECK(joined(test + product + "@%p " + sum + load).accesses == 0);
  CHECK(joined(test + product + "@%p bra ON;\n" + sum + load + "ON:\n").opcodes[1] ==
        "mul.wide.s32");
}

TEST_CASE("fused addresses: loads of every pattern, sign and size") {
  std::mt19937 random(5);
  for (const Access& access : kAccesses) {
    for (const bool is_signed : {true, false}) {
      CAPTURE(access.load);
      CAPTURE(is_signed);
      Machine machine;
      std::vector<std::uint32_t> memory(16384 + 64);
      for (auto& word : memory) word = static_cast<std::uint32_t>(random());
      const std::uint64_t at = machine.upload(memory);
      const Pattern pattern = make_pattern(random, at, access.bytes, is_signed);
      const std::uint64_t out =
          machine.upload(std::vector<std::uint32_t>(std::size_t{kRounds} * 32 * 4));
      const auto program =
          compile(rounds(is_signed ? "s32" : "u32", access.bytes,
                         access.load + "st.global.v4.u32 [%w], {%v0, %v1, %v2, %v3};\n"));
      REQUIRE_FALSE(machine.run(*program,
                                {machine.upload(pattern.index), machine.upload(pattern.base), out},
                                {.block = 32}));
      const auto got = machine.download<std::uint32_t>(out, std::size_t{kRounds} * 32 * 4);
      for (std::size_t k = 0; k < pattern.index.size(); ++k) {
        const std::uint64_t from = pattern.element(k, access.bytes, is_signed) - at;
        for (std::size_t w = 0; w < 4; ++w) {
          const bool loaded = w < access.bytes / 4;
          CHECK(got[k * 4 + w] == (loaded ? memory[from / 4 + w] : k + w + 1));
        }
      }
    }
  }
}

TEST_CASE("fused addresses: stores of every pattern, sign and size, the highest lane's last") {
  std::mt19937 random(9);
  for (const Access& access : kAccesses) {
    for (const bool is_signed : {true, false}) {
      CAPTURE(access.store);
      CAPTURE(is_signed);
      Machine machine;
      std::vector<std::uint32_t> memory(16384 + 64);
      const std::uint64_t at = machine.upload(memory);
      const Pattern pattern = make_pattern(random, at, access.bytes, is_signed);
      const auto program = compile(rounds(is_signed ? "s32" : "u32", access.bytes, access.store));
      REQUIRE_FALSE(machine.run(*program,
                                {machine.upload(pattern.index), machine.upload(pattern.base), at},
                                {.block = 32}));
      for (std::size_t k = 0; k < pattern.index.size(); ++k) {
        const std::uint64_t to = pattern.element(k, access.bytes, is_signed) - at;
        for (std::size_t w = 0; w < access.bytes / 4; ++w)
          memory[to / 4 + w] = static_cast<std::uint32_t>(k + w + 1);
      }
      CHECK(machine.download<std::uint32_t>(at, memory.size()) == memory);
    }
  }
}

TEST_CASE("fused addresses: elements that are read and then written, of every pattern") {
  std::mt19937 random(21);
  // Between them: nothing of it, a change of the index and the base, another element.
  for (const char* between :
       {"", "add.u32 %i, %i, 1;\n", "add.u64 %x, %x, 64;\n", "add.s64 %z, %z, 0;\n"}) {
    CAPTURE(between);
    Machine machine;
    std::vector<std::uint32_t> memory(16384 + 64);
    for (auto& word : memory) word = static_cast<std::uint32_t>(random());
    const std::uint64_t at = machine.upload(memory);
    const Pattern pattern = make_pattern(random, at, 4, true);
    const auto program = compile(rounds("s32", 4,
                                        std::string("ld.global.u32 %v1, [%z];\n") + between +
                                            "add.u32 %v0, %v0, %v1;\nst.global.u32 [%z], %v0;\n"));
    REQUIRE_FALSE(machine.run(*program,
                              {machine.upload(pattern.index), machine.upload(pattern.base), at},
                              {.block = 32}));
    for (std::size_t round = 0; round < kRounds; ++round) {
      std::vector<std::uint32_t> sums;
      for (std::size_t k = round * 32; k < round * 32 + 32; ++k)
        sums.push_back(memory[(pattern.element(k, 4, true) - at) / 4] +
                       static_cast<std::uint32_t>(k) + 1);
      for (std::size_t k = round * 32; k < round * 32 + 32; ++k)
        memory[(pattern.element(k, 4, true) - at) / 4] = sums[k % 32];
    }
    CHECK(machine.download<std::uint32_t>(at, memory.size()) == memory);
  }
}

TEST_CASE("fused addresses: an access out of bounds is the access's own fault") {
  Machine machine;
  const std::uint64_t in = machine.upload(std::vector<std::uint32_t>(64));
  const auto program = compile(std::string(kHeader) + R"(
.visible .entry k(.param .u64 in, .param .u64 limit) {
.reg .pred %p;
.reg .b32 %t, %i, %n, %v;
.reg .b64 %x, %y, %z, %l;
ld.param.u64 %x, [in];
ld.param.u64 %l, [limit];
cvt.u32.u64 %n, %l;
mov.u32 %t, %tid.x;
mov.u32 %i, %t;
LOOP:
mul.wide.s32 %y, %i, 4;
add.s64 %z, %x, %y;
ld.global.u32 %v, [%z];
add.u32 %i, %i, 16;
setp.lt.u32 %p, %i, %n;
@%p bra LOOP;
ret;
}
)");
  CHECK_FALSE(machine.run(*program, {in, 32}, {.block = 32}));
  const auto fault = machine.run(*program, {in, 200}, {.block = 32});
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::bounds);
  CHECK(fault->opcode == "ld.global.u32");
  CHECK(fault->address == in + 256);
  CHECK(fault->thread[0] == 16);
}

TEST_CASE("fused addresses: indices that wrap within a warp are no neighbours") {
  for (const bool is_signed : {true, false}) {
    CAPTURE(is_signed);
    Machine machine;
    const std::uint64_t at = machine.upload(std::vector<std::uint32_t>(64));
    const std::uint32_t start = is_signed ? 0x7ffffff0u : 0xfffffff0u;
    const std::uint64_t base = at - std::uint64_t{start} * 4;
    Pattern pattern;  // one row of neighbours makes their plan known; the second one wraps
    for (std::uint32_t k = 0; k < kRounds * 32; ++k) {
      const bool wraps = k >= 32 && k < 64;
      pattern.index.push_back(k % 32 + (wraps ? start : 0));
      pattern.base.push_back(wraps ? base : at);
    }
    const std::uint64_t out =
        machine.upload(std::vector<std::uint32_t>(std::size_t{kRounds} * 32 * 4));
    const auto program = compile(rounds(is_signed ? "s32" : "u32", 4, kAccesses[0].load));
    const auto fault =
        machine.run(*program, {machine.upload(pattern.index), machine.upload(pattern.base), out},
                    {.block = 32});
    REQUIRE(fault);
    CHECK(fault->kind == FaultKind::bounds);
    CHECK(fault->thread[0] == 16);
    CHECK(fault->address == (is_signed ? base - (std::uint64_t{1} << 33) : base));
  }
}
