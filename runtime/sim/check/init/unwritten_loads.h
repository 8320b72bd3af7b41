// Lanes' unwritten loaded values, until it is known whether they are used.
#pragma once

#include "sim/exec/warp/memory_site.h"
#include "sim/ptx/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace kernwright::sim {

/// The reads of a warp's lanes by one load in one frame.
struct UnwrittenLoad {
  std::uint32_t lanes = 0;
  std::uint32_t partly = 0;                  ///< those who read written bytes too
  std::uint32_t padded = 0;                  ///< those who may have read an object with padding
  std::array<std::uint64_t, kLanes> bits{};  ///< of the unwritten bytes in their loads
  std::array<std::uint64_t, kLanes> address{};
  std::array<std::uint8_t, kLanes> bytes{};
  std::array<ptx::Space, kLanes> space{};
};

/// The unwritten loads of a block.
class UnwrittenLoads {
 public:
  using Key = std::pair<const std::byte*, std::uint32_t>;  ///< a frame and the index of the load

  bool any() const noexcept { return open_ != 0; }
  /// Null where there is none.
  const UnwrittenLoad* find(const Key& key) const {
    const auto known = all_.find(key);
    return known == all_.end() ? nullptr : &known->second;
  }
  /// The known facts about the load. It has the lane from now on, with no finding yet.
  UnwrittenLoad& add(const Key& key, std::uint32_t lane) {
    if (last_ == nullptr || last_->first != key) last_ = &*all_.try_emplace(key).first;
    UnwrittenLoad& load = last_->second;
    if (load.lanes == 0) ++open_;
    load.lanes |= 1u << lane;
    load.partly &= ~(1u << lane);
    load.padded &= ~(1u << lane);
    load.bits[lane] = 0;
    return load;
  }
  /// These lanes load anew. The entry stays for the next time.
  void forget(const Key& key, std::uint32_t lanes) {
    const auto known = all_.find(key);
    if (known == all_.end() || (known->second.lanes & lanes) == 0) return;
    known->second.lanes &= ~lanes;
    if (known->second.lanes == 0) --open_;
  }
  void clear() {
    all_.clear();
    last_ = nullptr;
    open_ = 0;
  }

 private:
  std::map<Key, UnwrittenLoad> all_;
  std::pair<const Key, UnwrittenLoad>* last_ = nullptr;
  std::size_t open_ = 0;  ///< those with lanes
};

}  // namespace kernwright::sim
