// One access as the race check looks at it.
#pragma once

#include "sim/check/checked_program.h"
#include "sim/check/history/shadow.h"
#include "sim/check/race/touch.h"
#include "sim/exec/warp/warp.h"

#include <cstdint>

namespace kernwright::sim {

/// A report's data about the current access.
struct WordAccess {
  const Op* op;
  Warp& warp;
  int lane;
  const LaneTouch& touch;
  const CheckedOp& info;
  bool global;
  bool mixed;               ///< the shadows may be other blocks'
  Shadow tag;               ///< stamp of this access, without bytes
  std::uint64_t word = 0;   ///< of the space or region
  std::uint64_t begin = 0;  ///< address of the word
  bool is_late = false;     ///< it is told of after others have written

  /// An atomic operation; not the read of a bulk reduction's operand.
  bool is_strong() const noexcept {
    return info.strong && (touch.mode != AccessKind::read || info.kind == CheckKind::load);
  }
};

/// How an access takes part in races.
struct Conduct {
  bool reads = false, strong = false, is_volatile = false, swaps = false;
  Reach reach = Reach::device;
};

/// A report's knowledge of the other access.
enum class Told : std::uint8_t { itself, several, hidden };

/// The missing event between two accesses.
enum class Missing : std::uint8_t { order, wait, proxy_fence, map_fence };

}  // namespace kernwright::sim
