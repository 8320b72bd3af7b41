// Puts the checks in front of a program's ops.
#include "sim/check/checked_program.h"

#include "sim/check/flow/data_flow.h"
#include "sim/check/history/shadow.h"
#include "sim/code/dispatch.h"
#include "sim/code/fast_handlers.h"
#include "sim/code/tables.h"
#include "sim/exec/warp/warp.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace kernwright::sim {

#define KW_DECLARE_CHECKED(isa)         \
  namespace isa_##isa {                 \
    CheckedHandlers checked_handlers(); \
  }
KW_DECLARE_CHECKED(baseline)
#if defined(__x86_64__) && !defined(KW_SIM_BASELINE_ONLY)
KW_DECLARE_CHECKED(avx2)
#endif
#undef KW_DECLARE_CHECKED

CheckedHandlers checked_handlers() {
#if defined(__x86_64__) && !defined(KW_SIM_BASELINE_ONLY)
  if (std::string_view(selected_isa()) != "baseline") return isa_avx2::checked_handlers();
#endif
  return isa_baseline::checked_handlers();
}

namespace {

using ptx::Handler;
using ptx::Semantics;
using ptx::Verb;

void set_semantics(CheckedOp& op, Semantics semantics) {
  op.strong = op.strong || (semantics != Semantics::none && semantics != Semantics::weak);
  op.is_volatile = semantics == Semantics::volatile_;
  const bool both = semantics == Semantics::acq_rel || semantics == Semantics::sc;
  op.acquire = both || semantics == Semantics::acquire;
  op.release = both || semantics == Semantics::release;
}

Reach read_reach(const ptx::Modifiers& modifiers) {
  return modifiers.scope == ptx::Scope::cta       ? Reach::block
         : modifiers.scope == ptx::Scope::cluster ? Reach::cluster
                                                  : Reach::device;
}

CheckedOp transfer(CheckKind kind, const ptx::Instruction& instruction) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (modifiers.space == ptx::Space::constant) return {};
  const int element = std::max(1, ptx::bits(modifiers.type[0]) / 8);
  const bool is_swap = modifiers.atom == ptx::AtomOp::cas;
  CheckedOp op{.kind = kind,
               .strong = kind == CheckKind::atomic,
               .reach = read_reach(modifiers),
               .bytes = static_cast<std::uint8_t>(element * modifiers.vector),
               .element = static_cast<std::uint8_t>(element),
               .swaps = is_swap,
               .observes = instruction.row->handler == Handler::atom && !is_swap};
  set_semantics(op, modifiers.semantics);
  const std::uint32_t all = op.bytes < 32 ? (1u << op.bytes) - 1 : ~0u;
  const bool in_part =
      kind == CheckKind::load && !op.strong && (~instruction.used_bytes & all) != 0;
  if (in_part) op.used = instruction.used_bytes & all;
  return op;
}

CheckedOp fence(const ptx::Instruction& instruction) {
  CheckedOp op;
  if (instruction.modifiers.verb == Verb::none) op.kind = CheckKind::fence;
  op.reach = read_reach(instruction.modifiers);
  const std::string_view opcode = instruction.opcode;       // whose words stand in any order
  const bool reads = opcode.find("::read") != opcode.npos;  // does not show what was written
  if (opcode.find(".async") != opcode.npos && !reads) op.kind = CheckKind::proxy_fence;
  // The one with an address; its release part runs before it tells other blocks.
  if (!instruction.operands.empty()) op.kind = CheckKind::map_fence;
  return op;
}

CheckedOp tiles(CheckKind kind, const ptx::Instruction& instruction) {
  return {.kind = kind, .bytes = 16, .tiles = instruction.modifiers.vector};
}

CheckedOp meeting(std::uint8_t operand) { return {.kind = CheckKind::meeting, .operand = operand}; }

CheckedOp classify_bulk(const ptx::Instruction& instruction) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (modifiers.verb == Verb::prefetch) return {};
  if (instruction.row->handler != Handler::cp_bulk_group)
    return {.kind = CheckKind::bulk, .strong = modifiers.atom != ptx::AtomOp::none};
  return {
      .kind = modifiers.verb == Verb::commit_group ? CheckKind::bulk_group : CheckKind::bulk_wait,
      .reads_only = instruction.opcode.find(".read") != std::string_view::npos};
}

CheckedOp classify_wgmma(const ptx::Modifiers& modifiers) {
  switch (modifiers.verb) {
    case Verb::commit_group: return {.kind = CheckKind::wgmma_group};
    case Verb::wait_group: return {.kind = CheckKind::wgmma_wait};
    case Verb::mma:
      return {.kind = CheckKind::wgmma, .tiles = static_cast<std::uint8_t>(modifiers.n / 8)};
    default: return {};
  }
}

/// cp.async and the instructions for waiting on it.
CheckedOp classify_copy(const ptx::Modifiers& modifiers) {
  switch (modifiers.verb) {
    case Verb::none: return {.kind = CheckKind::copy};
    case Verb::commit_group: return {.kind = CheckKind::copy_group};
    case Verb::wait_group: return {.kind = CheckKind::copy_wait};
    case Verb::wait_all: return {.kind = CheckKind::copy_wait, .waits_for_all = true};
    case Verb::mbarrier_arrive: return {.kind = CheckKind::mbarrier, .role = BarrierRole::track};
    default: return {};
  }
}

CheckedOp classify_mbarrier(const ptx::Modifiers& modifiers) {
  const bool orders = modifiers.semantics != Semantics::relaxed;
  constexpr CheckKind kKind = CheckKind::mbarrier;
  switch (modifiers.verb) {
    case Verb::init:
    case Verb::inval: return {.kind = kKind, .role = BarrierRole::begin};
    case Verb::arrive:
    case Verb::arrive_drop: return {.kind = kKind, .release = orders, .role = BarrierRole::arrive};
    case Verb::test_wait:
    case Verb::try_wait: return {.kind = kKind, .acquire = orders, .role = BarrierRole::wait};
    case Verb::pending_count: return {};  // of a state in a register
    default: return {.kind = kKind};
  }
}

/// Waits are told by the barrier itself: they may end while the warp is parked.
CheckedOp classify_cluster_barrier(const ptx::Modifiers& modifiers) {
  if (!modifiers.arrive) return {};
  return {.kind = CheckKind::cluster_arrive, .release = modifiers.semantics != Semantics::relaxed};
}

/// shfl.sync names its members in e (the fourth source), the others in a or b.
CheckedOp classify_meeting(const ptx::Instruction& instruction) {
  switch (instruction.row->handler) {
    case Handler::shfl:
      if (!instruction.modifiers.sync) return {};
      return {.kind = CheckKind::shuffle, .shuffle = instruction.modifiers.shfl};
    case Handler::vote: return instruction.modifiers.sync ? meeting(1) : CheckedOp{};
    case Handler::match:
    case Handler::redux: return meeting(1);
    case Handler::elect: return meeting(0);
    case Handler::mma:
    case Handler::mma_sp:
    case Handler::movmatrix: return {.kind = CheckKind::full_meeting};
    case Handler::bar:
    case Handler::barrier:
      return instruction.modifiers.verb == Verb::warp_sync ? meeting(0) : CheckedOp{};
    default: return {};
  }
}

}  // namespace

CheckedOp classify(const ptx::Instruction& instruction) {
  switch (instruction.row->handler) {
    case Handler::ld:
    case Handler::ldu: return transfer(CheckKind::load, instruction);
    case Handler::st: return transfer(CheckKind::store, instruction);
    case Handler::atom:
    case Handler::red: return transfer(CheckKind::atomic, instruction);
    case Handler::ldmatrix: return tiles(CheckKind::tile_load, instruction);
    case Handler::stmatrix: return tiles(CheckKind::tile_store, instruction);
    case Handler::cp: return classify_copy(instruction.modifiers);
    case Handler::membar:
    case Handler::fence: return fence(instruction);
    case Handler::cp_bulk:
    case Handler::cp_bulk_group:
    case Handler::st_async:
    case Handler::red_async: return classify_bulk(instruction);
    case Handler::tensormap:
    case Handler::tex:
    case Handler::tld4:
    case Handler::suld:
    case Handler::sust: return {.kind = CheckKind::self_checked};
    case Handler::sured: return {.kind = CheckKind::self_checked, .strong = true};
    case Handler::wgmma: return classify_wgmma(instruction.modifiers);
    case Handler::mbarrier: return classify_mbarrier(instruction.modifiers);
    case Handler::barrier_cluster: return classify_cluster_barrier(instruction.modifiers);
    default: return classify_meeting(instruction);
  }
}

namespace {

/// Bytes per lane of the register with a store's (first) value.
std::uint8_t value_width(const ptx::Function& function, const ptx::Instruction& instruction) {
  const ptx::Operand* value = &instruction.operands[1];
  if (value->kind == ptx::OperandKind::vector && !value->elements.empty()) {
    value = &value->elements[0];
  }
  const ptx::Type type = value->kind == ptx::OperandKind::reg ? function.registers[value->reg].type
                                                              : instruction.modifiers.type[0];
  return static_cast<std::uint8_t>(std::max(2, ptx::bits(type) / 8));
}

/// Whether the member mask, the last operand, is a constant for the whole warp.
bool names_all_lanes(const ptx::Function& function, const ptx::Instruction& instruction) {
  const ptx::Operand& mask = instruction.operands.back();
  const auto is_full = [](const ptx::Operand& operand) {
    return operand.kind == ptx::OperandKind::integer &&
           static_cast<std::uint32_t>(operand.bits) == kAllLanes;
  };
  if (mask.kind != ptx::OperandKind::reg) return is_full(mask);
  bool found = false;
  for (const ptx::Instruction& one : function.body) {
    for (const ptx::Operand& operand : one.operands) {
      if (!operand.is_destination || operand.reg != mask.reg) continue;
      if (operand.kind != ptx::OperandKind::reg || one.row->handler != Handler::mov ||
          !is_full(one.operands[1]))
        return false;
      found = true;
    }
  }
  return found;
}

bool orders_parts(const ptx::Function& function, const ptx::Instruction& instruction,
                  const CheckedOp& op) {
  if (op.kind == CheckKind::meeting || op.kind == CheckKind::shuffle)
    return !names_all_lanes(function, instruction);
  const Handler handler = instruction.row->handler;
  if (op.kind == CheckKind::fence || op.kind == CheckKind::mbarrier || op.kind == CheckKind::bulk ||
      op.kind == CheckKind::wgmma)
    return true;
  if (handler == Handler::bar || handler == Handler::barrier) {
    const ptx::Modifiers& modifiers = instruction.modifiers;
    const std::size_t counted = modifiers.red ? 3 : 1;  // d, id, predicate; more is a count
    return modifiers.arrive || instruction.operands.size() > counted;
  }
  return op.acquire || op.release || (op.strong && op.reach != Reach::device);
}

/// Records whether the instruction orders only parts of blocks, or of clusters.
void note_order(const Program& from, std::uint32_t at, CheckedProgram& made) {
  const ptx::Instruction& instruction = *from.tables->instructions[at];
  const std::uint32_t number = from.tables->function_at(at);
  const ptx::Function& function = from.module->functions[number];
  const Handler handler = instruction.row->handler;
  const bool spans = handler == Handler::mapa || handler == Handler::barrier_cluster ||
                     instruction.modifiers.space == ptx::Space::cluster;
  made.spans_cluster |= spans;
  if (!spans && !orders_parts(function, instruction, made.ops[at])) return;
  made.orders_parts[number] = true;
  made.calls_order_parts |= !function.is_entry;
}

/// The checking handler before `op` in full warps.
OpFn full_handler(const CheckedHandlers& handlers, const CheckedOp& op,
                  const ptx::Instruction* instruction) {
  const bool loads = op.kind == CheckKind::load, stores = op.kind == CheckKind::store;
  if (op.speculated != 0 || op.takes) return handlers.full;
  if (op.fixed && loads) return handlers.fixed_load;
  const bool runs = (loads || stores) && !op.strong && op.used == 0 &&
                    instruction->modifiers.space == ptx::Space::global;
  if (!runs) return handlers.full;
  return loads ? handlers.global_load : handlers.global_store;
}

/// Marks the steps of the values of shuffles.
void mark_shuffle_flow(const ptx::Function& function,
                       const std::function<std::uint32_t(std::uint32_t)>& find,
                       CheckedProgram& made) {
  const auto is_op = [&](std::uint32_t at) { return find(at) != ~std::uint32_t{0}; };
  for (auto& [at, step] : find_shuffle_flow(function, is_op)) {
    if (!is_op(at)) continue;
    if (step.role != FlowRole::use) step.source = find(step.source);
    for (std::vector<std::uint32_t>* sources : {&step.values, &step.others})
      for (std::uint32_t& source : *sources) source = find(source);
    made.flow.emplace(find(at), std::move(step));
    made.ops[find(at)].flows = true;
  }
}

/// Marks loads with bytes that do not count, or count later, and the ops that use those. If an
/// instruction has no op of its own, all bytes of its loads count.
void mark_used_values(const Program& from, CheckedProgram& made) {
  std::unordered_map<const ptx::Instruction*, std::uint32_t> index;
  for (std::uint32_t i = 0; i < from.full.size(); ++i) {
    if (from.tables->instructions[i] != nullptr) index.emplace(from.tables->instructions[i], i);
  }
  for (const ptx::Function& function : from.module->functions) {
    UsedValues found = find_used_values(function);
    const auto find = [&](std::uint32_t at) {
      const auto op = index.find(&function.body[at]);
      return op == index.end() ? ~std::uint32_t{0} : op->second;
    };
    for (const auto& [at, uses] : found.uses) {
      if (find(at) != ~std::uint32_t{0}) continue;
      for (const ValueUse& use : uses) {
        LoadedBytes& load = found.loads[use.load];
        load.now |= std::exchange(load.later, 0);
        load.speculated = 0;
      }
    }
    for (const auto& [at, bytes] : found.loads) {
      const std::uint32_t load = find(at);
      if (load == ~std::uint32_t{0}) continue;
      made.ops[load].wanted = bytes.now | bytes.later | bytes.passed;
      made.ops[load].speculated = bytes.speculated;
      made.ops[load].waits = (bytes.later | bytes.passed) != 0;
      if (made.ops[load].waits) made.loads.emplace(load, bytes);
    }
    for (const auto& [at, uses] : found.uses) {
      for (const ValueUse& use : uses) {
        if (found.loads[use.load].later == 0 || find(use.load) == ~std::uint32_t{0}) continue;
        made.uses[find(at)].push_back({find(use.load), use.bytes, use.lanes, use.shift});
        made.ops[find(at)].uses = true;
        made.ops[find(at)].takes |= (found.loads[use.load].speculated & use.bytes) != 0;
      }
    }
    mark_shuffle_flow(function, find, made);
  }
}

/// The program with the same ops; their handlers are replaced later.
std::unique_ptr<CheckedProgram> copy_program(const Program& from) {
  auto made = std::make_unique<CheckedProgram>();
  Program& program = made->program;
  program.full = from.full;
  program.masked = from.masked;
  program.places = from.places;
  program.functions = from.functions;
  program.lists = from.lists;
  program.site_count = from.site_count;
  program.module = from.module;
  program.tables = std::make_shared<Program::Tables>(*from.tables);
  made->ops.resize(from.full.size());
  made->orders_parts.resize(from.functions.size());
  made->site_ops.push_back(0);
  return made;
}

/// Nothing can depend on a result that no instruction reads.
void mark_observers(const Program& from, CheckedProgram& made) {
  if (std::ranges::none_of(made.ops, &CheckedOp::observes)) return;
  std::vector<std::vector<bool>> read;  // registers of each function
  for (const ptx::Function& function : from.module->functions) {
    std::vector<bool>& registers = read.emplace_back(function.registers.size());
    const auto note = [&](auto reg, bool written) { registers[reg] = registers[reg] || !written; };
    for (const ptx::Instruction& one : function.body)
      for (const ptx::Operand& operand : one.operands) each_register(operand, note);
  }
  for (std::uint32_t i = 0; i < made.ops.size(); ++i) {
    if (!std::exchange(made.ops[i].observes, false)) continue;
    const std::vector<bool>& registers = read[from.tables->function_at(i)];
    each_register(from.tables->instructions[i]->operands[0],
                  [&](std::uint32_t reg, bool) { made.ops[i].observes |= registers[reg]; });
  }
}

/// Finds the checks for each op.
void classify_ops(const Program& from, CheckedProgram& made) {
  const OpFn copies_parameters = internal_handlers(Internal::parameter_copy).full;
  for (std::uint32_t i = 0; i < from.full.size(); ++i) {
    const ptx::Instruction* const instruction = from.tables->instructions[i];
    if (instruction != nullptr) {
      made.ops[i] = classify(*instruction);
      note_order(from, i, made);
    } else if (from.full[i].fn == copies_parameters) {
      made.ops[i].kind = CheckKind::parameters;
    }
  }
  mark_observers(from, made);
  mark_used_values(from, made);
}

/// Whether the op before `i` narrows the mask for it.
bool is_guarded(const Program& from, std::uint32_t i) {
  return i > 0 && (from.full[i - 1].fn == internal_handlers(Internal::guard).full ||
                   from.full[i - 1].fn == internal_handlers(Internal::guard_not).full);
}

/// Completes the checked op `i`.
void describe_op(const Program& from, std::uint32_t i, CheckedProgram& made) {
  const ptx::Instruction* const instruction = from.tables->instructions[i];
  CheckedOp& op = made.ops[i];
  made.has_volatile |= op.is_volatile;
  if (op.kind != CheckKind::mbarrier) made.reaches[static_cast<std::size_t>(op.reach)] = true;
  if (op.kind != CheckKind::use) {
    op.site = static_cast<std::uint16_t>(
        std::min<std::size_t>(made.site_ops.size(), std::size_t{kMostSites}));
    if (op.site < kMostSites) made.site_ops.push_back(i);
  }
  const bool stores = op.kind == CheckKind::store;
  if (stores)
    op.value_width = value_width(from.module->functions[from.tables->function_at(i)], *instruction);
  op.guarded = is_guarded(from, i);
  op.fixed = (op.kind == CheckKind::load || stores) && !op.strong && op.used == 0 &&
             op.speculated == 0 && !op.takes &&
             instruction->modifiers.space == ptx::Space::shared && from.full[i].e != 0;
}

}  // namespace

std::unique_ptr<CheckedProgram> make_checked(const Program& from) {
  auto made = copy_program(from);
  Program& program = made->program;
  classify_ops(from, *made);
  const CheckedHandlers handlers = checked_handlers();
  std::vector<OpFn>& behind = program.tables->behind_leader;
  for (std::uint32_t i = 0; i < from.full.size(); ++i) {
    CheckedOp& op = made->ops[i];
    if ((op.uses || op.flows) && op.kind == CheckKind::none) op.kind = CheckKind::use;
    if (op.kind == CheckKind::none) continue;
    describe_op(from, i, *made);
    OpFn& masked = behind[i] != nullptr ? behind[i] : program.masked[i].fn;
    // The instruction set may have been chosen anew since the program was decoded.
    op.full = program.full[i].fn;
    op.masked = masked;
    program.full[i].fn = full_handler(handlers, op, from.tables->instructions[i]);
    masked = handlers.masked;
  }
  for (const std::uint32_t i : from.tables->fused) {
    made->ops[i].full = from.full[i].fn;
    const OpFn access = program.full[i + 1].fn;
    program.full[i].fn = access == handlers.global_load    ? handlers.indexed_load
                         : access == handlers.global_store ? handlers.indexed_store
                                                           : handler_alone(from.full[i]);
  }
  return made;
}

}  // namespace kernwright::sim
