// Products of warpgroups in flight: their operands must stay untouched before wgmma.wait_group.
//
// A product is computed when it is issued, an order allowed by PTX. Until a wait covers it,
// operands in shared memory must not change; the race check looks after this
// (check/copies/wgmma_reads.cpp). Its registers must not be touched either, also not by products of
// another shape. But there ptxas waits by itself (and then often runs all products one by one),
// also if a compiler moved the access before the wait. So such a touch ends the product here too,
// and is a finding for checks. If one of the four warps is missing or has exited, an H100 ends the
// kernel with an illegal instruction; here this is a fault.
#pragma once

#include "sim/code/op.h"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace kernwright::sim {

struct Block;
struct Warp;

inline constexpr std::uint32_t kWarpgroupWarps = 4;

/// One warp's part of a wgmma.mma_async. Op::f is its list of registers in flight: those of D, then
/// those of A (code/wgmma_registers.h).
struct PendingProduct {
  std::uint32_t op = 0;                               ///< index
  std::uint32_t registers = 0, sums = 0, inputs = 0;  ///< place in Program::lists, counts
  bool is_over = false;  ///< before any wait: its registers were touched
};

/// All warpgroups of a block. One host thread runs them in turn.
class Warpgroups {
 public:
  using Registers = std::span<const std::uint32_t>;

  void reset(std::uint32_t warps);

  /// A product with these registers is about to be issued: ends the products in flight that it
  /// depends on. False after a fault, if the warp has no warpgroup.
  bool may_issue(const Op* op, Warp& warp, const PendingProduct& product);
  void issue(Warp& warp, const PendingProduct& product);
  void commit(const Warp& warp);
  /// wgmma.wait_group: waits until all four warps have issued the same groups, because they
  /// multiply together.
  const Op* wait(const Op* op, Warp& warp, std::uint32_t left);
  /// Releases threads whose awaited warps have committed by now.
  bool release(Block& block);

  bool has_pending(const Warp& warp);
  /// An instruction reads and writes these registers: ends the products with these registers.
  void touch(const Op* op, Warp& warp, Registers reads, Registers writes);

 private:
  using Products = std::vector<PendingProduct>;
  /// The products of one warp in flight.
  struct Part {
    Products open;
    std::deque<Products> groups;  ///< those committed that this warp did not wait for
    std::uint64_t committed = 0, finished = 0, wanted = 0;
  };
  struct Warpgroup {
    Part parts[kWarpgroupWarps];
    std::uint64_t complete = 0;  ///< groups that all four warps are known to have committed
  };
  enum class Readiness : std::uint8_t { ready, waits, never };

  /// Made when the block's first product asks for it.
  Warpgroup& find_group(const Warp& warp);
  Part& get_part(const Warp& warp);
  static Readiness readiness(const Block& block, const Warpgroup& group, std::uint32_t first,
                             std::uint64_t target);
  template <typename F>
  static void end_products(const Op* op, Warp& warp, Part& part, F touched);

  std::uint32_t warps_ = 0;
  std::vector<Warpgroup> groups_;  ///< empty until one is asked for
};

const Op* commit_products(const Op* op, Warp& warp);
const Op* wait_for_products(const Op* op, Warp& warp);

/// Reports that a chunk of a wgmma's matrix, at this offset, is out of bounds; `leading` are the
/// bytes of its descriptor's leading offset.
void report_chunk(const Op* op, Warp& warp, std::uint64_t offset, std::uint64_t leading);

}  // namespace kernwright::sim
