// Reasons for the slow path of the checks. Handlers ask for them before each access.
#pragma once

#include <cstdint>

namespace kernwright::sim {

class SlowPath {
 public:
  /// Another warp may run before an access; lanes hold what nobody wrote, or what a shuffle lost.
  enum Reason : std::uint8_t { kPauses = 1, kUnwritten = 2, kLost = 4 };

  void set(Reason reason, bool is_so) noexcept {
    reasons_ = static_cast<std::uint8_t>(is_so ? reasons_ | reason : reasons_ & ~reason);
  }
  bool any() const noexcept { return reasons_ != 0; }
  bool pauses() const noexcept { return (reasons_ & kPauses) != 0; }
  /// What lanes hold has to be followed.
  bool follows() const noexcept { return (reasons_ & (kUnwritten | kLost)) != 0; }

 private:
  std::uint8_t reasons_ = 0;
};

}  // namespace kernwright::sim
