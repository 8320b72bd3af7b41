// Helpers of the executor's tests: run PTX text on a block runner, evaluate one instruction over a
// table.
#pragma once

#include "base/fault.h"
#include "sim/code/program.h"
#include "sim/exec/block/block_runner.h"
#include "sim/ptx/parse/parser.h"
#include "unit/sim/runner_memory.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::sim::testing {

inline constexpr const char* kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

inline std::unique_ptr<Program> compile(const std::string& text) {
  return decode(ptx::parse(text), {});
}

/// Device memory and launches of one test.
class Machine : public RunnerMemory {
 public:
  struct Shape {
    unsigned grid = 1, block = 32;
    unsigned shared = 0;
    std::uint64_t budget = 0;
  };
  /// Runs the only entry of `program` with 64-bit parameters. The finding, if there was one.
  std::optional<Fault> run(const Program& program, const std::vector<std::uint64_t>& params,
                           Shape shape) {
    LaunchContext launch;
    launch.program = &program;
    for (std::uint32_t f = 0; f < program.functions.size(); ++f) {
      if (program.functions[f].is_entry) launch.function = f;
    }
    launch.grid = {shape.grid, 1, 1};
    launch.block = {shape.block, 1, 1};
    launch.dynamic_shared_bytes = shape.shared;
    launch.instruction_budget = shape.budget;
    launch.memory = &memory;
    launch.parameters = reinterpret_cast<const std::byte*>(params.data());
    launch.parameter_bytes = static_cast<std::uint32_t>(params.size() * 8);
    BlockRunner runner(launch);
    for (std::uint32_t b = 0; b < shape.grid; ++b) {
      if (!runner.run({b, 0, 0})) return runner.fault();
    }
    return std::nullopt;
  }
};

/// One instruction under test. Types are PTX words of loads and registers ("b32", "b16", "b64",
/// "pred"); the instruction text names its operands %d, %a, %b, %c, all loaded from the table.
struct Instruction {
  std::string text;
  std::string d = "b32", a = "b32", b = "b32", c = "b32";
};

inline std::string load(const std::string& type, const std::string& reg, const std::string& param) {
  const bool is_pred = type == "pred";
  std::string text = "ld.param.u64 %base, [" + param + "];\nadd.s64 %base, %base, %at;\n";
  if (is_pred) {
    return text + "ld.global.u32 %word, [%base];\nsetp.ne.u32 " + reg + ", %word, 0;\n";
  }
  return text + "ld.global." + type + " " + reg + ", [%base];\n";
}

inline std::string kernel_for(const Instruction& inst) {
  std::string text = kHeader;
  text +=
      ".visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc,\n"
      ".param .u64 pn) {\n.reg .pred %done; .reg .b32 %i, %x, %word; .reg .b64 %base, %at, %n, "
      "%j;\n";
  text += ".reg ." + inst.d + " %d; .reg ." + inst.a + " %a; .reg ." + inst.b + " %b; .reg ." +
          inst.c + " %c;\n";
  text +=
      "mov.u32 %i, %ctaid.x;\nmov.u32 %x, %ntid.x;\nmul.lo.u32 %i, %i, %x;\n"
      "mov.u32 %x, %tid.x;\nadd.u32 %i, %i, %x;\ncvt.u64.u32 %j, %i;\nld.param.u64 %n, [pn];\n"
      "setp.ge.u64 %done, %j, %n;\n@%done bra END;\nshl.b64 %at, %j, 3;\n";
  text += load(inst.a, "%a", "pa") + load(inst.b, "%b", "pb") + load(inst.c, "%c", "pc");
  text += inst.text + "\n";
  text += "ld.param.u64 %base, [pd];\nadd.s64 %base, %base, %at;\n";
  if (inst.d == "pred") {
    text += "selp.u32 %word, 1, 0, %d;\nst.global.u32 [%base], %word;\n";
  } else {
    text += "st.global." + inst.d + " [%base], %d;\n";
  }
  return text + "END:\nret;\n}\n";
}

/// Result of the instruction for each row (a[i], b[i], c[i]), with `block` threads per block: 32
/// runs full warps, other sizes masked ones.
inline std::vector<std::uint64_t> evaluate(const Instruction& inst,
                                           const std::vector<std::uint64_t>& a,
                                           const std::vector<std::uint64_t>& b,
                                           const std::vector<std::uint64_t>& c, unsigned block) {
  Machine machine;
  const std::unique_ptr<Program> program = compile(kernel_for(inst));
  const std::uint64_t out = machine.upload(std::vector<std::uint64_t>(a.size(), 0));
  const auto count = static_cast<unsigned>(a.size());
  const auto fault = machine.run(
      *program, {out, machine.upload(a), machine.upload(b), machine.upload(c), a.size()},
      {.grid = (count + block - 1) / block, .block = block});
  if (fault) throw std::runtime_error(fault->to_string());
  return machine.download<std::uint64_t>(out, a.size());
}

/// All pairs (or triples) of the given values as columns; padded by repetition to a multiple of 32.
struct Table {
  std::vector<std::uint64_t> a, b, c;
};
inline Table all_triples(const std::vector<std::uint64_t>& values,
                         const std::vector<std::uint64_t>& b_values,
                         const std::vector<std::uint64_t>& c_values) {
  Table table;
  for (const std::uint64_t a : values) {
    for (const std::uint64_t b : b_values) {
      for (const std::uint64_t c : c_values) {
        table.a.push_back(a);
        table.b.push_back(b);
        table.c.push_back(c);
      }
    }
  }
  while (table.a.size() % 32 != 0) {
    table.a.push_back(table.a[table.a.size() / 2]);
    table.b.push_back(table.b[table.b.size() / 3]);
    table.c.push_back(table.c[0]);
  }
  return table;
}

inline std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
inline float as_float(std::uint64_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x));
}
inline double as_double(std::uint64_t x) { return std::bit_cast<double>(x); }

}  // namespace kernwright::sim::testing
