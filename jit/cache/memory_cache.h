// Object code that this process compiled already: least recently used, bounded, one compile per
// key.
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

/// Thread-safe. Different keys are made in parallel; a second caller of a key that is being made
/// waits for the first.
class MemoryCache {
 public:
  using Code = std::shared_ptr<const ObjectCode>;

  /// An entry larger than `max_bytes` is handed out and not kept.
  MemoryCache(std::size_t max_entries, std::size_t max_bytes);
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  /// The entry of `key`, made by `make` when there is none. What `make` throws is thrown to every
  /// caller that waited for this attempt and is not kept: the next call tries again. After a
  /// Timeout, Cancelled or Interrupted, which concern one caller alone, one that waited makes it.
  /// A wait ends at this thread's WaitLimits, throwing what check_wait() throws.
  /// `make` runs with no lock held; it must not ask for the same key again.
  Code get(const Sha256Digest& key, const std::function<ObjectCode()>& make);

  /// Forgets the entry of `key`.
  void erase(const Sha256Digest& key);

  MemoryCacheStats stats() const;
  /// Forgets all entries; what is being made at the moment is still delivered.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
