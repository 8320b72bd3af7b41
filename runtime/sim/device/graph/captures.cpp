// The states of a capture, and conflicting calls.
#include "sim/device/graph/captures.h"

#include "sim/device/graph/graph.h"
#include "sim/device/sim_driver.h"

#include <algorithm>
#include <set>

namespace kernwright::sim {
namespace {

void add_tips(std::vector<std::shared_ptr<GraphNode>>& tips,
              const std::vector<std::shared_ptr<GraphNode>>& more) {
  for (const auto& node : more) {
    if (std::find(tips.begin(), tips.end(), node) == tips.end()) tips.push_back(node);
  }
}

/// Whether all captured work of the other streams comes before the origin's last nodes.
bool is_joined(const Capture& capture) {
  std::set<const GraphNode*> behind;
  std::vector<const GraphNode*> open;
  for (const auto& node : capture.origin->tips) open.push_back(node.get());
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    if (!behind.insert(node).second) continue;
    for (const auto& before : node->dependencies) open.push_back(before.get());
  }
  for (const auto& stream : capture.streams) {
    for (const auto& node : stream->tips) {
      if (behind.count(node.get()) == 0) return false;
    }
  }
  return true;
}

}  // namespace

CUstreamCaptureMode& capture_mode() noexcept {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

void Captures::begin(const StreamUse& use, CUstreamCaptureMode mode) {
  require(!use.stream->legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  auto capture = std::make_shared<Capture>();
  capture->id = sim_driver().next_id();
  capture->mode = mode;
  capture->thread = thread_number();
  capture->context = use.context;
  capture->origin = use.stream;
  capture->streams = {use.stream};
  capture->graph = std::make_shared<Graph>();
  capture->graph->capturing = true;
  const std::lock_guard lock(mutex_);
  // NOTE: the reference names no code for a stream already in a capture; drivers say 401.
  require(use.stream->capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
  capture->graph->handle = sim_driver().graphs.insert(capture->graph);
  use.stream->capture = capture;
  use.stream->tips.clear();
  running_.push_back(std::move(capture));
  ++count_;
}

/// Takes all streams out of the capture.
void Captures::close(Capture& capture) {
  for (const auto& stream : capture.streams) {
    stream->capture = nullptr;
    stream->tips.clear();
  }
  capture.streams.clear();
  capture.origin = nullptr;
  capture.over = true;
  capture.graph->capturing = false;
  std::erase_if(running_, [&](const auto& other) { return other.get() == &capture; });
  --count_;
}

std::shared_ptr<Graph> Captures::end(const StreamUse& use) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = use.stream->capture;
  require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  require(capture->origin == use.stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == thread_number(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  const bool joined = is_joined(*capture);
  const bool valid = capture->valid;
  close(*capture);
  std::shared_ptr<Graph> graph = std::move(capture->graph);
  if (valid && joined) return graph;
  discard(*graph);
  fail(valid ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

void Captures::refuse(Capture& capture, CUresult code) {
  require_valid(capture);
  capture.valid = false;
  fail(code);
}

void Captures::require_valid(const Capture& capture) {
  require(capture.valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/// The default stream would have to wait for capturing blocking streams.
void Captures::refuse_legacy(const Context& context, CUresult code, bool invalidate) {
  bool found = false;
  for (const auto& capture : running_) {
    const bool blocks = std::any_of(capture->streams.begin(), capture->streams.end(),
                                    [&](const auto& stream) { return stream->blocking(); });
    if (!blocks || capture->context->id != context.id) continue;
    found = true;
    if (invalidate) capture->valid = false;
  }
  require(!found, code);
}

bool Captures::has(const StreamUse& use) {
  if (none()) return false;
  const std::lock_guard lock(mutex_);
  return use.stream->capture != nullptr;
}

bool Captures::take(const StreamUse& use, Work& work) {
  if (none()) return false;
  const std::lock_guard lock(mutex_);
  Stream& stream = *use.stream;
  if (stream.legacy) refuse_legacy(*use.context, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, true);
  if (stream.capture == nullptr) return false;
  require_valid(*stream.capture);
  try {
    prepare_node(work);
    check(work);
    stream.tips = {add_node(stream.capture->graph, std::move(work), stream.tips)};
  } catch (...) {
    stream.capture->valid = false;
    throw;
  }
  return true;
}

void Captures::join(const StreamUse& use, const std::shared_ptr<Capture>& capture) {
  use.stream->capture = capture;
  use.stream->tips.clear();
  capture->streams.push_back(use.stream);
}

bool Captures::record(const StreamUse& use, Event& event) {
  event.capture = nullptr;
  event.tips.clear();
  if (none()) return false;
  const std::lock_guard lock(mutex_);
  Stream& stream = *use.stream;
  if (stream.legacy) refuse_legacy(*use.context, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, true);
  if (stream.capture == nullptr) return false;
  require_valid(*stream.capture);
  event.capture = stream.capture;
  event.tips = stream.tips;
  return true;
}

bool Captures::wait(const StreamUse& use, Event& event) {
  if (none() && event.capture == nullptr) return false;
  const std::lock_guard lock(mutex_);
  Stream& stream = *use.stream;
  if (event.capture == nullptr) {
    if (stream.legacy) refuse_legacy(*use.context, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, true);
    if (stream.capture == nullptr) return false;
    require_valid(*stream.capture);
    // NOTE: an event without a record orders nothing; the guide does not name this case.
    if (event.mark == nullptr) return true;
    refuse(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  Capture& capture = *event.capture;
  if (stream.capture != nullptr) require_valid(*stream.capture);
  if (capture.over || (stream.capture != nullptr && stream.capture != event.capture)) {
    if (stream.capture == nullptr) fail(CUDA_ERROR_CAPTURED_EVENT);
    if (!capture.over) capture.valid = false;
    refuse(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  require_valid(capture);
  if (stream.legacy) refuse(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream.capture == nullptr) join(use, event.capture);
  add_tips(stream.tips, event.tips);
  return true;
}

void Captures::forbid_unsafe() {
  if (none()) return;
  const CUstreamCaptureMode mode = capture_mode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  const std::lock_guard lock(mutex_);
  bool forbidden = false;
  for (const auto& capture : running_) {
    const bool same_thread =
        capture->thread == thread_number() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!same_thread && !global) continue;
    capture->valid = false;
    forbidden = true;
  }
  require(!forbidden, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void Captures::forbid_wait(const StreamUse& use) {
  forbid_in(use);
  forbid_unsafe();
}

void Captures::forbid_in(const StreamUse& use) {
  if (none()) return;
  const std::lock_guard lock(mutex_);
  if (use.stream->legacy) refuse_legacy(*use.context, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, true);
  if (use.stream->capture != nullptr) {
    refuse(*use.stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
}

void Captures::forbid_context_wait(const Context& context) {
  if (none()) return;
  {
    const std::lock_guard lock(mutex_);
    bool found = false;
    for (const auto& capture : running_) {
      if (capture->context->id != context.id) continue;
      capture->valid = false;
      found = true;
    }
    require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  forbid_unsafe();
}

void Captures::forbid_event(const Event& event) {
  if (event.capture != nullptr) {
    const std::lock_guard lock(mutex_);
    if (!event.capture->over) event.capture->valid = false;
    fail(CUDA_ERROR_CAPTURED_EVENT);
  }
  forbid_unsafe();
}

void Captures::forbid_synchronous(const Context& context) {
  if (none()) return;
  const std::lock_guard lock(mutex_);
  refuse_legacy(context, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, true);
}

Captures::Info Captures::info(const StreamUse& use, const CUgraphNode** dependencies,
                              std::size_t* count) {
  static thread_local std::vector<CUgraphNode> list;
  Info result;
  list.clear();
  if (!none()) {
    const std::lock_guard lock(mutex_);
    if (use.stream->legacy) refuse_legacy(*use.context, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, false);
    if (const auto& capture = use.stream->capture; capture != nullptr) {
      result.status =
          capture->valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
      result.id = capture->id;
      if (capture->valid) {
        result.graph = capture->graph->handle;
        for (const auto& node : use.stream->tips) list.push_back(node->handle);
      }
    }
  }
  if (dependencies != nullptr) *dependencies = list.empty() ? nullptr : list.data();
  if (count != nullptr) *count = list.size();
  return result;
}

void Captures::leave(const Stream& stream) {
  if (none()) return;
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return;
  capture->valid = false;
  if (capture->origin.get() != &stream) return;
  close(*capture);
  discard(*std::exchange(capture->graph, nullptr));
}

void Captures::leave(const Context& context) {
  if (none()) return;
  const std::lock_guard lock(mutex_);
  const auto running = running_;
  for (const auto& capture : running) {
    if (capture->context->id != context.id) continue;
    capture->valid = false;
    close(*capture);
    discard(*std::exchange(capture->graph, nullptr));
  }
}

}  // namespace kernwright::sim
