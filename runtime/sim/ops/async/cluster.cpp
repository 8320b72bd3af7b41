// Clusters: addresses in other blocks' shared memory and the barrier of the cluster.
#include "sim/exec/block/cluster.h"
#include "sim/ops/memory/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;

/// mapa: the same offset in the block of rank b. In generic addresses the window stays.
template <typename T>
const Op* map_address(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const auto* rank = warp.reg<std::uint32_t>(op->b);
  const auto blocks = static_cast<std::uint32_t>(warp.block->member->cluster->members.size());
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    if (rank[i] >= blocks) return report_rank(op, warp, i, rank[i]);
  }
  write_lanes<true, T>(warp, op->d, [=](int i) {
    const T kept = a[i] & ~(static_cast<T>(kRankMask) << kRankShift);
    return kept | static_cast<T>(rank[i]) << kRankShift;
  });
  return op + 1;
}

/// getctarank: the rank of the block with this address in its shared memory.
template <typename T>
const Op* address_rank(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  write_lanes<true, std::uint32_t>(warp, op->d, [=](int i) {
    return static_cast<std::uint32_t>(a[i] >> kRankShift & kRankMask);
  });
  return op + 1;
}

}  // namespace

OpPair select_cluster(const ptx::Instruction& instruction, const OperandWidths& widths) {
  switch (instruction.row->handler) {
    case Handler::mapa:
      if (widths[0] == 4) return {map_address<std::uint32_t>, map_address<std::uint32_t>};
      return {map_address<std::uint64_t>, map_address<std::uint64_t>};
    case Handler::getctarank:
      if (widths[1] == 4) return {address_rank<std::uint32_t>, address_rank<std::uint32_t>};
      return {address_rank<std::uint64_t>, address_rank<std::uint64_t>};
    case Handler::barrier_cluster:
      if (instruction.modifiers.arrive) return {cluster_arrive, cluster_arrive};
      return {cluster_wait, cluster_wait};
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
