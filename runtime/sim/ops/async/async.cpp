// cp.async: copies from global to shared memory.
//
// The bytes are moved when the instruction is issued, an order allowed by PTX: a copy may complete
// at any time between its issue and its wait. So commit_group, wait_group and wait_all find nothing
// outstanding. A missing wait stays hidden here; the race check finds it.
#include "sim/ops/async/async_copy.h"
#include "sim/ops/memory/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::Space;
using ptx::Verb;

/// The source bytes, checked. The site remembers the allocation of the last access.
const std::byte* source(const Op* op, Warp& warp, MemorySite& site, std::uint64_t address,
                        std::uint32_t size, std::uint32_t alignment, int lane) {
  const Memory& memory = *warp.worker->launch->memory;
  const std::uint64_t offset = address - site.first;
  if (site.generation == memory.generation() && offset <= site.span && size <= site.span - offset &&
      (address & (alignment - 1)) == 0)
    return host_pointer(address);
  const std::byte* host =
      locate(op, warp, lane, {Space::global, AccessKind::read, address, size, alignment});
  const AddressRange range = host != nullptr ? memory.find(address) : AddressRange{};
  site.first = range.begin;
  site.span = range.end - range.begin;
  const bool reuse = host != nullptr && warp.worker->launch->accesses == nullptr;
  site.generation = reuse ? memory.generation() : 0;
  return host;
}

std::byte* target(const Op* op, Warp& warp, std::uint64_t address, std::uint32_t size, int lane) {
  if (address <= warp.shared_bytes && size <= warp.shared_bytes - address &&
      (address & (size - 1)) == 0)
    return warp.shared + address;
  return locate(op, warp, lane, {Space::shared, AccessKind::write, address, size, size});
}

const Op* copy(const Op* op, Warp& warp) {
  MemorySite& site = warp.worker->sites.data()[op->site];
  const std::uint32_t flags = op->flags;
  const std::uint32_t size = warp.reg<std::uint32_t>(op->c)[0];
  const std::uint32_t ignored = (flags & kCopyIgnores) != 0 ? warp.pred(op->e) : 0;
  const std::uint32_t* sizes =
      (flags & kCopyHasSize) != 0 ? warp.reg<std::uint32_t>(op->e) : nullptr;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    const auto to_address = copy_target(op, warp, i);
    std::byte* to = target(op, warp, to_address, size, i);
    if (to == nullptr) return nullptr;
    std::uint32_t bytes = sizes != nullptr && sizes[i] < size ? sizes[i] : size;
    if (((ignored >> i) & 1) != 0) bytes = 0;
    std::byte buffer[16] = {};
    if (bytes != 0) {
      const auto from_address =
          copy_address(warp, op->b, (flags & kCopySource32) != 0, op->imm2, i);
      const std::byte* from = source(op, warp, site, from_address, bytes, size, i);
      if (from == nullptr) return nullptr;
      std::memcpy(buffer, from, bytes);
    }
    std::memcpy(to, buffer, size);
  }
  return op + 1;
}

OpPair select_copy(const ptx::Instruction& instruction, const OperandWidths& widths) {
  if (instruction.operands.size() < 3) return {};
  const ptx::Operand& bytes = instruction.operands[2];
  if (bytes.kind != ptx::OperandKind::integer) return {};
  if (bytes.bits != 4 && bytes.bits != 8 && bytes.bits != 16) return {};
  OpPair pair{copy, copy, 0, true};
  if (widths[0] == 4) pair.flags |= kCopyTarget32;
  if (widths[1] == 4) pair.flags |= kCopySource32;
  if (instruction.operands.size() > 3) {
    if (widths[3] == kPredicateWidth) pair.flags |= kCopyIgnores;
    if (widths[3] == 4) pair.flags |= kCopyHasSize;
  }
  return pair;
}

}  // namespace

OpPair select_async(const ptx::Instruction& instruction, const OperandWidths& widths) {
  if (instruction.row->handler != Handler::cp) return {};
  switch (instruction.modifiers.verb) {
    case Verb::none: return select_copy(instruction, widths);
    case Verb::commit_group:
    case Verb::wait_group:
    case Verb::wait_all: return {no_operation, no_operation};
    default: return {};  // cp.async.mbarrier.arrive: async_mbarrier.cpp
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
