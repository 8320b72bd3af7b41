// Launches of a graph: whole, and in pieces.
#include "core/activity.h"
#include "core/graph/graph_box.h"
#include "core/launch/launch_pieces.h"
#include "driver/nvtx.h"

#include <algorithm>

namespace kernwright {

void Graph::Box::queue(CUgraphExec part, const Stream& target, const LaunchSite& site) {
  const NvtxRange range("graph");
  std::optional<ActivityScope> activity;
  if (is_recording_activity()) [[unlikely]] {
    activity.emplace(
        Activity{
            .kind = Activity::Kind::graph, .name = tag.name(), .device = &device, .site = site},
        target.handle(), true);
  }
  device.note_launch(tag, site);
  const CUresult result = device.driver().cuGraphLaunch(part, target.handle());
  if (result != CUDA_SUCCESS) device.fail(result, "cuGraphLaunch", identify());
  if (activity) activity->finish();
}

void Graph::Box::queue_piece() {
  queue(pieces->executable(run.next), run.stream, run.site);
  if (run.next++ == 0) trail.note(run.stream);
  if (run.next == pieces->size()) run.owner = nullptr;
}

/// What a launch in pieces has not queued yet, at once.
void Graph::Box::finish_run() {
  while (run.owner != nullptr) queue_piece();
}

void Graph::Box::cut(std::size_t count) {
  pieces = GraphPieces::make(device, latest != nullptr ? latest : graph, latest_nodes, count);
  if (pieces == nullptr) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) continue;
    std::vector<void*> pointers;
    for (std::vector<std::byte>& value : values[i]) pointers.push_back(value.data());
    CUDA_KERNEL_NODE_PARAMS parameters = kernels[i].parameters;
    parameters.kernelParams = pointers.data();
    pieces->set(kernels[i].place, parameters);
  }
}

/// A launch in pieces. Its state is the graph's: others may queue what is left.
class Graph::Run final : public LaunchPieces {
 public:
  Run(Graph graph, Stream stream, const LaunchSite& site, std::size_t count)
      : graph_(std::move(graph)), stream_(std::move(stream)), site_(site), left_(count) {}
  /// The rest is dropped.
  ~Run() override {
    const std::lock_guard lock(graph_.box_->mutex);
    if (graph_.box_->run.owner == this) graph_.box_->run.owner = nullptr;
  }
  std::size_t left() const noexcept override { return left_; }
  WorkKey next() const noexcept override { return {graph_.key(), left_}; }
  void queue() override {
    Box& box = *graph_.box_;
    const std::lock_guard lock(box.mutex);
    box.require_idle("launch()");
    box.require_ready();
    const ContextGuard guard(box.device);
    if (!has_begun_) {
      box.finish_run();
      box.trail.order(stream_);
      if (box.pieces == nullptr) {  // captured anew meanwhile
        left_ = 0;
        box.queue(box.executable, stream_, site_);
        return box.trail.note(stream_);
      }
      box.run = {this, 0, stream_, site_};
      has_begun_ = box.was_cut = true;
    }
    if (box.run.owner == this) box.queue_piece();
    left_ = box.run.owner == this ? box.pieces->size() - box.run.next : 0;
  }

 private:
  Graph graph_;
  const Stream stream_;
  const LaunchSite site_;
  std::size_t left_;
  bool has_begun_ = false;
};

std::unique_ptr<LaunchPieces> Graph::cut(std::size_t most, const Stream& stream,
                                         const LaunchSite& site) {
  Box& box = *box_;
  const Stream target = stream ? stream : Stream::legacy(box.device);
  const std::lock_guard lock(box.mutex);
  box.require_idle("launch()");
  box.require_ready();
  const std::size_t count = std::min(most, box.shape.nodes.size());
  if (count < 2 || box.pool != nullptr) return nullptr;
  const ContextGuard guard(box.device);
  if (box.pieces == nullptr || box.pieces->size() < count) {
    box.finish_run();
    box.cut(count);
  }
  if (box.pieces == nullptr) return nullptr;
  return std::make_unique<Run>(*this, target, site, box.pieces->size());
}

}  // namespace kernwright
