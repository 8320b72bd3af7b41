// The flow of shuffles' values to their users.
#pragma once

#include "sim/exec/warp/memory_site.h"
#include "sim/ptx/ast.h"

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

enum class FlowRole : std::uint8_t {
  shuffle,  ///< lanes get values of others
  choice,   ///< selp: from `values` where its predicate holds, else from `others`
  merge,    ///< anything else that writes to a register with several writers, or reads one
  use,      ///< memory, or an operation of the warp, gets the values
};

/// An instruction on the way of shuffles' values. A source is the index of an instruction: the
/// first to write to a register with several writers, or a shuffle, a choice or a reader of such a
/// register with a register of its own. Between sources and this one lies arithmetic of each lane
/// by itself.
struct FlowStep {
  FlowRole role = FlowRole::use;
  std::uint32_t source = 0;  ///< as which its result is known; of all but uses
  std::vector<std::uint32_t> values, others;
};

/// By index into Function::body; without instructions out of reach of any shuffle's value. `is_op`
/// tells the instructions with their own ops. Values in predicates, calls, local memory and generic
/// addresses are not followed: no false use is reported.
std::unordered_map<std::uint32_t, FlowStep> find_shuffle_flow(
    const ptx::Function& function, const std::function<bool(std::uint32_t)>& is_op);

/// The sources of a warp's shfl.sync.
struct ShuffleSources {
  alignas(64) std::array<std::int32_t, kLanes> from;      ///< lanes; their own for those outside
  alignas(64) std::array<std::uint32_t, kLanes> members;  ///< masks
  std::uint32_t lost = 0;  ///< active lanes whose source is not active or not in their mask
};

/// The origin of a shuffled value from an absent lane.
struct LostSource {
  std::uint32_t op = 0;  ///< the shuffle
  std::int8_t reader = 0, lane = 0;
  bool is_member = false;     ///< the reader's mask names the lane
  std::uint32_t members = 0;  ///< that mask
};

}  // namespace kernwright::sim
