// Moving content to the host and back, and the order in which it goes.
#include "memory/evictable_buffer.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "memory/pinned_buffer.h"
#include "memory/reclaim.h"
#include "memory/transfer.h"

#include <atomic>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright {
namespace {

/// Reclaims during which restored content goes after other content of its class.
constexpr std::uint64_t kSettledReclaims = 8;
/// Smaller content is copied as fast from pageable memory.
constexpr std::size_t kLeastPinned = std::size_t{64} << 10;

/// Content on the host.
class HostContent {
 public:
  /// Throws std::bad_alloc.
  HostContent(Device& device, std::size_t bytes) {
    if (bytes >= kLeastPinned) {
      try {
        const NoReclaim alone;  // a queue that moves content must not be asked for more
        pinned_ = PinnedBuffer(device, bytes);
        return;
      } catch (const OutOfMemory&) {
        // Pageable memory may still be there.
      }
    }
    pageable_ = std::make_unique_for_overwrite<unsigned char[]>(bytes);
  }
  void* data() const noexcept { return pageable_ ? pageable_.get() : pinned_.data(); }

 private:
  PinnedBuffer pinned_;
  std::unique_ptr<unsigned char[]> pageable_;
};

thread_local std::shared_ptr<EvictionGroup> thread_group;

}  // namespace

EvictionScope::EvictionScope(std::shared_ptr<EvictionGroup> group) noexcept
    : former_(std::exchange(thread_group, std::move(group))) {}
EvictionScope::~EvictionScope() { thread_group = std::move(former_); }

bool EvictionGroup::is_evictable() const noexcept {
  switch (eviction_class()) {
    case EvictionClass::best_effort:
      return true;
    case EvictionClass::burstable:
      return resident() > request();
    case EvictionClass::guaranteed:
      break;
  }
  return false;
}

/// Buffers of a device, present and not pinned, the least recently used first. NOTE: lock order: a
/// buffer's mutex, then the queue's. Code that comes from the queue only tries the buffer's.
class EvictableBuffer::Queue final : public Reclaimer {
 public:
  using List = std::list<std::weak_ptr<State>>;

  /// The queue of the device, kept for good.
  static Queue& get(Device& device);
  Device& device() const override { return device_; }
  int reclaim_order() const noexcept override { return 1; }
  std::size_t reclaim(std::size_t bytes) override;

  /// The number of reclaims so far.
  std::uint64_t reclaims() const noexcept { return reclaims_.load(std::memory_order_relaxed); }

  /// Moves the only element of `entry` to the end of the queue, or back.
  void enter(List& entry) noexcept {
    const std::lock_guard lock(mutex_);
    list_.splice(list_.end(), entry);
  }
  void leave(List& entry, List::iterator at) noexcept {
    const std::lock_guard lock(mutex_);
    entry.splice(entry.end(), list_, at);
  }

 private:
  explicit Queue(Device& device) : device_(device) { register_reclaimer(*this); }
  std::pair<std::shared_ptr<State>, std::unique_lock<std::mutex>> choose(
      const EvictionGroup* group);

  Device& device_;
  std::atomic<std::uint64_t> reclaims_{0};
  std::mutex mutex_;
  List list_;
};

struct EvictableBuffer::State {
  State(std::shared_ptr<MemoryResource> from, std::size_t size, Stream on,
        std::shared_ptr<EvictionGroup> owner)
      : resource(std::move(from)),
        bytes(size),
        stream(std::move(on)),
        group(std::move(owner)),
        queue(Queue::get(resource->device())) {}
  ~State() {
    if (queued) queue.leave(entry, position);
    if (buffer != nullptr) leave_device();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // All with `mutex` held.
  void enqueue() noexcept {
    queue.enter(entry);
    queued = true;
  }
  void dequeue() noexcept {
    if (queued) queue.leave(entry, position);
    queued = false;
  }
  void move_to_host();
  void move_to_device();
  void arrive(std::shared_ptr<Buffer> made) noexcept {
    buffer = std::move(made);
    if (group != nullptr) group->arrive(bytes);
  }
  void leave_device() noexcept {
    buffer.reset();
    if (group != nullptr) group->leave(bytes);
  }
  /// Content of a lower rank goes first; nothing for content that must stay. With no lock held.
  std::optional<int> rank() const noexcept;
  void tell_moved() const noexcept;

  const std::shared_ptr<MemoryResource> resource;
  const std::size_t bytes;
  const Stream stream;
  const std::shared_ptr<EvictionGroup> group;
  Queue& queue;
  std::atomic<std::uint64_t> restored{0};  ///< 1 + reclaims() when it came back; 0: never
  std::mutex mutex;
  LaunchSite site;
  std::shared_ptr<Buffer> buffer;      ///< while on the device
  std::optional<HostContent> content;  ///< while on the host
  std::size_t pins = 0;
  bool queued = false;
  Queue::List entry;  ///< this buffer's node while it is not in the queue
  Queue::List::iterator position;
};

EvictableBuffer::Queue& EvictableBuffer::Queue::get(Device& device) {
  struct Queues {
    std::mutex mutex;
    std::map<const Device*, std::unique_ptr<Queue>> by_device;
  };
  static auto* const queues = new Queues;  // leaked on purpose: buffers may outlive static objects
  const std::lock_guard lock(queues->mutex);
  auto& queue = queues->by_device[&device];
  if (queue == nullptr) queue.reset(new Queue(device));
  return *queue;
}

std::optional<int> EvictableBuffer::State::rank() const noexcept {
  if (group != nullptr && !group->is_evictable()) return std::nullopt;
  const std::uint64_t back = restored.load(std::memory_order_relaxed);
  const bool is_recent = back != 0 && queue.reclaims() - (back - 1) <= kSettledReclaims;
  const bool is_second = group != nullptr && group->eviction_class() != EvictionClass::best_effort;
  return (is_second ? 2 : 0) + (is_recent ? 1 : 0);
}

/// Of those of the group (null: of any) that are not locked the first of the lowest rank; locks it.
std::pair<std::shared_ptr<EvictableBuffer::State>, std::unique_lock<std::mutex>>
EvictableBuffer::Queue::choose(const EvictionGroup* group) {
  // The last reference to a buffer must not go while the queue is locked.
  std::vector<std::shared_ptr<State>> seen;
  std::pair<std::shared_ptr<State>, std::unique_lock<std::mutex>> best;
  int lowest = std::numeric_limits<int>::max();
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<State>& entry : list_) {
    std::shared_ptr<State> state = entry.lock();
    if (state == nullptr || (group != nullptr && state->group.get() != group)) continue;
    const std::optional<int> rank = state->rank();
    if (rank && *rank < lowest) {
      std::unique_lock<std::mutex> busy(state->mutex, std::try_to_lock);
      if (busy) {
        lowest = *rank;
        std::swap(best.second, busy);
        std::swap(best.first, state);
        if (busy) busy.unlock();
      }
    }
    if (state != nullptr) seen.push_back(std::move(state));
    if (lowest == 0) break;
  }
  return best;
}

std::size_t EvictableBuffer::Queue::reclaim(std::size_t bytes) {
  reclaims_.fetch_add(1, std::memory_order_relaxed);
  std::size_t given = 0;
  std::shared_ptr<EvictionGroup> whole;  // the group that moves as one
  while (given < bytes || whole != nullptr) {
    auto [state, busy] = choose(whole.get());
    if (state == nullptr && whole == nullptr) break;
    if (state == nullptr) {
      whole.reset();
      continue;
    }
    if (state->group != nullptr && state->group->is_whole()) whole = state->group;
    try {
      state->move_to_host();
    } catch (const std::bad_alloc&) {
      break;  // the host has no memory either
    }
    given += state->bytes;
    busy.unlock();
    state->tell_moved();
  }
  return given;
}

void EvictableBuffer::State::move_to_host() {
  Device& device = resource->device();
  HostContent copy(device, bytes);
  buffer->order_after_users();
  copy_to_host(device, copy.data(), buffer->address(), bytes, stream);
  if (stream) stream.synchronize();
  dequeue();
  content.emplace(std::move(copy));
  leave_device();
  resource->note_eviction();
}

/// With no lock held: a sink of the log may wait for any.
void EvictableBuffer::State::tell_moved() const noexcept {
  log(LogLevel::info, "moved {} bytes from {}:{} to the host", bytes,
      resource->device().is_simulated() ? "sim" : "cuda", resource->device().ordinal());
}

void EvictableBuffer::State::move_to_device() {
  auto made = std::make_shared<Buffer>(resource, bytes, stream, site);
  copy_to_device(resource->device(), made->address(), content->data(), bytes, stream);
  if (stream) stream.synchronize();
  arrive(std::move(made));
  restored.store(queue.reclaims() + 1, std::memory_order_relaxed);
  content.reset();
}

EvictableBuffer::EvictableBuffer(std::shared_ptr<MemoryResource> resource, std::size_t bytes,
                                 Stream stream, const LaunchSite& site,
                                 std::shared_ptr<EvictionGroup> group) {
  if (group == nullptr) group = thread_group;
  if (resource == nullptr) throw InvalidArgument("an evictable buffer needs a resource");
  auto buffer = std::make_shared<Buffer>(resource, bytes, stream, site);
  state_ = std::make_shared<State>(std::move(resource), bytes, std::move(stream), std::move(group));
  state_->site = site;
  state_->arrive(std::move(buffer));
  state_->entry.push_back(state_);
  state_->position = state_->entry.begin();
  if (bytes != 0) state_->enqueue();
}

EvictableBuffer::~EvictableBuffer() = default;

std::size_t EvictableBuffer::bytes() const noexcept { return state_->bytes; }

Device& EvictableBuffer::device() const { return state_->resource->device(); }

bool EvictableBuffer::is_resident() const {
  const std::lock_guard lock(state_->mutex);
  return state_->buffer != nullptr;
}

bool EvictableBuffer::is_pinned() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pins != 0;
}

const std::shared_ptr<EvictionGroup>& EvictableBuffer::group() const noexcept {
  return state_->group;
}

EvictableBuffer::Pin EvictableBuffer::pin() {
  const std::lock_guard lock(state_->mutex);
  if (state_->buffer == nullptr) state_->move_to_device();
  state_->dequeue();
  ++state_->pins;
  return Pin(state_, state_->buffer);
}

bool EvictableBuffer::evict() {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->pins != 0 || state_->buffer == nullptr || state_->bytes == 0) return false;
    state_->move_to_host();
  }
  state_->tell_moved();
  return true;
}

EvictableBuffer::Pin::~Pin() { release(); }

EvictableBuffer::Pin& EvictableBuffer::Pin::operator=(Pin&& other) noexcept {
  if (this == &other) return *this;
  release();
  state_ = std::move(other.state_);
  buffer_ = std::move(other.buffer_);
  return *this;
}

void EvictableBuffer::Pin::release() noexcept {
  if (state_ == nullptr) return;
  buffer_.reset();
  {
    const std::lock_guard lock(state_->mutex);
    if (--state_->pins == 0 && state_->bytes != 0) state_->enqueue();
  }
  state_.reset();
}

}  // namespace kernwright
