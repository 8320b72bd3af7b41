// tensormap: a field of a descriptor in memory is replaced, and a changed one goes to global
// memory.
#include "sim/exec/watcher.h"
#include "sim/ops/matrix/matrix_multiply.h"
#include "sim/ops/memory/memory_transfer.h"
#include "sim/tensor_map.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::Space;

// Op::flags beside those of memory_plan.h.
constexpr std::uint32_t kFieldShift = 8;          ///< TensorMapField
constexpr std::uint32_t kWide = 1 << 12;          ///< the new value has 64 bits
constexpr std::uint32_t kGiven = 1 << 13;         ///< a dimension is given, in b, before the value
constexpr std::uint32_t kNarrowSource = 1 << 14;  ///< the copy's second address has 32 bits

constexpr std::uint64_t kAlignment = 64;

/// Host address of the descriptor; null after a finding.
std::byte* locate_map(const Op* op, Warp& warp, int lane, Space space, AccessKind kind,
                      std::uint64_t address) {
  return locate(op, warp, lane, {space, kind, address, kTensorMapBytes, kAlignment});
}

/// Reports located bytes to the checks, if there are any.
void touch(const Op* op, Warp& warp, int lane, AccessKind mode, Space space, std::uint64_t address,
           std::uint64_t bytes) {
  Watcher* const check = warp.worker->check;
  if (check != nullptr) check->accessed(op, warp, lane, {space, mode, address, bytes});
}

/// Lane after lane: those of one warp may change one descriptor.
const Op* replace_field(const Op* op, Warp& warp) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const auto field = static_cast<TensorMapField>(op->flags >> kFieldShift & 0xf);
  const bool has_dimension = (op->flags & kGiven) != 0;
  const std::uint32_t source = has_dimension ? op->c : op->b;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const Space space = op_space(op);
    std::byte* const map = locate_map(op, warp, lane, space, AccessKind::write, address[lane]);
    if (map == nullptr) return nullptr;
    const std::uint64_t value = (op->flags & kWide) != 0 ? warp.reg<std::uint64_t>(source)[lane]
                                                         : warp.reg<std::uint32_t>(source)[lane];
    const std::uint32_t dimension = has_dimension ? warp.reg<std::uint32_t>(op->b)[lane] : 0;
    for (const std::uint32_t word : replace_tensor_map_field(map, field, dimension, value)) {
      if (word == kTensorMapBytes) continue;
      touch(op, warp, lane, AccessKind::write, space, address[lane] + word, 4);
    }
  }
  return op + 1;
}

/// The whole warp copies one descriptor; the fence behind it has no proxies to tell apart here.
const Op* copy_map(const Op* op, Warp& warp) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const int lane = std::countr_zero(warp.mask);
  const auto displacement = static_cast<std::uint64_t>(std::int64_t{op->imm2});
  const std::uint64_t given =
      (op->flags & kNarrowSource) != 0
          ? static_cast<std::uint32_t>(warp.reg<std::uint32_t>(op->b)[lane] + displacement)
          : warp.reg<std::uint64_t>(op->b)[lane] + displacement;
  const std::uint64_t source = seen_from_block(warp, Space::shared, given);
  const std::byte* const from = locate_map(op, warp, lane, Space::shared, AccessKind::read, source);
  if (from == nullptr) return nullptr;
  std::byte* const to = locate_map(op, warp, lane, Space::global, AccessKind::write, address[lane]);
  if (to == nullptr) return nullptr;
  touch(op, warp, lane, AccessKind::read, Space::shared, source, kTensorMapBytes);
  touch(op, warp, lane, AccessKind::write, Space::global, address[lane], kTensorMapBytes);
  std::memcpy(to, from, kTensorMapBytes);
  return op + 1;
}

}  // namespace

OpPair select_tensormap(const ptx::Instruction& instruction, const OperandWidths& widths) {
  if (instruction.row->handler != Handler::tensormap) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  std::uint32_t flags = memory_flags(modifiers, widths[0]);
  const auto constant = [&](std::size_t i) { return instruction.operands[i].bits; };
  constexpr std::uint32_t kCopy = 11;  // of hopper_words.inc
  if (modifiers.selector == kCopy) {
    if (constant(2) != kTensorMapBytes) return {};
    if (widths[1] == 4) flags |= kNarrowSource;
    return everybody_pair<copy_map>(flags);
  }
  const auto field = static_cast<TensorMapField>(modifiers.selector - 1);
  flags |= static_cast<std::uint32_t>(field) << kFieldShift;
  if (modifiers.type[0] == ptx::Type::b64) flags |= kWide;
  if (instruction.operands.size() == 3) {
    const std::uint64_t last = kMaxTensorRank - (field == TensorMapField::stride ? 2 : 1);
    if (constant(1) > last) return {};
    flags |= kGiven;
  }
  // The values accepted by ptxas for sm_90a.
  if (field == TensorMapField::type && constant(1) > 12) return {};
  if (field == TensorMapField::interleave && constant(1) > 2) return {};
  if (field == TensorMapField::swizzle && constant(1) > 3) return {};
  if (field == TensorMapField::fill && constant(1) > 1) return {};
  return {replace_field, replace_field, flags};
}

}  // namespace kernwright::sim::KW_SIM_NS
