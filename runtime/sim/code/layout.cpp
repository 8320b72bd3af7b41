// Lays out variables, and follows the call graph for an entry's total needs.
#include "sim/code/layout.h"

#include "base/format.h"
#include "sim/ptx/parse/parser.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim {
namespace {

/// Local memory of one thread where recursion or alloca leave its size open.
constexpr std::uint32_t kRecursionStackBytes = 64 * 1024;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

std::uint32_t variable_alignment(const ptx::Variable& variable) {
  if (variable.alignment != 0) return variable.alignment;
  const auto element = static_cast<std::uint32_t>((ptx::bits(variable.type) + 7) / 8);
  return std::max(1u, element * variable.vector);
}

std::uint32_t place(const ptx::Variable& variable, std::uint32_t& end) {
  const std::uint64_t align = variable_alignment(variable);
  const std::uint64_t begin = (end + align - 1) / align * align;
  if (begin + variable.bytes() > kMaxBytes) {
    throw ptx::PtxError(
        format("the variable {} of {} bytes does not fit", variable.name, variable.bytes()),
        variable.ptx_line);
  }
  end = static_cast<std::uint32_t>(begin + variable.bytes());
  return static_cast<std::uint32_t>(begin);
}

bool is_dynamic(const ptx::Variable& variable) { return variable.is_extern || variable.count == 0; }

/// Names used by a function, directly and through its possible callees.
struct Usage {
  std::vector<std::uint32_t> callees;
  std::uint32_t shared_end = 0;  ///< of the shared variables that all functions can name
  std::uint32_t dynamic_alignment = 16;
  bool calls_indirectly = false;
  bool allocates = false;  ///< alloca: as much as the thread asks for
  bool reserves = false;   ///< names the block's reserved shared memory
};

class UsageFinder {
 public:
  UsageFinder(const ptx::Module& module, const ModuleLayout& layout)
      : module_(module), layout_(layout) {}

  Usage find(std::uint32_t index) {
    Usage usage;
    const ptx::Function& function = module_.functions[index];
    for (std::size_t v = 0; v < function.variables.size(); ++v) {
      const ptx::Variable& variable = function.variables[v];
      if (variable.space != ptx::Space::shared) continue;
      note_shared(variable, layout_.variables[index][v], usage);
    }
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.stem == "call" && instruction.operands[1].kind == ptx::OperandKind::reg) {
        usage.calls_indirectly = true;
      }
      usage.allocates |= instruction.stem == "alloca";
      for (const ptx::Operand& operand : instruction.operands) visit(operand, usage);
    }
    return usage;
  }

 private:
  void visit(const ptx::Operand& operand, Usage& usage) {
    for (const ptx::Operand& element : operand.elements) visit(element, usage);
    usage.reserves |= operand.kind == ptx::OperandKind::special && is_reserved(operand.special);
    if (operand.symbol_kind == ptx::SymbolKind::function) {
      usage.callees.push_back(operand.symbol_index);
    } else if (operand.symbol_kind == ptx::SymbolKind::global) {
      const ptx::Variable& variable = module_.globals[operand.symbol_index];
      if (variable.space == ptx::Space::shared) {
        note_shared(variable, layout_.shared_globals[operand.symbol_index], usage);
      }
    }
  }

  static bool is_reserved(ptx::SpecialRegister which) {
    using enum ptx::SpecialRegister;
    return which >= reserved_smem_offset_begin && which <= reserved_smem_offset_1;
  }

  static void note_shared(const ptx::Variable& variable, std::uint32_t offset, Usage& usage) {
    if (is_dynamic(variable)) {
      usage.dynamic_alignment = std::max(usage.dynamic_alignment, variable_alignment(variable));
    } else if (offset != kDynamicOffset) {
      usage.shared_end =
          std::max(usage.shared_end, offset + static_cast<std::uint32_t>(variable.bytes()));
    }
  }

  const ptx::Module& module_;
  const ModuleLayout& layout_;
};

/// Facts from a call graph: the longest chain of locals below each function, recursive functions,
/// and the functions reachable from an entry.
class CallGraph {
 public:
  CallGraph(const ptx::Module& module, const ModuleLayout& layout, const std::vector<Usage>& usage)
      : layout_(layout),
        usage_(usage),
        deepest_(usage.size(), 0),
        repeats_(usage.size(), false),
        state_(usage.size(), fresh),
        seen_by_(usage.size(), kNobody) {
    for (std::uint32_t f = 0; f < usage.size(); ++f) {
      if (module.functions[f].has_body && !module.functions[f].is_entry) targets_.push_back(f);
      walk(f);
    }
  }

  /// Bytes; too few where some function repeats.
  std::uint64_t deepest(std::uint32_t index) const { return deepest_[index]; }
  /// Whether the function calls one already being called: each cycle has such a function.
  bool repeats(std::uint32_t index) const { return repeats_[index]; }

  /// Functions reachable from `entry`; an indirect call may reach every function with a body.
  std::vector<std::uint32_t> reachable(std::uint32_t entry) {
    std::vector<std::uint32_t> found{entry};
    seen_by_[entry] = entry;
    const auto add = [&](std::uint32_t index) {
      if (seen_by_[index] != entry) found.push_back(index);
      seen_by_[index] = entry;
    };
    bool has_all_targets = false;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Usage& at = usage_[found[i]];
      for (const std::uint32_t callee : at.callees) add(callee);
      if (!at.calls_indirectly || has_all_targets) continue;
      has_all_targets = true;
      for (const std::uint32_t target : targets_) add(target);
    }
    return found;
  }

 private:
  enum State : std::uint8_t { fresh, open, done };
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  /// Depth first, without recursion: chains may be as long as a module is.
  void walk(std::uint32_t from) {
    if (state_[from] != fresh) return;
    std::vector<std::pair<std::uint32_t, std::size_t>> path{{from, 0}};
    state_[from] = open;
    while (!path.empty()) {
      auto& [function, next] = path.back();
      const std::vector<std::uint32_t>& callees = usage_[function].callees;
      if (next == callees.size()) {
        finish(function);
        path.pop_back();
        continue;
      }
      const std::uint32_t callee = callees[next++];
      if (state_[callee] == open) repeats_[function] = true;
      if (state_[callee] != fresh) continue;
      state_[callee] = open;
      path.emplace_back(callee, 0);
    }
  }

  void finish(std::uint32_t function) {
    state_[function] = done;
    for (const std::uint32_t callee : usage_[function].callees)
      deepest_[function] = std::max(deepest_[function], deepest_[callee]);
    deepest_[function] += layout_.functions[function].local_bytes;
  }

  const ModuleLayout& layout_;
  const std::vector<Usage>& usage_;
  std::vector<std::uint64_t> deepest_;
  std::vector<bool> repeats_;
  std::vector<State> state_;
  std::vector<std::uint32_t> seen_by_;  ///< per function: the last entry that reached it
  std::vector<std::uint32_t> targets_;  ///< of indirect calls
};

/// Places the variables in shared memory, one after the other from `end` on.
void place_shared(const std::vector<ptx::Variable>& variables, std::vector<std::uint32_t>& places,
                  std::uint32_t& end) {
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].space == ptx::Space::shared && !is_dynamic(variables[v]))
      places[v] = place(variables[v], end);
  }
}

/// Shared variables of device functions and of the module come first and lie at the same place for
/// all entries; those of an entry follow.
std::uint32_t place_common_shared(const ptx::Module& module, ModuleLayout& layout) {
  std::uint32_t end = 0;
  layout.shared_globals.assign(module.globals.size(), kDynamicOffset);
  place_shared(module.globals, layout.shared_globals, end);
  layout.variables.resize(module.functions.size());
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    layout.variables[f].assign(function.variables.size(), kDynamicOffset);
    if (!function.is_entry) place_shared(function.variables, layout.variables[f], end);
  }
  return end;
}

bool is_parameter_address(const ptx::Operand& operand) {
  if (std::ranges::any_of(operand.elements, is_parameter_address)) return true;
  return operand.kind == ptx::OperandKind::symbol &&
         operand.symbol_kind == ptx::SymbolKind::parameter;
}

bool takes_parameter_address(const ptx::Function& function) {
  return std::any_of(function.body.begin(), function.body.end(), [](const auto& instruction) {
    return std::ranges::any_of(instruction.operands, is_parameter_address);
  });
}

FunctionInfo describe(const ptx::Function& function, std::vector<std::uint32_t>& variables,
                      std::uint32_t& parameter_copy) {
  FunctionInfo info;
  info.name = std::string(function.name);
  info.is_entry = function.is_entry;
  info.parameter_bytes = pack_parameters(function.params, info.parameters);
  std::vector<ParameterSlot> results;
  info.return_bytes = pack_parameters(function.returns, results);
  info.required_threads = function.required_threads;
  info.required_cluster = function.required_cluster;
  info.explicit_cluster = function.explicit_cluster;
  const auto& most =
      function.required_threads[0] != 0 ? function.required_threads : function.max_threads;
  info.max_threads = most[0] * most[1] * most[2];
  std::uint32_t end = 0;
  for (std::size_t v = 0; v < function.variables.size(); ++v) {
    if (function.variables[v].space == ptx::Space::local) {
      variables[v] = place(function.variables[v], end);
    }
  }
  if (!function.is_entry && takes_parameter_address(function)) {
    parameter_copy = (end + 15) / 16 * 16;
    end = parameter_copy + info.parameter_bytes;
  }
  info.local_end = end;
  info.local_bytes = (end + 15) / 16 * 16;
  return info;
}

void finish_entry(const ptx::Module& module, const std::vector<Usage>& usage, CallGraph& graph,
                  std::uint32_t entry, ModuleLayout& layout) {
  FunctionInfo& info = layout.functions[entry];
  std::uint32_t end = 0, alignment = 16, locals = 0;
  bool open_ended = false, allocates = false;
  std::uint64_t sum = 0;
  for (const std::uint32_t f : graph.reachable(entry)) {
    if (f != entry) end = std::max(end, usage[f].shared_end);
    alignment = std::max(alignment, usage[f].dynamic_alignment);
    open_ended |= usage[f].calls_indirectly || graph.repeats(f);
    allocates |= usage[f].allocates;
    info.uses_reserved_shared |= usage[f].reserves;
    locals = std::max(locals, layout.functions[f].local_bytes);
    sum += layout.functions[f].local_bytes;
  }
  end = std::max(end, usage[entry].shared_end);
  place_shared(module.functions[entry].variables, layout.variables[entry], end);
  info.shared_bytes = end;
  info.dynamic_shared_offset = (end + alignment - 1) / alignment * alignment;
  std::uint64_t bytes = graph.deepest(entry);
  if (locals != 0 && open_ended) {
    bytes = std::max<std::uint64_t>(sum, kRecursionStackBytes);
  }
  if (allocates) bytes = std::max<std::uint64_t>(bytes, sum) + kRecursionStackBytes;
  // Nobody's variables follow: accesses behind the last one are out of bounds.
  if (bytes != 0 && bytes == sum && sum == info.local_bytes) bytes = info.local_end;
  info.stack_bytes = static_cast<std::uint32_t>(std::min(bytes, kMaxBytes));
}

}  // namespace

std::uint32_t pack_parameters(const std::vector<ptx::Variable>& variables,
                              std::vector<ParameterSlot>& slots) {
  std::uint32_t end = 0;
  for (const ptx::Variable& variable : variables) {
    ParameterSlot slot;
    slot.name = std::string(variable.name);
    slot.alignment = variable_alignment(variable);
    slot.offset = place(variable, end);
    slot.bytes = static_cast<std::uint32_t>(variable.bytes());
    slots.push_back(std::move(slot));
  }
  return end;
}

ModuleLayout lay_out(const ptx::Module& module) {
  ModuleLayout layout;
  place_common_shared(module, layout);
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    layout.parameter_copies.push_back(kDynamicOffset);
    layout.functions.push_back(
        describe(module.functions[f], layout.variables[f], layout.parameter_copies.back()));
  }
  UsageFinder finder(module, layout);
  std::vector<Usage> usage;
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) usage.push_back(finder.find(f));
  CallGraph graph(module, layout, usage);
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
    if (module.functions[f].is_entry && module.functions[f].has_body) {
      finish_entry(module, usage, graph, f, layout);
    }
  }
  return layout;
}

}  // namespace kernwright::sim
