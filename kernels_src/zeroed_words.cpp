// The words of each stream and graph.
#include "kernels_src/zeroed_words.h"

#include "array/array_source.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"
#include "core/stream_attachments.h"
#include "memory/transfer.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright::kernels {
namespace {

std::atomic<int> shared_on_sim = 0;

Array filled_words(std::size_t count, const Stream& owner, const Stream& stream) {
  Array words =
      Array::empty(stream.device(), {static_cast<std::int64_t>(count)}, ScalarType::uint32, owner);
  fill(stream.device(), words.address(), 0, 4, count, stream);
  return words;
}

/// Words that are kept: of the device's own memory, whatever allocator is in scope.
Array kept_words(const Stream& owner, const Stream& stream) {
  const ArraySourceScope none(nullptr);
  return filled_words(kZeroedWords, owner, stream);
}

/// The array without its owner, never freed: as part of the pool it would keep alive each stream in
/// use.
Array without_owner(const Array& words) {
  return Array::adopt(words.device(), words.address(), words.shape(), words.strides(), words.type(),
                      nullptr);
}

/// Words of a dead stream, or of a living one.
struct FreedWords {
  Array words;
  std::optional<Event> used;  ///< after the last launch; none: its end is unknown
};

/// Words of dead streams, for later streams. They are never freed: the freeing could happen below a
/// lock of their pool. Leaked on purpose, as streams may outlive static objects. Thread-safe.
class SpareWords {
 public:
  static SpareWords& instance() {
    static auto* const spare = new SpareWords;
    return *spare;
  }
  /// Allocates nothing.
  void put(std::list<FreedWords>& one) noexcept {
    const std::lock_guard lock(mutex_);
    all_.splice(all_.end(), one);
  }
  /// One whose last launch is done, or none.
  std::list<FreedWords> take(const Device& device) {
    const RelaxedCapture relaxed(device);  // it asks events
    const std::lock_guard lock(mutex_);
    std::list<FreedWords> taken;
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const FreedWords& one) {
      return one.used && &one.words.device() == &device && one.used->done();
    });
    if (found != all_.end()) taken.splice(taken.end(), all_, found);
    return taken;
  }

 private:
  std::mutex mutex_;
  std::list<FreedWords> all_;
};

/// The words of a stream of our own, which is destroyed with the last user: the words do not keep
/// the stream.
class StreamWords {
 public:
  explicit StreamWords(const Stream& stream)
      : stream_(unkept(stream)), one_(SpareWords::instance().take(stream.device())) {
    if (one_.empty()) one_.push_back({kept_words(stream_, stream), std::nullopt});
  }
  ~StreamWords() {
    std::optional<Event>& used = one_.front().used;
    used.reset();
    Device& device = stream_.device();
    if (may_call_driver() && !device.lost()) mark(device, used);
    SpareWords::instance().put(one_);
  }
  StreamWords(const StreamWords&) = delete;
  StreamWords& operator=(const StreamWords&) = delete;

  const Array& words() const noexcept { return one_.front().words; }

 private:
  /// The stream, without keeping it alive.
  static Stream unkept(const Stream& stream) {
    static char nobody = 0;
    return Stream::borrow(stream.device(), stream.handle(),
                          std::shared_ptr<void>(std::shared_ptr<void>(), &nobody));
  }
  void mark(Device& device, std::optional<Event>& used) const noexcept {
    try {
      const ContextGuard guard(device);
      if (capture_id(device, stream_.handle()) != 0) return;
      used.emplace(device, false);
      used->record(stream_);
    } catch (const std::exception&) {
      used.reset();
    }
  }

  const Stream stream_;
  std::list<FreedWords> one_;
};

/// Words by the number of a stream: of a graph's streams, or of the legacy ones. Thread-safe.
class WordsByStream {
 public:
  Array take(const Stream& stream) {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(words_.begin(), words_.end(), [&](const auto& one) {
      // A device that was reset is another object.
      return one.first == stream.id() && &one.second.device() == &stream.device();
    });
    if (known != words_.end()) return known->second;
    return words_.emplace_back(stream.id(), kept_words(stream, stream)).second;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, Array>> words_;
};

constexpr char kWordsKey = 0;

Array launch_words(const Stream& stream) {
  if (stream.is_owned()) {
    const auto made = stream_attachment(stream, &kWordsKey,
                                        [&] { return std::make_shared<StreamWords>(stream); });
    return without_owner(static_cast<const StreamWords*>(made.get())->words());
  }
  static auto* const legacy = new WordsByStream;  // leaked on purpose
  return without_owner(legacy->take(stream));
}

}  // namespace

SharedWordsOnSim::SharedWordsOnSim() noexcept { ++shared_on_sim; }
SharedWordsOnSim::~SharedWordsOnSim() { --shared_on_sim; }

Array zeroed_words(std::size_t count, const Stream& stream) {
  Device& device = stream.device();
  const bool may_change_hands = stream.handle() != nullptr && !stream.is_owned();
  const bool unsafe = may_change_hands || (device.is_simulated() && shared_on_sim == 0);
  if (count > kZeroedWords || unsafe) return filled_words(count, stream, stream);
  const ContextGuard guard(device);
  const std::uint64_t id = capture_id(device, stream.handle());
  if (id == 0) return launch_words(stream);
  const std::shared_ptr<Capture> capture = find_capture(id);
  if (capture == nullptr) return filled_words(count, stream, stream);
  const auto words = std::static_pointer_cast<WordsByStream>(
      capture->attachment(&kWordsKey, [] { return std::make_shared<WordsByStream>(); }));
  return words->take(stream);
}

}  // namespace kernwright::kernels
