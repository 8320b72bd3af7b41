// An LRU list beside a table of attempts under way.
#include "jit/cache/memory_cache.h"

#include <condition_variable>
#include <exception>
#include <list>
#include <map>
#include <mutex>

#include "jit/compile/compile_wait.h"

namespace kernwright {
namespace {

struct Entry {
  Sha256Digest key;
  MemoryCache::Code code;
  std::size_t bytes = 0;
};

/// One call of `make`; waiters hold it alive.
struct Attempt {
  bool is_done = false;
  MemoryCache::Code code;
  std::exception_ptr error;
};

/// Whether an attempt failed only because nobody waited for it any more.
bool ended_early(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Timeout&) {
    return true;
  } catch (const Cancelled&) {
    return true;
  } catch (const Interrupted&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::size_t size_of(const ObjectCode& code) {
  return sizeof(ObjectCode) + code.code.size() + code.resource_cubin.size() + code.log.size();
}

}  // namespace

struct MemoryCache::State {
  State(std::size_t entry_limit, std::size_t byte_limit)
      : max_entries(entry_limit), max_bytes(byte_limit) {}

  /// The caller holds the mutex.
  Code find(const Sha256Digest& key) {
    const auto found = index.find(key);
    if (found == index.end()) return nullptr;
    entries.splice(entries.begin(), entries, found->second);
    return found->second->code;
  }

  /// The caller holds the mutex.
  void store(const Sha256Digest& key, const Code& code) {
    const std::size_t size = size_of(*code);
    if (size > max_bytes || max_entries == 0 || index.contains(key)) return;
    while (!entries.empty() && (entries.size() >= max_entries || bytes + size > max_bytes)) {
      bytes -= entries.back().bytes;
      index.erase(entries.back().key);
      entries.pop_back();
      ++evictions;
    }
    entries.push_front({key, code, size});
    index[key] = entries.begin();
    bytes += size;
  }

  /// Until the attempt is done, or throws when this thread shall wait no longer.
  void wait_for(std::unique_lock<std::mutex>& lock, const Attempt& attempt) {
    const WaitLimits limits = current_wait_limits();
    while (!changed.wait_for(lock, kWaitSlice, [&] { return attempt.is_done; })) {
      lock.unlock();
      check_wait(limits, "waiting for a kernel that another thread compiles");
      lock.lock();
    }
  }

  const std::size_t max_entries;
  const std::size_t max_bytes;
  std::mutex mutex;
  std::condition_variable changed;
  std::list<Entry> entries;  ///< most recently used first
  std::map<Sha256Digest, std::list<Entry>::iterator> index;
  std::map<Sha256Digest, std::shared_ptr<Attempt>> attempts;
  std::size_t bytes = 0;
  std::uint64_t hits = 0, misses = 0, evictions = 0;
};

MemoryCache::MemoryCache(std::size_t max_entries, std::size_t max_bytes)
    : state_(std::make_unique<State>(max_entries, max_bytes)) {}

MemoryCache::~MemoryCache() = default;

MemoryCache::Code MemoryCache::get(const Sha256Digest& key,
                                   const std::function<ObjectCode()>& make) {
  const auto attempt = std::make_shared<Attempt>();
  {
    std::unique_lock lock(state_->mutex);
    while (true) {
      if (Code code = state_->find(key)) {
        ++state_->hits;
        return code;
      }
      const auto found = state_->attempts.find(key);
      if (found == state_->attempts.end()) break;
      const std::shared_ptr<Attempt> other = found->second;
      state_->wait_for(lock, *other);
      if (!other->error) {
        ++state_->hits;
        return other->code;
      }
      // The other thread's limits do not apply to this one.
      if (!ended_early(other->error)) std::rethrow_exception(other->error);
    }
    state_->attempts[key] = attempt;
    ++state_->misses;
  }
  Code code;
  std::exception_ptr error;
  try {
    code = std::make_shared<const ObjectCode>(make());
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(state_->mutex);
  state_->attempts.erase(key);
  attempt->is_done = true;
  attempt->code = code;
  attempt->error = error;
  state_->changed.notify_all();
  if (error) std::rethrow_exception(error);
  state_->store(key, code);
  return code;
}

void MemoryCache::erase(const Sha256Digest& key) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->index.find(key);
  if (found == state_->index.end()) return;
  state_->bytes -= found->second->bytes;
  state_->entries.erase(found->second);
  state_->index.erase(found);
}

MemoryCacheStats MemoryCache::stats() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->hits, state_->misses, state_->evictions, state_->entries.size(), state_->bytes};
}

void MemoryCache::clear() {
  const std::lock_guard lock(state_->mutex);
  state_->entries.clear();
  state_->index.clear();
  state_->bytes = 0;
}

}  // namespace kernwright
