// Lays a module's functions out as code: final operand offsets, branches and side tables.
#include "base/byte_text.h"
#include "base/format.h"
#include "sim/code/fast_handlers.h"
#include "sim/code/lower/lower.h"
#include "sim/code/passes.h"
#include "sim/code/program.h"
#include "sim/code/tables.h"
#include "sim/code/wgmma_registers.h"
#include "sim/ptx/isa.h"
#include "sim/ptx/parse/parser.h"

#include <algorithm>
#include <limits>

namespace kernwright::sim {
namespace {

class Emitter {
 public:
  Emitter(Program& program, const Lowered& function, const std::vector<std::uint32_t>& order,
          const FrameLayout& layout, CodeForm form)
      : program_(program), function_(function), order_(order), layout_(layout), form_(form) {}

  /// Appends the function. Returns where each of its blocks begins.
  std::vector<std::uint32_t> run() {
    begin_.assign(function_.blocks.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const LoweredBlock& block = function_.blocks[order_[i]];
      begin_[order_[i]] = position();
      busy_waits_ = block.busy_waits;
      for (const LoweredOp& op : block.ops) emit(op);
      emit_end(block, i + 1 < order_.size() ? order_[i + 1] : ~0u);
    }
    for (const Fixup& fixup : fixups_) settle(fixup);
    settle_tables();
    for (const std::uint32_t b : order_) {
      if (!function_.blocks[b].is_meeting_point || begin_[b] == position()) continue;
      OpFn& front = program_.masked[begin_[b]].fn;
      OpFn& behind = program_.tables->behind_leader[begin_[b]];
      if (behind != nullptr) continue;  // an empty block began here too
      behind = front;
      front = internal_handlers(Internal::leader).masked;
    }
    return std::move(begin_);
  }

 private:
  struct Fixup {
    std::uint32_t op = 0, block = 0;
    bool conditional = false, negated = false;
    std::size_t before = 0;  ///< ops of the same block before it
  };
  struct TableFixup {
    std::uint32_t op = 0;
    const LoweredBlock* block = nullptr;
  };

  std::uint32_t position() const { return static_cast<std::uint32_t>(program_.full.size()); }

  std::uint32_t resolve(const Ref& ref) {
    switch (ref.kind) {
      case Ref::Kind::reg: return layout_.registers[ref.index];
      case Ref::Kind::constant: return layout_.constants[ref.index];
      case Ref::Kind::area: return layout_.areas[ref.index];
      case Ref::Kind::fixed: return ref.index;
      case Ref::Kind::list: {
        const auto first = static_cast<std::uint32_t>(program_.lists.size());
        for (const Ref& element : function_.lists[ref.index].elements) {
          program_.lists.push_back(resolve(element));
        }
        return first;
      }
      default: return kSinkOffset;
    }
  }

  void push(const Op& op, const OpPair& handlers, const ptx::Instruction* origin, bool spins,
            OpOrigin::Part part = OpOrigin::Part::helper) {
    if (position() > std::numeric_limits<std::int32_t>::max() / 2) {
      throw ptx::PtxError("the module has too many instructions", 0);
    }
    program_.full.push_back(op);
    program_.full.back().fn = handlers.full;
    program_.masked.push_back(op);
    program_.masked.back().fn = handlers.masked;
    Place place;
    if (origin != nullptr) place = {origin->ptx_line, origin->source, origin->opcode};
    program_.places.push_back(place);
    program_.tables->behind_leader.push_back(nullptr);
    program_.tables->instructions.push_back(nullptr);
    program_.tables->busy_waits.push_back(busy_waits_);
    if (form_ == CodeForm::as_written) program_.tables->origins.push_back({origin, part});
    spins_.push_back((spins_.empty() ? 0 : spins_.back()) + (spins ? 1u : 0u));
  }

  void emit(const LoweredOp& from) {
    Op op;
    op.d = resolve(from.d);
    op.d2 = resolve(from.d2);
    op.a = resolve(from.sources[0]);
    op.b = resolve(from.sources[1]);
    op.c = resolve(from.sources[2]);
    op.e = resolve(from.sources[3]);
    op.f = resolve(from.sources[4]);
    op.imm = from.imm;
    op.imm2 = from.imm2;
    op.target = from.table;
    op.flags = from.handlers.flags;
    op.count = from.count;
    op.sources = from.source_count;
    if (from.handlers.uses_site) op.site = program_.site_count++;
    if (from.fixed != nullptr) {
      op.e = layout_.areas[function_.plan_area] +
             from.plan * static_cast<std::uint32_t>(sizeof(FixedPlan));
    }
    push(op, from.handlers, from.origin, from.spins, from.part);
    if (from.fixed != nullptr) program_.full.back().fn = from.fixed;
    if (from.whole) program_.tables->instructions.back() = from.origin;
    if (from.pair_handler != nullptr) {
      program_.tables->fused.push_back(position() - 1);
      set_indexed(program_.full.back(), from.pair_handler);
    }
  }

  void jump(const LoweredBlock& block, std::uint32_t to,
            OpOrigin::Part part = OpOrigin::Part::helper) {
    fixups_.push_back({position(), to, false, false, 0});
    push(Op{}, {}, block.origin, false, part);
  }

  void emit_end(const LoweredBlock& block, std::uint32_t next) {
    using End = LoweredBlock::End;
    const bool written = form_ == CodeForm::as_written;
    if (block.end == End::jump && (block.taken != next || written))
      jump(block, block.taken, OpOrigin::Part::branch);
    if (block.end == End::fall && block.fall != next) jump(block, block.fall);
    if (block.end == End::table) {
      Op op;
      op.a = resolve(block.condition);
      op.target = static_cast<std::int32_t>(program_.tables->branch_tables.size());
      program_.tables->branch_tables.emplace_back();
      table_fixups_.push_back({position(), &block});
      push(op, internal_handlers(Internal::branch_table), block.origin, false,
           OpOrigin::Part::branch);
    }
    const bool goes_on = block.taken == next && block.fall == next;
    if (block.end != End::branch || (goes_on && !written)) return;
    Op op;
    op.a = resolve(block.condition);
    // Jump to the target that is not the next block.
    const bool swap = block.taken == next;
    fixups_.push_back({position(), swap ? block.fall : block.taken, true, block.negated != swap,
                       block.ops.size()});
    const bool is_bra = block.origin->row->handler == ptx::Handler::bra;
    push(op, {}, block.origin, false, is_bra ? OpOrigin::Part::branch : OpOrigin::Part::skip);
    if (!swap && block.fall != next) jump(block, block.fall);
  }

  void settle(const Fixup& fixup) {
    const std::uint32_t target = begin_[fixup.block];
    const bool back = target <= fixup.op;
    const OpPair handlers = internal_handlers(fixup.conditional ? Internal::branch
                                              : back            ? Internal::jump_back
                                                                : Internal::jump);
    program_.full[fixup.op].fn = handlers.full;
    program_.masked[fixup.op].fn = handlers.masked;
    for (Op* op : {&program_.full[fixup.op], &program_.masked[fixup.op]}) {
      op->target = static_cast<std::int32_t>(target) - static_cast<std::int32_t>(fixup.op);
      op->b = fixup.negated ? ~0u : 0u;
      if (!back) continue;
      op->imm = std::int64_t{fixup.op} - target + 1;
      op->flags = spins_between(target, fixup.op) ? kSpinLoopCost : kPlainLoopCost;
    }
    if (form_ == CodeForm::fast) join_comparison(fixup);
  }

  /// A branch is fused with the op before it if this computes its predicate, and with the sum
  /// before that if the comparison reads it.
  void join_comparison(const Fixup& fixup) {
    if (!fixup.conditional || fixup.before == 0) return;
    Op& compare = program_.full[fixup.op - 1];
    const OpFn compare_alone = compare.fn, both = branching_handler(compare_alone);
    if (both == nullptr || compare.d != program_.full[fixup.op].a) return;
    compare.fn = both;
    if (fixup.before == 1 || !is_sum(program_.tables->instructions[fixup.op - 2])) return;
    Op& sum = program_.full[fixup.op - 2];
    const OpFn step = stepping_handler(compare_alone);
    if (step != nullptr && (compare.a == sum.d) != (compare.b == sum.d)) sum.fn = step;
  }

  /// A wrapping add of 32-bit integers.
  static bool is_sum(const ptx::Instruction* instruction) {
    if (instruction == nullptr || instruction->row->handler != ptx::Handler::add) return false;
    const ptx::Modifiers& modifiers = instruction->modifiers;
    const bool is_word = modifiers.type[0] == ptx::Type::s32 || modifiers.type[0] == ptx::Type::u32;
    return is_word && !modifiers.sat && !modifiers.cc;
  }

  void settle_tables() {
    for (const TableFixup& fixup : table_fixups_) {
      auto& table =
          program_.tables->branch_tables[static_cast<std::size_t>(program_.full[fixup.op].target)];
      std::uint32_t lowest = fixup.op + 1;
      for (const std::uint32_t to : fixup.block->table) {
        table.push_back(static_cast<std::int32_t>(begin_[to]) -
                        static_cast<std::int32_t>(fixup.op));
        lowest = std::min(lowest, begin_[to]);
      }
      for (Op* op : {&program_.full[fixup.op], &program_.masked[fixup.op]}) {
        op->imm = std::int64_t{fixup.op} - lowest + 1;
        op->flags = spins_between(lowest, fixup.op) ? kSpinLoopCost : kPlainLoopCost;
      }
    }
  }

  bool spins_between(std::uint32_t first, std::uint32_t last) const {
    const std::uint32_t start = position() - static_cast<std::uint32_t>(spins_.size());
    if (first > last) return false;
    return spins_[last - start] != (first == start ? 0 : spins_[first - start - 1]);
  }

  Program& program_;
  const Lowered& function_;
  const std::vector<std::uint32_t>& order_;
  const FrameLayout& layout_;
  const CodeForm form_;
  bool busy_waits_ = false;           ///< of the block under way
  std::vector<std::uint32_t> begin_;  ///< per block: index of its first op
  std::vector<std::uint32_t> spins_;  ///< per op of this function: ops that may spin, up to it
  std::vector<Fixup> fixups_;
  std::vector<TableFixup> table_fixups_;
};

void finish_function(Program& program, const FunctionLowering& lowering, const Lowered& lowered,
                     const FrameLayout& layout, FunctionInfo& info) {
  info.frame_bytes = static_cast<std::uint32_t>(layout.bytes);
  info.areas_begin = layout.areas.empty() ? info.frame_bytes : layout.areas.front();
  for (std::size_t i = 0; i < lowered.constants.size(); ++i) {
    const ConstantValue& value = lowered.constants[i];
    info.constants.push_back({layout.constants[i], value.bytes, value.bits, value.in_shared});
  }
  info.zeroed.push_back({kCarryOffset, kPredicateWidth, 0});
  for (const std::uint32_t reg : layout.live_at_entry) {
    info.zeroed.push_back({layout.registers[reg], lowered.register_bytes[reg], 0});
  }
  if (!info.is_entry) {
    info.parameter_base = layout.areas[kParameterArea];
    info.parameter_stride = lowered.areas[kParameterArea].stride;
    info.return_base = layout.areas[kReturnArea];
    info.return_stride = lowered.areas[kReturnArea].stride;
  }
  for (const std::uint32_t index : lowering.call_sites()) {
    CallSite& site = program.tables->call_sites[index];
    for (CallValue& value : site.arguments) value.offset = layout.areas[value.offset];
    for (CallValue& value : site.results) value.offset = layout.areas[value.offset];
    site.block_offset = layout.areas[site.block_offset];
    site.return_offset = layout.areas[site.return_offset];
  }
}

/// Reverts lower()'s preparations for simplify().
Prologue keep_as_written(Lowered& function) {
  for (LoweredBlock& block : function.blocks) {
    for (LoweredOp& op : block.ops) op.fixed = nullptr;
  }
  return {};
}

void decode_function(Program& program, LoweringContext& context, std::uint32_t index,
                     CodeForm form) {
  FunctionLowering lowering(context, index);
  Lowered lowered = lowering.run();
  list_wgmma_registers(lowered, index);
  std::vector<std::uint32_t> order = block_order(lowered);
  mark_busy_waits(lowered, order);
  FunctionInfo& info = program.functions[index];
  const Prologue prologue =
      form == CodeForm::fast ? simplify(lowered, order, info.is_entry) : keep_as_written(lowered);
  if (form == CodeForm::fast) fuse(lowered, order);
  const FrameLayout layout = assign_slots(lowered, order, prologue.results);
  if (layout.bytes > kMaxFrameBytes) {
    throw ptx::PtxError(format("the registers, constants and call parameters of {} take more than "
                               "{} for a warp",
                               info.name, describe_bytes(kMaxFrameBytes)),
                        context.module.functions[index].ptx_line);
  }
  info.first_op = static_cast<std::uint32_t>(program.full.size());
  program.tables->function_starts.push_back(info.first_op);
  program.tables->function_order.push_back(index);
  if (form == CodeForm::as_written) {
    const auto registers =
        static_cast<std::ptrdiff_t>(context.module.functions[index].registers.size());
    program.tables->register_offsets[index].assign(layout.registers.begin(),
                                                   layout.registers.begin() + registers);
  }
  const std::vector<std::uint32_t> begin = Emitter(program, lowered, order, layout, form).run();
  info.block_op = begin[prologue.block == Prologue::kNone ? order.front() : order[1]];
  finish_function(program, lowering, lowered, layout, info);
}

}  // namespace

FaultPlace Program::get_place(std::uint32_t op) const {
  const Place& place = places[op];
  FaultPlace there;
  const auto file = static_cast<std::size_t>(place.source.file);
  if (file < module->files.size()) there.file = module->files[file];
  there.line = place.source.line;
  there.ptx_line = place.ptx_line;
  there.opcode = std::string(place.opcode);
  return there;
}

const FunctionInfo* Program::find(std::string_view name) const noexcept {
  for (const FunctionInfo& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::uint32_t Program::Tables::function_at(std::uint32_t index) const noexcept {
  const auto after = std::upper_bound(function_starts.begin(), function_starts.end(), index);
  return function_order[static_cast<std::size_t>(after - function_starts.begin()) - 1];
}

std::unique_ptr<Program> decode(std::shared_ptr<ptx::Module> module, const SymbolAddresses& symbols,
                                CodeForm form) {
  // Not for the whole process: tests and benchmarks compare instruction sets.
  const IsaChoice isa;
  auto program = std::make_unique<Program>();
  program->tables = std::make_shared<Program::Tables>();
  ModuleLayout layout = lay_out(*module);
  program->functions = layout.functions;
  for (const ptx::Function& function : module->functions) {
    program->tables->builtins.push_back(function.has_body ? nullptr : find_builtin(function.name));
  }
  if (form == CodeForm::as_written)
    program->tables->register_offsets.resize(module->functions.size());
  LoweringContext context{*module, layout, symbols, *program->tables};
  for (std::uint32_t f = 0; f < module->functions.size(); ++f) {
    if (module->functions[f].has_body) decode_function(*program, context, f, form);
  }
  program->module = std::move(module);
  return program;
}

}  // namespace kernwright::sim
