// The place of a block in its launch.
#include "sim/check/block_place.h"

#include "sim/exec/block/cluster.h"

namespace kernwright::sim {

void BlockPlace::begin(const Block& its_block) {
  in = &its_block;
  clustered = launch.program.spans_cluster && its_block.member->cluster->members.size() > 1;
  block = static_cast<std::uint32_t>(its_block.linear_index);
  ctaid = its_block.ctaid;
  grid_shape = its_block.warps[0].worker->launch->grid;
  cluster_shape = its_block.warps[0].worker->launch->cluster;
}

std::uint32_t BlockPlace::block_at(std::uint64_t rank) const {
  const auto& members = in->member->cluster->members;
  if (rank >= members.size() || members[rank]->exited) return block;
  return static_cast<std::uint32_t>(members[rank]->block->linear_index);
}

std::uint32_t BlockPlace::get_cluster(std::uint32_t other) const {
  const auto& [x, y, z] = cluster_shape;
  if (x == 0) return other;
  const std::uint32_t width = grid_shape[0], height = grid_shape[1];
  const std::uint32_t cx = other % width / x, cy = other / width % height / y;
  const std::uint32_t cz = other / width / height / z;
  return cx + width / x * (cy + height / y * cz);
}

Reach BlockPlace::reach_to(std::uint32_t other) const {
  if (other == block) return Reach::block;
  return get_cluster(other) == get_cluster(block) ? Reach::cluster : Reach::device;
}

const CheckedOp* BlockPlace::op_at(std::uint32_t site) const {
  const std::vector<std::uint32_t>& places = launch.program.site_ops;
  return site != 0 && site < places.size() ? &launch.program.ops[places[site]] : nullptr;
}

Breadth BlockPlace::get_breadth(const WordAccess& access, Shadow other, Told told) const {
  const std::uint32_t its_block = access.mixed ? owner(other) : block;
  if (told == Told::several) {
    if (is_by_many_blocks(other)) return access.global ? Breadth::grid : Breadth::cluster;
    if (its_block == block) return is_by_many_warps(other) ? Breadth::block : Breadth::warp;
  }
  if (its_block != block)
    return get_cluster(its_block) == get_cluster(block) ? Breadth::cluster : Breadth::grid;
  return get_thread(other) / kLanes == access.warp.index ? Breadth::warp : Breadth::block;
}

}  // namespace kernwright::sim
