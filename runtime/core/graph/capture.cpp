// The list of captures in progress, and the refusals that keep them whole.
#include "core/graph/capture.h"

#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/lifecycle.h"

#include <algorithm>
#include <shared_mutex>
#include <utility>

namespace kernwright {
namespace {

thread_local bool captured_only = false;

std::string code_name(CUresult code) {
  const char* name = result_name(code);
  return name != nullptr ? name : "";
}

/// Captures of all graphs. Leaked on purpose: a graph may outlive every static object.
struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Capture>> list;
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

template <typename Condition>
std::shared_ptr<Capture> find_if(const Condition& condition) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find_if(all.list.begin(), all.list.end(),
                                  [&](const auto& capture) { return condition(*capture); });
  return found != all.list.end() ? *found : nullptr;
}

/// Shared by callers that rely on a stream without a capture, exclusive for the begin of a capture.
std::shared_mutex& beginning() {
  static auto* const mutex = new std::shared_mutex;
  return *mutex;
}

}  // namespace

namespace detail {
std::atomic<int> captures_in_progress{0};
}  // namespace detail

bool CaptureHoldings::is_partitioned() const noexcept {
  return std::any_of(partitions.begin(), partitions.end(),
                     [](const Partition& partition) { return static_cast<bool>(partition); });
}

bool CaptureHoldings::runs_where(const CaptureHoldings& other) const noexcept {
  return partitions.size() == 1 && other.partitions.size() == 1 &&
         partitions.front().id() == other.partitions.front().id();
}

CaptureError::CaptureError(const std::string& message, CUresult result)
    : DriverError(message, result, code_name(result)) {}

Capture::Capture(Stream origin, std::uint64_t id, std::shared_ptr<GraphPool> pool)
    : origin_(std::move(origin)), id_(id), pool_(std::move(pool)) {
  holdings_.partitions.push_back(origin_.partition());
}

Capture::~Capture() = default;

void Capture::keep_alive(std::shared_ptr<const void> object) {
  if (object == nullptr) return;
  const std::lock_guard lock(mutex_);
  auto& kept = holdings_.objects;
  if (std::find(kept.begin(), kept.end(), object) == kept.end()) kept.push_back(std::move(object));
}

void Capture::keep_kernel(const Kernel& kernel) {
  const std::lock_guard lock(mutex_);
  for (const Kernel& known : holdings_.kernels) {
    if (known.handle() == kernel.handle()) return;
  }
  holdings_.kernels.push_back(kernel);
}

void Capture::note_partition(const Partition& partition) {
  const std::lock_guard lock(mutex_);
  for (const Partition& known : holdings_.partitions) {
    if (known.id() == partition.id()) return;
  }
  holdings_.partitions.push_back(partition);
}

std::shared_ptr<void> Capture::attachment(const void* key,
                                          const std::function<std::shared_ptr<void>()>& make) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, object] : holdings_.attachments) {
    if (known == key) return object;
  }
  return holdings_.attachments.emplace_back(key, make()).second;
}

std::shared_ptr<void> Capture::find_attachment(const void* key) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, object] : holdings_.attachments) {
    if (known == key) return object;
  }
  return nullptr;
}

void Capture::at_end(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  at_end_.push_back(std::move(action));
}

CaptureHoldings Capture::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(holdings_, {});
}

CaptureRegistration::CaptureRegistration(std::shared_ptr<Capture> capture,
                                         std::shared_ptr<void> claim)
    : capture_(std::move(capture)), claim_(std::move(claim)) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.list.push_back(capture_);
  detail::captures_in_progress.fetch_add(1, std::memory_order_relaxed);
}

CaptureRegistration::CaptureRegistration(CaptureRegistration&& other) noexcept
    : capture_(std::exchange(other.capture_, nullptr)), claim_(std::move(other.claim_)) {}

CaptureRegistration& CaptureRegistration::operator=(CaptureRegistration&& other) noexcept {
  if (this != &other) {
    end();
    capture_ = std::exchange(other.capture_, nullptr);
    claim_ = std::move(other.claim_);
  }
  return *this;
}

void CaptureRegistration::end() noexcept {
  const std::shared_ptr<Capture> ended = std::exchange(capture_, nullptr);
  if (ended == nullptr) return;
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase(all.list, ended);
    detail::captures_in_progress.fetch_sub(1, std::memory_order_relaxed);
  }
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(ended->mutex_);
    actions.swap(ended->at_end_);
  }
  for (const auto& action : actions) {
    try {
      action();
    } catch (const std::exception& error) {
      log_release_failure("what waited for the end of a capture", error.what());
    }
  }
  claim_.reset();
}

std::uint64_t capture_id(const Device& device, CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  const CUresult result =
      device.driver().cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr);
  const_cast<Device&>(device).latch_if_sticky(result, "cuStreamGetCaptureInfo");
  // NOTE: a capture that was invalidated has no number, but is one until it is ended.
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE ? id : 0;
}

std::shared_ptr<Capture> find_capture(std::uint64_t id) {
  if (id == 0 || !any_capture()) return nullptr;
  return find_if([&](const Capture& capture) { return capture.id() == id; });
}

std::shared_ptr<Capture> find_capture(const Device& device, CUstream stream) {
  if (!any_capture()) return nullptr;
  return find_capture(capture_id(device, stream));
}

std::shared_ptr<Capture> find_capture(const Stream& stream) {
  if (!any_capture() || !stream || !may_call_driver()) return nullptr;
  const ContextGuard guard(stream.device());
  return find_capture(stream.device(), stream.handle());
}

std::shared_ptr<Capture> capture_on(const Device& device) {
  if (!any_capture()) return nullptr;
  return find_if([&](const Capture& capture) { return &capture.device() == &device; });
}

void refuse_in_capture(const Device& device, CUstream stream, const char* what,
                       const char* advice) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = device.driver().cuStreamIsCapturing(stream, &status);
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    throw CaptureError(
        format("{} of the legacy stream of {}: a stream that waits for it implicitly is being "
               "captured into a graph; {}, or capture a stream made by kernwright",
               what, device.identify(), advice),
        result);
  }
  // Whatever else is wrong with the stream, the call that follows will say.
  if (result != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE) return;
  throw CaptureError(format("{} of a stream of {} that is being captured into a graph: its work is "
                            "recorded, not run; {}",
                            what, device.identify(), advice),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void refuse_during_capture(const Device& device, const char* what, const char* advice) {
  const std::shared_ptr<Capture> capture = capture_on(device);
  if (capture == nullptr) return;
  throw CaptureError(format("{} while {} is being captured into a graph: {}", what,
                            capture->origin().identify(), advice),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void refuse_in_capturing_thread(const Device& device, const char* what, const char* advice) {
  if (!any_capture()) return;
  const std::shared_ptr<Capture> capture = find_if([&](const Capture& candidate) {
    return &candidate.device() == &device && candidate.thread() == std::this_thread::get_id();
  });
  if (capture == nullptr) return;
  throw CaptureError(format("{} while {} is being captured into a graph: what was recorded has not "
                            "run; {}",
                            what, capture->origin().identify(), advice),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

bool exchange_captured_only(bool only) noexcept { return std::exchange(captured_only, only); }

void require_captured(const Device& device, const Stream& stream, const char* what) {
  if (!captured_only || capture_id(device, stream.handle()) != 0) return;
  throw CaptureError(
      format("{} on {}, whose work is not captured: it would run once, and in no launch of the "
             "graph; let the stream wait for an event of the captured stream first, as in "
             "side.wait(kw.current_stream()), and the captured stream for it at the end",
             what, stream ? stream.identify() : "the legacy stream of " + device.identify()),
      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CaptureHold::CaptureHold() { beginning().lock_shared(); }
CaptureHold::~CaptureHold() { beginning().unlock_shared(); }
CaptureStart::CaptureStart() { beginning().lock(); }
CaptureStart::~CaptureStart() { beginning().unlock(); }

RelaxedCapture::RelaxedCapture(const Device& device) noexcept : api_(device.driver()) {
  changed_ = may_call_driver() && !device.lost() &&
             api_.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
}

RelaxedCapture::~RelaxedCapture() {
  if (changed_ && may_call_driver()) api_.cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace kernwright
