// wgmma reads its matrices from shared memory until somebody waits for its group.
#include "sim/check/block_check.h"
#include "sim/exec/ops/wgmma_matrix.h"
#include "sim/exec/scheduler.h"

#include <bit>

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
  const auto read = [&](const SharedMatrix& matrix, unsigned row_block) {
    for (unsigned k = 0; k < 2; ++k) {
      for (unsigned i = 0; i < 8; ++i) {
        const std::uint64_t at = matrix.chunk(row_block, k, i);
        read_by_proxy(op, warp, lane, at, kMatrixChunk);
        if (race) reads_.add(products_[w].open, at, kMatrixChunk);
      }
    }
  };
  if ((op->flags & kRegisters) == 0) {
    const SharedMatrix a(warp.reg<std::uint64_t>(op->a)[lane], (op->flags & kTransposeA) != 0);
    for (unsigned r = 0; r < 2; ++r) read(a, 2 * (w % 4) + r);
  }
  const SharedMatrix b(warp.reg<std::uint64_t>(op->b)[lane], (op->flags & kTransposeB) != 0);
  for (unsigned n = 0; n < info.tiles; ++n) read(b, n);
  reading = reads_.span;
}

void BlockCheck::end_wgmma_group(const Warp& warp) {
  Products& products = products_[warp.index];
  products.groups.push_back(std::exchange(products.open, 0));
}

void BlockCheck::wait_for_wgmma(const Warp& warp, std::size_t left) {
  Products& products = products_[warp.index];
  while (products.groups.size() > left) {
    if (products.groups.front() != 0) reads_.end(products.groups.front(), tick_);
    products.groups.erase(products.groups.begin());
  }
  if (!race) return;
  if (!clustered_) {
    reads_.drop_if(
        [&](const AsyncRead& read) { return read.ended != 0 && read.ended < tick_of(floor); });
  }
  reading = reads_.span;
}

}  // namespace kernwright::sim
