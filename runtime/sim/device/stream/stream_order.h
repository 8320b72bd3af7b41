// Finds unordered accesses to the same bytes: streams without an event between.
//
// Each stream and the host is an actor with a vector clock. Order is known when work is issued, and
// the touched bytes when it has run. It is a finding if two pieces of work touched the same bytes,
// one of them not only reading (or not only atomically), while neither happened before the other.
// The order in which they happened to run does not matter.
#pragma once

#include "base/fault.h"
#include "sim/check/order/vector_clock.h"
#include "sim/exec/warp/access_log.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::sim {

struct Context;
struct Stream;

/// The author of an access, for findings.
struct OrderedWork {
  std::string name;  ///< "kernel saxpy"
  std::string stream;
  Actor actor = 0;
  std::uint64_t step = 0;
  VectorClock clock;
  bool is_order = false;  ///< see OrderScope
};

/// Thread-safe. Every function does nothing while the check is off.
class StreamOrder {
 public:
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// Forgets everything, whether it turns the check on or off.
  void enable(bool on);

  /// Work is put into `stream`: it comes after the stream's earlier work, after the host's waits,
  /// and, depending on the streams' kinds, after the default stream's or all blocking ones'.
  VectorClock issue(Context& context, Stream& stream, Actor* actor, std::uint64_t* step);
  /// Further work of `stream` comes after everything known to `clock`.
  void stream_learns(Stream& stream, const VectorClock& clock);
  /// The host waited for everything known to `clock`.
  void host_learns(const VectorClock& clock);
  void host_learns(Stream& stream);
  void host_learns(Context& context, bool blocking_only);
  VectorClock stream_clock(Stream& stream);
  /// The stream's handle is gone.
  void retire(Stream& stream);

  /// `work` touched `touched`. `settled`: no issued work is still waiting, so the host's knowledge
  /// can be forgotten. Returns the first conflict.
  std::optional<Fault> note(const std::shared_ptr<const OrderedWork>& work,
                            const std::vector<Touched>& touched, bool settled);
  /// An allocation begins or ends without regard to streams.
  void forget(std::uint64_t address);

 private:
  struct Entry {
    std::shared_ptr<const OrderedWork> work;
    std::vector<Touched> touched;  // by kind, then address
  };
  void drop_known(std::vector<Entry>& entries) const;
  void sweep();

  std::atomic<bool> on_{false};
  std::mutex mutex_;  // guards the rest, and the clocks of streams and contexts
  VectorClock host_;
  Actor next_actor_ = 1;
  struct Retired {
    Actor actor;
    std::uint64_t steps;
  };
  std::vector<Retired> retired_;
  std::map<std::uint64_t, std::vector<Entry>> entries_;  // by first byte of the allocation
  std::size_t notes_ = 0;
};

}  // namespace kernwright::sim
