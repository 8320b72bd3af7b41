// Drawn cases of a task, kept for the next judgement by the same task and seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace kernwright {

struct HostCase;
using CaseRef = std::shared_ptr<const HostCase>;

/// At most 128 cases and `limit` bytes of arrays; the longest unused go. Thread-safe.
class DrawnCases {
 public:
  explicit DrawnCases(std::size_t limit = std::size_t{256} << 20) : limit_(limit) {}

  /// The case, by `draw` where it is not there. Several threads may draw the same one.
  CaseRef get(std::uint64_t seed, int number, const std::function<CaseRef()>& draw);
  /// Bytes of the kept arrays.
  std::size_t bytes() const;

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::list<CaseRef> cases_;  ///< the last used first
  std::size_t bytes_ = 0;
};

}  // namespace kernwright
