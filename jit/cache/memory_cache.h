// Object code compiled earlier in this process: least recently used, bounded, one compile per key.
#pragma once

#include "base/sha256.h"
#include "jit/object_code.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace kernwright {

struct MemoryCacheStats {
  std::uint64_t hits = 0;    ///< answered from memory, or by a compile that was under way
  std::uint64_t misses = 0;  ///< compiles begun
  std::uint64_t evictions = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

/// Thread-safe. Different keys are made in parallel; a second caller for the same key waits for the
/// first.
class MemoryCache {
 public:
  using Code = std::shared_ptr<const ObjectCode>;

  /// An entry larger than `max_bytes` is handed out and not kept.
  MemoryCache(std::size_t max_entries, std::size_t max_bytes);
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  /// The entry of `key`, made by `make` if there is none. An exception of `make` reaches every
  /// caller waiting for this attempt. It is not kept: the next call tries again. Timeout, Cancelled
  /// and Interrupted concern one caller alone: another waiting caller then makes the entry. A wait
  /// ends at this thread's WaitLimits with the exception of check_wait(). `make` runs with no lock
  /// held; it must not ask for the same key again.
  Code get(const Sha256Digest& key, const std::function<ObjectCode()>& make);

  /// Forgets the entry of `key`.
  void erase(const Sha256Digest& key);

  MemoryCacheStats stats() const;
  /// Forgets all entries; entries in the making still reach their callers.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
