// set into f16 and bf16: what setp says of the same operands, as a number.
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <string>
#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

struct Source {
  std::string type, comparisons, registers;  ///< names of registers: h, r or d
};

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result{""};
  for (const char c : text) {
    if (c == ' ') {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  return result;
}

std::vector<Source> sources() {
  std::vector<Source> all;
  const std::string is_signed = "eq ne lt le gt ge";
  const std::string floats = is_signed + " equ neu ltu leu gtu geu num nan";
  for (const auto& [bits, registers] : {std::pair{"16", "h"}, {"32", "r"}, {"64", "d"}}) {
    all.push_back({std::string("b") + bits, "eq ne", registers});
    all.push_back({std::string("u") + bits, is_signed + " lo ls hi hs", registers});
    all.push_back({std::string("s") + bits, is_signed, registers});
  }
  all.push_back({"f32", floats, "r"});
  all.push_back({"ftz.f32", floats, "r"});
  all.push_back({"f64", floats, "d"});
  all.push_back({"f16", floats, "h"});
  return all;
}

/// One comparison both ways; %r6 counts differences, %r7 how often it held.
std::string compare_text(const Source& source, const std::string& comparison,
                         const std::string& combined, const std::string& to) {
  const bool flushes = source.type.starts_with("ftz.");
  const std::string from = flushes ? source.type.substr(4) : source.type;
  const std::string name = comparison + (combined.empty() ? "" : "." + combined);
  const std::string operands = ", %" + source.registers + "2, %" + source.registers + "3" +
                               (combined.empty() ? ";\n" : ", !%p3;\n");
  return "setp." + name + (flushes ? ".ftz." : ".") + from + " %p1" + operands + "selp.b16 %h4, " +
         (to == "f16" ? "0x3c00" : "0x3f80") + ", 0, %p1;\nmov.b16 %h5, 7;\n" + "set." + name +
         (flushes ? ".ftz." : ".") + to + "." + from + " %h5" + operands +
         "setp.ne.b16 %p2, %h4, %h5;\n@%p2 add.u32 %r6, %r6, 1;\n@%p1 add.u32 %r7, %r7, 1;\n";
}

void check(const Source& source, const std::string& to) {
  static const std::vector<std::uint64_t> kValues{0,
                                                  1,
                                                  ~0ull,
                                                  0x8000800080008000,
                                                  0x7fff7fff7fff7fff,
                                                  0x7ff8000000000000,
                                                  0x7fc000007fc00000,
                                                  0x3ff000003f803c00,
                                                  0x0000000000400001};
  std::vector<std::uint64_t> input;
  for (const std::uint64_t a : kValues)
    for (const std::uint64_t b : kValues) input.insert(input.end(), {a, b});
  std::string body =
      "ld.param.u64 %d1, [p0];\nmad.wide.u32 %d1, %r0, 16, %d1;\nld.global.v2.b64 {%d2, %d3}, "
      "[%d1];\ncvt.u32.u64 %r2, %d2;\ncvt.u32.u64 %r3, %d3;\ncvt.u16.u64 %h2, %d2;\n"
      "cvt.u16.u64 %h3, %d3;\nmov.u32 %r6, 0;\nmov.u32 %r7, 0;\nand.b32 %r4, %r0, 1;\n"
      "setp.ne.u32 %p3, %r4, 0;\n";
  std::uint32_t forms = 0;
  for (const std::string& comparison : words(source.comparisons)) {
    for (const std::string combined : {"", "and", "or", "xor"}) {
      body += compare_text(source, comparison, combined, to);
      ++forms;
    }
  }
  body += "st.global.v2.u32 [%d1], {%r6, %r7};\n";
  OpsRunner runner;
  const auto threads = static_cast<std::uint32_t>(input.size() / 2);
  runner.block = {threads, 1, 1};
  const std::uint64_t memory = runner.upload(input);
  const Fault report = runner.run(body, {memory});
  INFO(to, " of ", source.type, ": ", report.to_string());
  REQUIRE(report.kind == FaultKind::none);
  const auto counts = runner.download<std::uint32_t>(memory, std::size_t{threads} * 4);
  std::uint32_t different = 0, held = 0;
  for (std::size_t i = 0; i < threads; ++i) {
    different += counts[4 * i];
    held += counts[4 * i + 1];
  }
  CHECK(different == 0);
  CHECK(held > 0);
  CHECK(held < forms * threads);
}

TEST_CASE("set into halves: 1 where setp holds, for every type, comparison and combination") {
  for (const Source& source : sources())
    for (const std::string to : {"f16", "bf16"})
      if (to != "bf16" || source.type != "ftz.f32") check(source, to);
}

TEST_CASE("set into halves: what ptxas refuses is refused") {
  for (const std::string form :
       {"set.lt.ftz.bf16.f32 %h1, %r2, %r3;", "set.lt.f16.b32 %h1, %r2, %r3;",
        "set.lt.f16.bf16 %h1, %h2, %h3;", "set.lt.u16.f32 %h1, %r2, %r3;"}) {
    OpsRunner runner;
    INFO(form);
    CHECK_THROWS(runner.run(form, {}));
  }
}

}  // namespace
}  // namespace kernwright::sim
