// Values of shuffles from lanes outside the mask, and their uses.
#pragma once

#include "sim/check/flow/shuffle_flow.h"
#include "sim/check/report/block_findings.h"
#include "sim/check/slow_path.h"
#include "sim/exec/warp/warp.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// The lost values of a block. Sets `slow` while there are any.
class LostValues {
 public:
  LostValues(const BlockPlace& place, BlockFindings& findings, SlowPath& slow)
      : place_(place), findings_(findings), slow_(slow) {}

  void clear();
  /// The warp's active lanes have done a shuffle. Needed where some source is lost, or others are.
  void shuffle(const Op* op, const Warp& warp, const ShuffleSources& read);
  /// Follows an op that copies, chooses or uses shuffled values.
  void follow(const Op* op, const Warp& warp);

 private:
  /// A frame and FlowStep::source.
  using Key = std::pair<const std::byte*, std::uint32_t>;
  /// Lanes with a value of a shuffle that read from no lane.
  struct Value {
    std::uint32_t lanes = 0;
    std::array<LostSource, kLanes> from;

    void add(int lane, const LostSource& source) {
      lanes |= 1u << lane;
      from[static_cast<std::size_t>(lane)] = source;
    }
  };

  const FlowStep* find_step(std::uint32_t op) const;
  const LostSource* find(const Warp& warp, const std::vector<std::uint32_t>& sources,
                         int lane) const;
  void put(const Warp& warp, std::uint32_t source, const Value& value);

  const BlockPlace& place_;
  BlockFindings& findings_;
  SlowPath& slow_;
  std::map<Key, Value> all_;
};

}  // namespace kernwright::sim
