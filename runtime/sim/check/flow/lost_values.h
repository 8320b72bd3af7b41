// Values of shuffles that come from lanes outside the mask, and their uses.
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

/// Those of a block; sets `slow` while there are any.
class LostValues {
 public:
  LostValues(const BlockPlace& place, BlockFindings& findings, SlowPath& slow)
      : place_(place), findings_(findings), slow_(slow) {}

  void clear();
  /// The warp's active lanes have done a shuffle. Needed where some source is lost, or others are.
  void shuffle(const Op* op, const Warp& warp, const ShuffleSources& read);
  /// The op copies, chooses or uses what shuffles gave, if it does.
  void follow(const Op* op, const Warp& warp);

 private:
  /// A frame and FlowStep::source.
  using Key = std::pair<const std::byte*, std::uint32_t>;
  /// Lanes whose value comes from a shuffle that read from nobody.
  struct Value {
    std::uint32_t lanes = 0;
    std::array<LostSource, kLanes> from;

    void add(int lane, const LostSource& source) {
      lanes |= 1u << lane;
      from[static_cast<std::size_t>(lane)] = source;
    }
  };

  const FlowStep* step_of(std::uint32_t op) const;
  const LostSource* find(const Warp& warp, const std::vector<std::uint32_t>& sources,
                         int lane) const;
  void put(const Warp& warp, std::uint32_t source, const Value& value);

  const BlockPlace& place_;
  BlockFindings& findings_;
  SlowPath& slow_;
  std::map<Key, Value> all_;
};

}  // namespace kernwright::sim
