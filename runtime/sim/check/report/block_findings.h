// Findings of a block's checks, reported once for each place of the program.
#pragma once

#include "sim/check/block_place.h"
#include "sim/check/flow/shuffle_flow.h"
#include "sim/check/race/access.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace kernwright::sim {

/// Two racing accesses. `other_wrote` is false for a read.
struct RacePair {
  const WordAccess& access;
  Shadow other = 0;
  bool other_wrote = false;
  Missing missing = Missing::order;
  Told told = Told::itself;
  std::uint32_t tick = 0;  ///< of the access
};

/// The last access of a warp to another block's shared memory.
struct Visit {
  BlockCheck* visitor = nullptr;
  const Warp* warp = nullptr;
  std::uint32_t tick = 0, op = 0;
  int lane = 0;
  LaneTouch touch;
};

class BlockFindings {
 public:
  explicit BlockFindings(const BlockPlace& place) : place_(place) {}

  /// Gives all to the launch.
  void hand_over() { place_.launch.collect(found_); }
  std::size_t size() const noexcept { return found_.size(); }

  void race(const RacePair& race);
  /// `bits`: the unwritten bytes of the access.
  void uninitialised(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                     std::uint64_t bits);
  /// The other block, at `ctaid`, may be over (`begun`), or it may not have begun.
  void stray(const Visit& visit, const std::array<std::uint32_t, 3>& ctaid, bool begun);
  /// Threads wait at different barriers of the program for each other.
  void divergence(const Op* op, const Warp& warp, int lane, std::uint32_t first_op,
                  std::uint32_t first_thread);
  /// The op touches a register of the wgmma at `product`; `what` names the register.
  void product(const Op* op, const Warp& warp, std::string what, std::uint32_t product);
  /// Member masks of meeting lanes that do not agree.
  void members(const Op* op, const Warp& warp, const std::uint32_t* members);
  /// A use of a shuffled value from no lane.
  void lost(const Op* op, const Warp& warp, int lane, const LostSource& from);

 private:
  /// First part of a key, in the order of a launch's findings.
  enum class Kind : std::uint64_t {
    race = 2,
    divergence = 3,
    uninitialised = 4,
    stray = 5,
    product = 7,
    members = 8,
    lost = 9,
  };
  static std::uint64_t encode(Kind kind, std::uint64_t which) {
    return static_cast<std::uint64_t>(kind) << 60 | which;
  }
  static std::uint64_t pair(std::uint32_t first, std::uint32_t second) {
    return std::uint64_t{first} << 28 | second;
  }

  Finding describe(const Op* op, const Warp& warp, int lane, FaultKind kind,
                   std::string what) const;
  /// The other access or barrier, at this op of this block.
  OtherAccess describe_other(std::uint32_t op, std::string what,
                             const std::array<unsigned, 3>& thread) const;
  /// Counts a known finding. False: it is unknown, or it is of a narrower race.
  bool seen(std::uint64_t key, Breadth breadth = Breadth::none);
  void keep(std::uint64_t key, Finding&& finding);
  void report_members(const Op* op, const Warp& warp, int lane, int other,
                      const std::uint32_t* members);

  const BlockPlace& place_;
  CheckedLaunch::Found found_;
};

}  // namespace kernwright::sim
