// wgmma reads its matrices from shared memory until somebody waits for its group.
#include "sim/check/block_check.h"
#include "sim/code/wgmma_matrix.h"
#include "sim/exec/scheduler.h"
#include "sim/exec/warpgroup.h"

#include <algorithm>
#include <bit>
#include <span>

namespace kernwright::sim {

void BlockCheck::wgmma(const Op* op, Warp& warp) {
  const CheckedOp& info = ops[warp.op_index(op)];
  const int lane = std::countr_zero(warp.mask);
  const std::uint32_t w = warp.index;
  if (race && products_[w].open == 0) {
    products_[w].open = reads_.begin(
        stamp_of(info, w * std::uint32_t{kLanes} + static_cast<std::uint32_t>(lane)) | kAllBytes);
  }
  before_ = 0;
  const auto read = [&](const SharedMatrix& matrix, unsigned row_block, unsigned k_blocks) {
    for (unsigned k = 0; k < k_blocks; ++k) {
      for (unsigned i = 0; i < 8; ++i) {
        const std::uint64_t at = matrix.chunk(row_block, k, i);
        read_by_proxy(op, warp, lane, at, kMatrixChunk);
        if (race) reads_.add(products_[w].open, at, kMatrixChunk);
      }
    }
  };
  if ((op->flags & kRegisters) == 0) {
    const SharedMatrix a(warp.reg<std::uint64_t>(op->a)[lane], (op->flags & kTransposeA) != 0);
    for (unsigned r = 0; r < 2; ++r) read(a, 2 * (w % kWarpgroupWarps) + r, 2);
  }
  const SharedMatrix b(warp.reg<std::uint64_t>(op->b)[lane], (op->flags & kTransposeB) != 0);
  for (unsigned n = 0; n < info.tiles; ++n) read(b, n, depth_of_b(op->flags));
  reading = reads_.span;
}

void BlockCheck::end_wgmma_group(const Warp& warp) {
  Products& products = products_[warp.index];
  products.groups.push_back(std::exchange(products.open, 0));
}

void BlockCheck::wait_for_wgmma(const Warp& warp, std::size_t left) {
  Products& own = products_[warp.index];
  if (own.closed() <= left) return;
  const std::size_t target = own.closed() - left;
  const std::span group(products_.data() + warp.index / kWarpgroupWarps * kWarpgroupWarps,
                        kWarpgroupWarps);
  // Whoever waits knows that the parts of all four warps are done.
  for (std::size_t g = own.waited; g < target; ++g) {
    for (const Products& products : group) {
      if (g < products.dropped || g >= products.closed()) continue;
      const std::uint32_t number = products.groups[g - products.dropped];
      if (number != 0) reads_.end(number, warp.index % kWarpgroupWarps, tick_);
    }
  }
  own.waited = std::max(own.waited, target);
  std::size_t done = own.waited;
  for (const Products& products : group) done = std::min(done, products.waited);
  for (Products& products : group) {
    const std::size_t count = std::min(done - products.dropped, products.groups.size());
    products.groups.erase(products.groups.begin(),
                          products.groups.begin() + static_cast<std::ptrdiff_t>(count));
    products.dropped += count;
  }
  if (!race) return;
  if (!clustered_) {
    reads_.drop_if(
        [&](const AsyncRead& read) { return read.ended != 0 && read.ended < tick_of(floor); });
  }
  reading = reads_.span;
}

}  // namespace kernwright::sim
