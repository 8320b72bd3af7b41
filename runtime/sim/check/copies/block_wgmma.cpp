// wgmma reads its matrices from shared memory until somebody waits for its group.
#include "sim/check/block_check.h"
#include "sim/code/wgmma_matrix.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/warp/warpgroup.h"

#include <bit>

namespace kernwright::sim {

void BlockCheck::wgmma(const Op* op, Warp& warp) {
  const CheckedOp& info = ops[warp.op_index(op)];
  const int lane = std::countr_zero(warp.mask);
  const std::uint32_t w = warp.index;
  std::uint32_t& group = products_.open(w);
  if (race && group == 0) {
    group = reads_.begin(
        stamp_of(info, w * std::uint32_t{kLanes} + static_cast<std::uint32_t>(lane)) | kAllBytes);
  }
  before_ = 0;
  const auto read = [&](const SharedMatrix& matrix, unsigned row_block, unsigned k_blocks) {
    for (unsigned k = 0; k < k_blocks; ++k) {
      for (unsigned i = 0; i < 8; ++i) {
        const std::uint64_t at = matrix.chunk(row_block, k, i);
        read_by_proxy(op, warp, lane, at, kMatrixChunk);
        if (race) reads_.add(group, at, kMatrixChunk);
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

void BlockCheck::product_touched(const Op* op, const Warp& warp, std::string what,
                                 std::uint32_t product) {
  if (sync) findings.product(op, warp, std::move(what), product);
}

void BlockCheck::end_wgmma_group(const Warp& warp) { products_.close(warp.index); }

void BlockCheck::wait_for_wgmma(const Warp& warp, std::size_t left) {
  if (!products_.wait(warp.index, left, order.tick(), reads_)) return;
  if (!race) return;
  if (!where.clustered) {
    reads_.drop_if([&](const AsyncRead& read) {
      return read.ended != 0 && read.ended < tick_of(order.floor);
    });
  }
  reading = reads_.span;
}

}  // namespace kernwright::sim
