// The order of copies of several classes in one direction.
#pragma once

#include "memory/transfer_engine.h"

#include <mutex>
#include <optional>
#include <vector>

namespace kernwright {

/// Copies in flight of one direction, by class. Thread-safe.
class TransferPacer {
 public:
  /// A copy of the class was asked for; it can use the bus once `after` has passed.
  void enter(TransferClass kind, Transfer transfer, std::optional<Event> after);
  /// Blocks the host while a copy of a higher class uses the bus. Copies that still wait for work
  /// of a stream are no reason to wait.
  void wait_turn(TransferClass kind);
  /// The same question without waiting.
  bool is_turn(TransferClass kind);
  /// Forgets all copies and their events: at the end of the engine, whose threads may keep this.
  void clear() noexcept;

 private:
  struct Entry {
    TransferClass kind;
    Transfer transfer;
    std::optional<Event> after;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace kernwright
