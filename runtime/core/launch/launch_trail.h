// The streams in use by launches, and the objects to keep alive until those are done.
#pragma once

#include "core/event.h"
#include "core/stream.h"

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace kernwright {

/// Objects held only to keep them alive.
using KeptObjects = std::vector<std::shared_ptr<const void>>;

/// Streams with launches of one thing in flight. Not synchronised; device contexts must be current.
/// On streams of our own and on the legacy stream a launch costs nothing here: they can be asked
/// later. Others may be destroyed by their owner, and cost an event.
class LaunchTrail {
 public:
  /// Something was queued on `stream`, which is not empty.
  void note(const Stream& stream);
  /// Later work of `stream` waits for the launches so far on other streams.
  void order(const Stream& stream) const;
  /// Holds `objects` until the launches so far are done; when there were none they are appended to
  /// `released`, for the caller to drop.
  void hold(KeptObjects objects, KeptObjects& released);
  /// Appends the objects that no launch uses any more. Never blocks.
  void take_released(KeptObjects& released);
  /// Waits for the launches behind held objects, then drops those. If a stream records a graph at
  /// this moment and cannot be waited for, they go to the end of that capture.
  void wait_and_release();

 private:
  struct User {
    Stream stream;
    std::thread::id thread;  ///< that the per-thread stream belongs to
    std::optional<Event> last_use;
  };
  struct Held {
    std::vector<User> users;
    std::optional<std::vector<Event>> events;  ///< once they could be recorded
    KeptObjects objects;
  };
  static std::optional<std::vector<Event>> mark(const std::vector<User>& users);
  static void release(Held held);

  std::vector<User> users_;
  std::vector<Held> held_;
};

}  // namespace kernwright
