// Runs PTX of target sm_90a in grids and clusters, with parameters packed by hand.
#pragma once

#include "sim/check/checked_launch.h"
#include "sim/code/program.h"
#include "sim/device/launch/grid.h"
#include "sim/device/module/loader.h"
#include "sim/observe/observed_launch.h"
#include "sim/tensor_map.h"
#include "unit/sim/runner_memory.h"

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::sim::testing {

class HopperRunner : public RunnerMemory {
 public:
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1}, cluster{0, 0, 0};
  std::uint32_t dynamic_shared = 0;
  std::uint64_t seed = 0;  ///< of deferred copies
  int width = 1;           ///< host threads
  bool cooperative = false;
  CheckSet checks;
  std::vector<Finding> findings;                           ///< of the checks, in the last launch
  bool watched = false;                                    ///< counts instructions, without checks
  std::vector<std::pair<std::string, LineCounts>> counts;  ///< by op with its opcode

  /// A module with one entry `k`: 64-bit parameters p0, p1, ..., behind a tensor map `map` when
  /// there is one.
  static std::string module_text(const std::string& body, std::size_t parameters, bool has_map,
                                 const std::string& globals = {}) {
    std::string text =
        ".version 8.6\n.target sm_90a\n.address_size 64\n" + globals + "\n.visible .entry k(";
    if (has_map) text += ".param .align 64 .b8 map[128]";
    for (std::size_t i = 0; i < parameters; ++i)
      text += (i == 0 && !has_map ? ".param .u64 p" : ", .param .u64 p") + std::to_string(i);
    return text +
           ")\n{\n.reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %r<64>;\n.reg .b64 %d<64>;\n"
           ".reg .f32 %f<160>;\nmov.u32 %r0, %tid.x;\n" +
           body + "\nret;\n}\n";
  }

  Fault run(const std::string& body, const std::vector<std::uint64_t>& params,
            const std::string& globals = {}) {
    return launch(module_text(body, params.size(), false, globals), pack(nullptr, params));
  }
  Fault run_with_map(const TensorMapParameters& map, const std::string& body,
                     const std::vector<std::uint64_t>& params, const std::string& globals = {}) {
    const auto bytes = encode_tensor_map(map);
    return launch(module_text(body, params.size(), true, globals), pack(bytes.data(), params));
  }
  static std::vector<std::byte> pack(const std::byte* map,
                                     const std::vector<std::uint64_t>& params) {
    const std::size_t head = map != nullptr ? kTensorMapBytes : 0;
    std::vector<std::byte> packed(head + params.size() * 8);
    if (map != nullptr) std::memcpy(packed.data(), map, head);
    if (!params.empty()) std::memcpy(packed.data() + head, params.data(), params.size() * 8);
    return packed;
  }

  Fault launch(const std::string& text, const std::vector<std::byte>& packed,
               const std::string& entry = "k") {
    const LoadedModule module(text, memory);
    LaunchContext request;
    request.program = &module.program();
    for (std::size_t f = 0; f < request.program->functions.size(); ++f)
      if (request.program->functions[f].name == entry)
        request.function = static_cast<std::uint32_t>(f);
    request.grid = grid;
    request.block = block;
    request.cluster = cluster;
    request.copy_seed = seed;
    request.dynamic_shared_bytes = dynamic_shared;
    request.parameters = packed.data();
    request.parameter_bytes = static_cast<std::uint32_t>(packed.size());
    request.memory = &memory;
    request.instruction_budget = 1 << 24;
    request.heap = &heap;
    std::unique_ptr<CheckedProgram> program;
    GlobalShadow shadow;
    Ticks ticks;
    std::optional<CheckedLaunch> checked;
    if (checks.any()) {
      program = make_checked(*request.program);
      checked.emplace(*program, checks, shadow, ticks, 0, width);
      request.program = &program->program;
      request.checks = &*checked;
    }
    std::optional<ObservedLaunch> observed;
    if (watched) {
      observed.emplace(module.observed(false), nullptr, true);
      request.program = &observed->program.program;
      request.observed = &*observed;
    }
    const GridResult result =
        cooperative ? run_cooperative_grid(request, width) : run_grid(request, width);
    if (checked) findings = checked->take();
    counts.clear();
    const std::vector<LineCounts> total = observed ? observed->total() : std::vector<LineCounts>();
    for (std::size_t i = 0; i < total.size(); ++i) {
      counts.emplace_back(request.program->places[i].opcode, total[i]);
    }
    return result.fault.value_or(Fault{});
  }
};

/// Fails the test with the report's text when there was a finding.
inline void require_fine(const Fault& report) {
  INFO(report.to_string());
  REQUIRE(report.kind == FaultKind::none);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace kernwright::sim::testing
