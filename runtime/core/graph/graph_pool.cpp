// Attachments of a pool, and launches that wait for each other.
#include "core/graph/graph_pool.h"

#include "base/format.h"
#include "core/device.h"
#include "core/graph/capture.h"

#include <algorithm>

namespace kernwright {
namespace {

/// The per-thread stream is another one in each thread, and borrowed ones may be gone later.
bool may_vanish(const Stream& stream) noexcept {
  return stream.handle() != nullptr && !stream.is_owned();
}

}  // namespace

std::shared_ptr<void> GraphPool::attachment(const void* key,
                                            const std::function<std::shared_ptr<void>()>& make) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, object] : attachments_) {
    if (known == key) return object;
  }
  return attachments_.emplace_back(key, make()).second;
}

void GraphPool::launch_after(const Event& event) {
  const std::lock_guard lock(mutex_);
  marks_.push_back(event);
}

std::shared_ptr<void> GraphPool::begin_capture(const Stream& stream, std::uint64_t graph) {
  std::unique_lock lock(mutex_);
  if (capturing_ != 0) {
    throw CaptureError(
        format("graph {} cannot capture {}: graph {} captures into the same pool; end that capture "
               "first, or give this graph a pool of its own",
               graph, stream.identify(), capturing_),
        CUDA_ERROR_ILLEGAL_STATE);
  }
  if (!attachments_.empty()) {
    std::erase_if(marks_, [](const Event& mark) { return mark.done(); });
    marks_.emplace_back(device_, false).record(stream);
  }
  capturing_ = graph;
  lock.unlock();
  return {this, [](void* pool) {
            auto& self = *static_cast<GraphPool*>(pool);
            const std::lock_guard ending(self.mutex_);
            self.capturing_ = 0;
          }};
}

/// Marks the end of the last launch, and of whatever its stream got since.
Event GraphPool::last_end(std::uint64_t graph) const {
  if (last_->done) return *last_->done;
  Event reached(device_, false);
  const CaptureHold held;
  if (capture_id(device_, last_->stream.handle()) != 0) {
    throw CaptureError(
        format(
            "graph {} shares its memory with graph {}, which was launched on {}, and cannot wait "
            "for it while that stream is being captured: end the capture first, or launch both "
            "graphs on one stream",
            graph, last_->graph, last_->stream.identify()),
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  reached.record(last_->stream);
  return reached;
}

GraphPool::Launch::Launch(GraphPool& pool, const Stream& stream, std::uint64_t graph)
    : pool_(pool), stream_(stream), graph_(graph), lock_(pool.mutex_) {
  const auto& last = pool_.last_;
  const bool in_order = !last || (last->stream.id() == stream.id() && !may_vanish(stream));
  if (!in_order) stream.wait(pool_.last_end(graph));
  for (const Event& mark : pool_.marks_) stream.wait(mark);
}

void GraphPool::Launch::queued() {
  pool_.marks_.clear();
  LastLaunch last{.graph = graph_, .stream = stream_, .done = std::nullopt};
  if (may_vanish(stream_)) last.done.emplace(pool_.device_, false).record(stream_);
  pool_.last_ = std::move(last);
}

}  // namespace kernwright
