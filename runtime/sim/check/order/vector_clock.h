// Vector clocks: knowledge of the order of events.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// Whoever does things in an order of its own: a stream, or the host.
using Actor = std::uint32_t;

/// For each actor, the number of its steps known to be over. An absent actor: none.
class VectorClock {
 public:
  std::uint64_t at(Actor actor) const noexcept;
  /// One more step of `actor`; returns its number.
  std::uint64_t advance(Actor actor) { return ++ensure_step(actor); }
  /// Adds the knowledge of `other`.
  void join(const VectorClock& other);
  /// Knows of no step at all.
  bool empty() const noexcept { return steps_.empty(); }

 private:
  std::uint64_t& ensure_step(Actor actor);

  std::vector<std::pair<Actor, std::uint64_t>> steps_;  // by actor
};

}  // namespace kernwright::sim
