// Runs PTX snippets on the block runner, with memory and parameters made by hand: for op tests.
#pragma once

#include "sim/code/program.h"
#include "sim/device/module/loader.h"
#include "sim/exec/block/block_runner.h"
#include "unit/sim/runner_memory.h"

#include <array>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace kernwright::sim {

/// One device's memory and heap, and launches of single-entry modules on it.
class OpsRunner : public RunnerMemory {
 public:
  std::string printed;  ///< by device printf
  std::uint32_t dynamic_shared = 0;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  int threads = 1;  ///< host threads; blocks are dealt out in turn

  /// `body` is the inside of `.entry k(.param .u64 p0, ...)` with one parameter for each of
  /// `params`; registers are declared for it. `globals` stands before the entry.
  static std::string module_text(const std::string& body, std::size_t parameters,
                                 const std::string& globals = {}) {
    std::string text =
        ".version 8.5\n.target sm_90\n.address_size 64\n" + globals + "\n.visible .entry k(";
    for (std::size_t i = 0; i < parameters; ++i)
      text += (i == 0 ? ".param .u64 p" : ", .param .u64 p") + std::to_string(i);
    return text +
           ")\n{\n.reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %r<64>;\n.reg .b64 "
           "%d<64>;\n.reg .f32 %f<48>;\n.reg .f64 %g<16>;\nmov.u32 %r0, %tid.x;\n" +
           body + "\nret;\n}\n";
  }

  /// Runs the kernel; the report's kind is none when all went well.
  Fault run(const std::string& body, const std::vector<std::uint64_t>& params,
            const std::string& globals = {}) {
    return run_text(module_text(body, params.size(), globals), params);
  }

  Fault run_text(const std::string& text, const std::vector<std::uint64_t>& params) {
    const LoadedModule module(text, memory);
    LaunchContext launch;
    launch.program = &module.program();
    for (std::size_t f = 0; f < launch.program->functions.size(); ++f)
      if (launch.program->functions[f].is_entry) launch.function = static_cast<std::uint32_t>(f);
    launch.grid = grid;
    launch.block = block;
    launch.dynamic_shared_bytes = dynamic_shared;
    launch.parameters = reinterpret_cast<const std::byte*>(params.data());
    launch.parameter_bytes = static_cast<std::uint32_t>(params.size() * sizeof(std::uint64_t));
    launch.memory = &memory;
    launch.instruction_budget = 1 << 24;
    launch.heap = &heap;
    launch.print = [](void* sink, std::string_view text_out) {
      static_cast<OpsRunner*>(sink)->printed += text_out;
    };
    launch.print_sink = this;
    return run_blocks(launch);
  }

 private:
  Fault run_blocks(const LaunchContext& launch) const {
    std::vector<Fault> reports(static_cast<std::size_t>(threads));
    const auto work = [&](std::size_t first) {
      BlockRunner runner(launch);
      for (std::uint32_t b = static_cast<std::uint32_t>(first); b < grid[0];
           b += static_cast<std::uint32_t>(threads)) {
        if (runner.run({b, 0, 0})) continue;
        reports[first] = runner.fault();
        return;
      }
    };
    std::vector<std::thread> pool;
    for (std::size_t t = 1; t < reports.size(); ++t) pool.emplace_back(work, t);
    work(0);
    for (std::thread& thread : pool) thread.join();
    for (const Fault& report : reports)
      if (report.kind != FaultKind::none) return report;
    return {};
  }
};

}  // namespace kernwright::sim
