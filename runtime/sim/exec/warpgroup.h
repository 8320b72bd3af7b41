// Products of warpgroups in flight: what must not be touched before wgmma.wait_group.
//
// A product is computed when it is issued, an order that PTX allows. Until a wait covers it,
// operands in shared memory must not change: programs that change them get right results here and
// wrong ones on a GPU, and are found. Its registers must not be touched either, but there ptxas
// waits by itself (and then often runs all products one by one), also where a compiler moved the
// access in front of the wait: such a touch ends the product here too, and is a finding for who
// asks.
#pragma once

#include "sim/exec/op.h"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace kernwright::sim {

struct Block;
struct Warp;

inline constexpr std::uint32_t kWarpgroupWarps = 4;

/// One warp's part of a wgmma.mma_async. Op::f is its list of registers in flight: those of D, then
/// those of A, as numbers that name a register of a function (flight_register()).
struct PendingProduct {
  /// Of all that the warp's part reads through a descriptor.
  using Hash = std::uint64_t (*)(const Op* op, const Warp& warp, std::uint64_t descriptor,
                                 bool is_b);
  std::uint32_t op = 0;                               ///< index
  std::uint32_t registers = 0, sums = 0, inputs = 0;  ///< place in Program::lists, counts
  bool a_is_shared = false;
  bool is_over = false;                      ///< before any wait: its registers were touched
  std::uint64_t a = 0, b = 0;                ///< descriptors
  std::uint64_t a_before = 0, b_before = 0;  ///< hashes at the time of issue
  Hash hash = nullptr;
};

constexpr std::uint32_t flight_register(std::uint32_t function, std::uint32_t reg) {
  return function << 20 | (reg & 0xfffff);
}

/// All warpgroups of a block. One host thread runs them in turn.
class Warpgroups {
 public:
  using Registers = std::span<const std::uint32_t>;

  void reset(std::uint32_t warps);

  /// Whether a product with these registers may be issued now; false after a finding.
  bool may_issue(const Op* op, Warp& warp, const PendingProduct& product);
  void issue(const Warp& warp, const PendingProduct& product);
  void commit(const Warp& warp);
  /// wgmma.wait_group: waits until all four warps have issued what this one waits for, since they
  /// multiply together.
  const Op* wait(const Op* op, Warp& warp, std::uint32_t left);
  /// Lets go who waits for warps that have committed by now.
  bool release(Block& block);

  bool in_flight(const Warp& warp);
  /// An instruction reads and writes these registers: ends the products that they belong to. False
  /// after a finding.
  bool touch(const Op* op, Warp& warp, Registers reads, Registers writes);

 private:
  using Products = std::vector<PendingProduct>;
  /// What one warp has in flight.
  struct Part {
    Products open;
    std::deque<Products> groups;  ///< those committed that this warp did not wait for
    std::uint64_t committed = 0, finished = 0, wanted = 0;
  };
  struct Warpgroup {
    Part parts[kWarpgroupWarps];
    std::uint64_t complete = 0;  ///< groups whose operands were looked at again
  };
  enum class Readiness : std::uint8_t { ready, waits, never };

  /// Made when the block's first product asks for it.
  Warpgroup& group_of(const Warp& warp);
  Part& part_of(const Warp& warp);
  static Readiness readiness(const Block& block, const Warpgroup& group, std::uint32_t first,
                             std::uint64_t target);
  template <typename F>
  static bool any_newest_first(Part& part, F is);
  template <typename F>
  static bool end_products(const Op* op, Warp& warp, Part& part, F touched);
  static bool operands_are_the_same(Warp& warp, const PendingProduct& product);
  static bool operands_are_the_same(const Warp& warp, const Warpgroup& group, std::uint64_t target);

  std::uint32_t warps_ = 0;
  std::vector<Warpgroup> groups_;  ///< empty until one is asked for
};

/// In front of an instruction that touches registers of products: sources a and b are lists of
/// those that it reads and writes (Op::imm and imm2 of them); with flags 1 or 2 only where
/// predicate c holds or does not.
const Op* check_flight(const Op* op, Warp& warp);
const Op* commit_products(const Op* op, Warp& warp);
const Op* wait_for_products(const Op* op, Warp& warp);

}  // namespace kernwright::sim
