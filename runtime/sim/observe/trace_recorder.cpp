// Records the steps of one thread of one launch.
#include "sim/observe/trace_recorder.h"

#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/observe/observer.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <cstring>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;
using Part = OpOrigin::Part;

int whole_bytes(Type type) { return std::max(1, (ptx::bits(type) + 7) / 8); }

bool is_bits(Type type) { return type == Type::none || (type >= Type::b1 && type <= Type::b128); }

Type width_type(int bits) {
  return bits <= 16 ? Type::b16 : bits == 32 ? Type::b32 : bits == 64 ? Type::b64 : Type::b128;
}

/// The type for showing a register: the instruction's if it is more specific than the declaration.
Type shown_type(const ptx::Instruction& instruction, Type written, Type declared) {
  if (declared == Type::pred || is_bits(written)) return declared;
  const int have = ptx::bits(declared), want = ptx::bits(written);
  if (want == have) return written;
  if (want > have) return declared;
  // Fragments of matrices are packed.
  if (have == 32 && written == Type::f16) return Type::f16x2;
  if (have == 32 && written == Type::bf16) return Type::bf16x2;
  const Handler handler = instruction.row->handler;
  const bool is_fragment = handler == Handler::mma || handler == Handler::mma_sp ||
                           handler == Handler::wmma || handler == Handler::ldmatrix ||
                           handler == Handler::movmatrix || handler == Handler::wgmma;
  return is_fragment ? width_type(have) : written;
}

Space resolve(Space space, std::uint64_t address) {
  if (space == Space::cluster) return Space::shared;
  return space == Space::generic ? window_space(address) : space;
}

const char* space_word(Space space) {
  switch (space) {
    case Space::shared: return "shared";
    case Space::local: return "local";
    case Space::param: return "param";
    case Space::constant: return "const";
    default: return "global";
  }
}

std::vector<TraceBits> elements_at(const Warp& warp, int lane, Space space,
                                   const TraceAccess& access, std::size_t element) {
  std::vector<TraceBits> values;
  const std::byte* const host = try_locate(
      warp, lane,
      {.space = space, .kind = AccessKind::read, .address = access.address, .size = access.bytes});
  if (host == nullptr) return values;
  for (std::size_t at = 0; at < access.bytes; at += element) {
    std::memcpy(&values.emplace_back(), host + at,
                std::min({element, sizeof(TraceBits), access.bytes - at}));
  }
  return values;
}

}  // namespace

TraceRecorder::TraceRecorder(const TraceRequest& request) { trace_.request = request; }

bool TraceRecorder::begin(const LaunchContext& launch) {
  if (trace_.launches++ != trace_.request.launch) return false;
  const auto &block = trace_.request.block, &thread = trace_.request.thread;
  trace_.kernel = launch.program->functions[launch.function].name;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    trace_.grid[axis] = launch.grid[axis];
    trace_.block_shape[axis] = launch.block[axis];
    trace_.outside |= block[axis] >= launch.grid[axis] || thread[axis] >= launch.block[axis];
  }
  if (trace_.outside) return false;
  block_ = block[0] +
           std::uint64_t{launch.grid[0]} * (block[1] + std::uint64_t{launch.grid[1]} * block[2]);
  const std::uint32_t linear =
      thread[0] + launch.block[0] * (thread[1] + launch.block[1] * thread[2]);
  warp_ = linear / kLanes;
  lane_ = static_cast<int>(linear % kLanes);
  active_ = true;
  return true;
}

void TraceRecorder::end(const Fault* fault) {
  if (!active_) return;
  active_ = false;
  if (fault != nullptr) trace_.fault = *fault;
  if (!open_) return;
  open_ = false;
  step_.complete = false;
  keep();
}

bool TraceRecorder::is_in(const Warp& warp) const noexcept {
  return warp.index == warp_ && warp.block->linear_index == block_;
}

bool TraceRecorder::is_full() const noexcept {
  return trace_.steps.size() >= trace_.request.limit && trace_.total >= trace_.request.skip;
}

void TraceRecorder::start_step(const Warp& warp, const ObservedOp& info, std::uint32_t index) {
  step_ = TraceStep{};
  spaces_.clear();
  info_ = &info;
  program_ = warp.program;
  frame_ = warp.frame;
  step_.depth = warp.schedule->current().depth;
  if (step_.depth > depth_) {  // a function begins: its registers have no values yet
    known_.erase(known_.lower_bound({frame_, 0}), known_.upper_bound({frame_, ~0u}));
  }
  depth_ = step_.depth;
  if (is_full()) return;
  const ptx::Module& module = *program_->module;
  const Place& place = program_->places[index];
  const auto file = static_cast<std::size_t>(place.source.file);
  if (file < module.files.size()) step_.file = module.files[file];
  step_.line = place.source.line;
  step_.ptx_line = place.ptx_line;
  step_.function = program_->functions[info.function].name;
  step_.instruction =
      instruction_text(module, module.functions[info.function], *info.origin.instruction);
  step_.returned = info.origin.part == Part::results;
}

void TraceRecorder::open(const Op* op, const Warp& warp, const ObservedOp& info) {
  start_step(warp, info, warp.op_index(op));
  open_ = true;
  if (is_full()) return;
  const ptx::Instruction& instruction = *info.origin.instruction;
  if (info.origin.part == Part::branch && instruction.row->handler == Handler::bra)
    step_.taken = (guard_lanes(warp, info) >> lane_ & 1) != 0;
  note_memory(op, warp, info);
}

void TraceRecorder::note_memory(const Op* op, const Warp& warp, const ObservedOp& info) {
  if (info.kind == CheckKind::none) return;
  const std::uint64_t address = lane_address(op, warp, info, lane_);
  const Space space = info.address.space;
  const Type type = info.origin.instruction->modifiers.type[0];
  if (info.kind == CheckKind::copy) {
    const std::uint32_t read = copied_bytes(op, warp, info, lane_);
    if (read != 0)
      note_access(warp, "load", Space::global, lane_address(op, warp, info, lane_, true), read,
                  Type::b32);
    return note_access(warp, "store", space, address, warp.reg<std::uint32_t>(op->c)[0], Type::b32);
  }
  const bool is_tile = info.tiles != 0, is_atomic = info.kind == CheckKind::atomic;
  if (is_tile && lane_ >= info.tiles * 8) return;
  const bool loads = info.kind == CheckKind::load || info.kind == CheckKind::tile_load;
  note_access(warp,
              is_atomic ? "atomic"
              : loads   ? "load"
                        : "store",
              space, address, info.bytes, is_tile ? Type::b16 : type);
}

void TraceRecorder::note_access(const Warp& warp, const char* what, Space space,
                                std::uint64_t address, std::uint32_t bytes, Type type) {
  TraceAccess& access = step_.accesses.emplace_back();
  access.what = what;
  access.space = space_word(resolve(space, address));
  access.address = address;
  access.bytes = bytes;
  access.type = ptx::name(type);
  spaces_.push_back(space);
  access.before =
      elements_at(warp, lane_, space, access, static_cast<std::size_t>(whole_bytes(type)));
}

void TraceRecorder::printed(std::string_view text) {
  if (open_) step_.printed += text;
}

void TraceRecorder::close(const Warp& warp, bool done) {
  if (!done) return;
  waiting_ = warp.stop == Stop::barrier || warp.stop == Stop::warp_sync;
  if (!waiting_) finish(warp);
}

void TraceRecorder::settle(const Warp& warp) {
  if (!waiting_) return;
  waiting_ = false;
  finish(warp);
}

void TraceRecorder::finish(const Warp& warp) {
  if (!open_) return;
  open_ = false;
  take_writes();
  for (std::size_t i = 0; i < step_.accesses.size(); ++i) {
    TraceAccess& access = step_.accesses[i];
    if (access.what == "load" || access.before.empty()) continue;
    access.after = elements_at(warp, lane_, spaces_[i], access,
                               (access.bytes + access.before.size() - 1) / access.before.size());
  }
  keep();
}

void TraceRecorder::skip(const Warp& warp, const ObservedOp& info, std::uint32_t index) {
  start_step(warp, info, index);
  step_.predicated_off = true;
  keep();
}

void TraceRecorder::take_writes() {
  const ptx::Instruction& instruction = *info_->origin.instruction;
  const bool is_call = instruction.row->handler == Handler::call;
  if (is_call && info_->origin.part != Part::results) return;
  for (const ptx::Operand& operand : instruction.operands) {
    const bool is_list = operand.kind == OperandKind::vector || operand.kind == OperandKind::list;
    if (is_list) {
      for (const ptx::Operand& element : operand.elements) {
        const bool is_written = element.is_destination || operand.is_destination;
        if (element.kind == OperandKind::reg && is_written)
          take_register(element.reg, element.type);
      }
    } else if (operand.is_destination && operand.kind == OperandKind::reg) {
      take_register(operand.reg, operand.type);
    } else if (operand.is_destination && operand.kind == OperandKind::reg_pair) {
      if (operand.reg != ptx::kNoRegister) take_register(operand.reg, operand.type);
      if (operand.reg2 != ptx::kNoRegister) take_register(operand.reg2, Type::pred);
    }
  }
}

void TraceRecorder::take_register(std::uint32_t reg, Type type) {
  const ptx::Register& declared = program_->module->functions[info_->function].registers[reg];
  const std::byte* at = frame_ + program_->tables->register_offsets[info_->function][reg];
  TraceBits bits;
  if (declared.type == Type::pred) {
    std::uint32_t lanes = 0;
    std::memcpy(&lanes, at, sizeof lanes);
    bits.low = lanes >> lane_ & 1;
  } else {
    const auto width = static_cast<std::size_t>(std::max(2, ptx::bits(declared.type) / 8));
    std::memcpy(&bits, at + static_cast<std::size_t>(lane_) * width, width);
  }
  const auto [known, is_new] = known_.try_emplace({frame_, reg}, bits);
  TraceWrite& write = step_.writes.emplace_back();
  write.reg = full_name(declared);
  write.type = ptx::name(shown_type(*info_->origin.instruction, type, declared.type));
  if (!is_new) write.before = std::exchange(known->second, bits);
  write.after = bits;
}

void TraceRecorder::keep() {
  const bool has_room = !is_full();
  step_.index = trace_.total++;
  if (step_.index >= trace_.request.skip && has_room) trace_.steps.push_back(std::move(step_));
}

}  // namespace kernwright::sim
