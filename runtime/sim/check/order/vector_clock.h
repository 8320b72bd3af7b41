// Vector clocks: what is known to have happened before what.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// Whoever does things in an order of its own: a stream, or the host.
using Actor = std::uint32_t;

/// For each actor, how many of its steps are known to be over. An actor that is not named: none.
class VectorClock {
 public:
  std::uint64_t of(Actor actor) const noexcept;
  /// One more step of `actor`; returns its number.
  std::uint64_t advance(Actor actor) { return ++step_of(actor); }
  /// Learns all that `other` knows.
  void join(const VectorClock& other);
  /// Knows of no step at all.
  bool empty() const noexcept { return steps_.empty(); }

 private:
  std::uint64_t& step_of(Actor actor);

  std::vector<std::pair<Actor, std::uint64_t>> steps_;  // by actor
};

}  // namespace kernwright::sim
