// Why a glance at an access is not enough, as handlers ask before each.
#pragma once

#include <cstdint>

namespace kernwright::sim {

class Doubts {
 public:
  /// kPauses: another warp may run before an access, at random. kUnwritten: lanes hold unwritten
  /// values and may not want them. kLost: lanes hold a shuffle's value from no lane.
  enum What : std::uint8_t { kPauses = 1, kUnwritten = 2, kLost = 4 };

  void set(What what, bool is_so) noexcept {
    what_ = static_cast<std::uint8_t>(is_so ? what_ | what : what_ & ~what);
  }
  bool any() const noexcept { return what_ != 0; }
  bool pauses() const noexcept { return (what_ & kPauses) != 0; }
  /// Whether values of lanes must be followed.
  bool follows() const noexcept { return (what_ & (kUnwritten | kLost)) != 0; }

 private:
  std::uint8_t what_ = 0;
};

}  // namespace kernwright::sim
