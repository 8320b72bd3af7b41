// Capture, instantiation, launch and update of graphs, and when what they hold may go.
#include "core/graph/graph.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/graph/graph_box.h"
#include "core/launch/launch_hook.h"
#include "core/lifecycle.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernwright {
namespace {

/// The same objects, for a holder that only needs them to live.
KeptObjects as_objects(CaptureHoldings holdings) {
  KeptObjects objects = std::move(holdings.objects);
  for (auto& [key, attachment] : holdings.attachments) objects.push_back(std::move(attachment));
  if (!holdings.kernels.empty()) {
    objects.push_back(std::make_shared<std::vector<Kernel>>(std::move(holdings.kernels)));
  }
  for (Partition& partition : holdings.partitions) {
    if (partition) objects.push_back(std::make_shared<Partition>(std::move(partition)));
  }
  return objects;
}

[[noreturn]] void fail_capture(Device& device, CUresult result, const Stream& stream) {
  const char* why = nullptr;
  switch (result) {
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
      why =
          "another stream of the capture was not joined again: record an event at its end and "
          "make the captured stream wait for it";
      break;
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
      why = "another library made a call on it that cannot be captured; nothing was recorded";
      break;
    default:
      device.fail(result, "cuStreamEndCapture", stream.identify());
  }
  throw CaptureError(format("the capture of {} is lost ({}): {}", stream.identify(),
                            describe_result(device.driver(), result), why),
                     result);
}

}  // namespace

Graph::Box::~Box() {
  if (capturing) {
    ReleaseGuard guard(device);
    CUgraph dropped = nullptr;
    if (guard)
      guard.report(device.driver().cuStreamEndCapture(capturing.handle(), &dropped),
                   "cuStreamEndCapture");
    if (dropped != nullptr) guard.report(device.driver().cuGraphDestroy(dropped), "cuGraphDestroy");
    registration.end();
  }
  destroy_handles();
  const ReleaseGuard guard(device);
  if (!guard) return;
  try {
    KeptObjects unused;
    trail.hold(everything_kept(), unused);
    trail.wait_and_release();
  } catch (const std::exception& error) {
    log_release_failure(identify(), error.what());
  }
}

void Graph::Box::destroy_handles() noexcept {
  pieces.reset();
  if (executable == nullptr && graph == nullptr) return;
  ReleaseGuard guard(device);
  if (!guard) return;
  const DriverApi& api = device.driver();
  if (latest != nullptr) {
    guard.report(api.cuGraphDestroy(std::exchange(latest, nullptr)), "cuGraphDestroy");
  }
  // Launches that are queued or run go on: the driver frees the executable after them.
  if (executable != nullptr) {
    guard.report(api.cuGraphExecDestroy(std::exchange(executable, nullptr)), "cuGraphExecDestroy");
  }
  if (graph != nullptr) {
    guard.report(api.cuGraphDestroy(std::exchange(graph, nullptr)), "cuGraphDestroy");
  }
}

/// Takes out all that the executable needs alive.
KeptObjects Graph::Box::everything_kept() {
  KeptObjects objects = as_objects(std::exchange(holdings, {}));
  for (KeptObjects& list : std::exchange(arguments, {})) {
    std::move(list.begin(), list.end(), std::back_inserter(objects));
  }
  return objects;
}

void Graph::Box::require_ready() const {
  if (executable != nullptr) return;
  throw Error(format("{} has nothing to launch: capture some work first", identify()));
}

void Graph::Box::require_idle(const char* what) const {
  if (!capturing) return;
  throw CaptureError(format("{} of {} while it captures {}: end the capture first", what,
                            identify(), capturing.identify()),
                     CUDA_ERROR_ILLEGAL_STATE);
}

std::vector<KernelNode> Graph::Box::read_kernels(const GraphShape& recorded,
                                                 const CaptureHoldings& from) {
  const DriverApi& api = device.driver();
  std::vector<KernelNode> found;
  for (std::size_t i = 0; i < recorded.nodes.size(); ++i) {
    if (recorded.types[i] != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    KernelNode& node = found.emplace_back();
    node.place = i;
    device.check(api.cuGraphKernelNodeGetParams(recorded.nodes[i], &node.parameters),
                 "cuGraphKernelNodeGetParams");
    // The memory behind these belongs to the driver and goes with the recorded graph.
    node.parameters.kernelParams = nullptr;
    node.parameters.extra = nullptr;
    if (node.parameters.func != nullptr) {
      // The function says all; drivers differ in what they fill in beside it.
      node.parameters.kern = nullptr;
      if (!from.is_partitioned()) node.parameters.ctx = nullptr;
    }
    for (const Kernel& kernel : from.kernels) {
      if (kernel.handle() == node.parameters.func) node.kernel = kernel;
    }
    const char* name = nullptr;
    if (node.kernel) {
      node.name = node.kernel->signature().name;
    } else if (node.parameters.func != nullptr &&
               api.cuFuncGetName(&name, node.parameters.func) == CUDA_SUCCESS && name != nullptr) {
      node.name = name;
    }
  }
  return found;
}

bool Graph::Box::update_executable(CUgraph recorded) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = device.driver().cuGraphExecUpdate(executable, recorded, &info);
  if (result == CUDA_SUCCESS) return true;
  if (result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE || result == CUDA_ERROR_NOT_SUPPORTED) {
    return false;
  }
  device.fail(result, "cuGraphExecUpdate", identify());
}

void Graph::Box::instantiate(GraphHandle& recorded) {
  const RelaxedCapture relaxed(device);  // another stream of this thread may be captured
  CUgraphExec made = nullptr;
  const CUresult result = device.driver().cuGraphInstantiateWithFlags(&made, recorded.get(), 0);
  if (result != CUDA_SUCCESS) device.fail(result, "cuGraphInstantiateWithFlags", identify());
  destroy_handles();
  latest = nullptr;  // also where it could not be destroyed
  executable = made;
  graph = recorded.release();
  ++structure;
}

/// Makes the recording the graph for launches. Nothing is changed when it throws.
void Graph::Box::adopt(GraphHandle& recorded, CaptureHoldings recorded_holdings,
                       KeptObjects& released) {
  GraphShape recorded_shape = read_graph_shape(device, recorded.get());
  std::vector<KernelNode> recorded_kernels = read_kernels(recorded_shape, recorded_holdings);
  std::string names;
  for (const KernelNode& node : recorded_kernels) names += (names.empty() ? "" : ", ") + node.name;
  const bool same = executable != nullptr && shape.same_as(recorded_shape) &&
                    holdings.runs_where(recorded_holdings);
  pieces.reset();
  if (!same || !update_executable(recorded.get())) {
    instantiate(recorded);
    shape = std::move(recorded_shape);
    latest_nodes = shape.nodes;
  } else {
    const GraphHandle former(device, std::exchange(latest, recorded.release()));
    latest_nodes = std::move(recorded_shape.nodes);
  }
  kernels = std::move(recorded_kernels);
  trail.hold(everything_kept(), released);
  holdings = std::move(recorded_holdings);
  arguments.assign(kernels.size(), {});
  values.assign(kernels.size(), {});
  tag = KernelTag(format("graph({})", names), {});
}

KernelNode& Graph::Box::find(const GraphNode& node) {
  if (node.graph != id) {
    throw InvalidArgument(format("kernel {} ({}) belongs to another graph than {}", node.index,
                                 node.name, identify()));
  }
  if (node.structure != structure || node.index >= kernels.size()) {
    throw InvalidArgument(
        format("kernel {} ({}) is of an earlier capture of {}, which had another structure: take "
               "it from the graph's nodes again",
               node.index, node.name, identify()));
  }
  return kernels[node.index];
}

Graph::Graph(Device& device) : box_(std::make_shared<Box>(device, nullptr)) {}

Graph::Graph(std::shared_ptr<GraphPool> pool) {
  if (pool == nullptr) throw InvalidArgument("a graph of a pool needs the pool, got none");
  Device& device = pool->device();
  box_ = std::make_shared<Box>(device, std::move(pool));
}

Device& Graph::device() const noexcept { return box_->device; }

const std::shared_ptr<GraphPool>& Graph::pool() const noexcept { return box_->pool; }

void Graph::begin_capture(const Stream& stream) {
  Box& box = *box_;
  const std::lock_guard lock(box.mutex);
  box.require_idle("a second capture");
  if (!stream || stream.handle() == nullptr) {
    throw CaptureError(format("the legacy default stream of {} cannot be captured: make a stream "
                              "of your own and capture that",
                              box.device.identify()),
                       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  if (&stream.device() != &box.device) {
    throw InvalidArgument(format("{} cannot capture {}", box.identify(), stream.identify()));
  }
  const ContextGuard guard(box.device);
  refuse_in_capture(box.device, stream.handle(), "a second capture",
                    "end the capture that is going on first");
  std::shared_ptr<void> claim;
  if (box.pool != nullptr) claim = box.pool->begin_capture(stream, box.id);
  const DriverApi& api = box.device.driver();
  CUresult result = CUDA_SUCCESS;
  {
    const CaptureStart starting;
    result = api.cuStreamBeginCapture(stream.handle(), CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  if (result != CUDA_SUCCESS) {
    box.device.fail(result, "cuStreamBeginCapture", stream.identify());
  }
  box.capturing = stream;
  try {
    const std::uint64_t id = capture_id(box.device, stream.handle());
    if (id == 0) box.device.fail(CUDA_ERROR_NOT_SUPPORTED, "cuStreamGetCaptureInfo");
    box.registration =
        CaptureRegistration(std::make_shared<Capture>(stream, id, box.pool), std::move(claim));
  } catch (...) {
    CUgraph dropped = nullptr;
    if (api.cuStreamEndCapture(stream.handle(), &dropped) == CUDA_SUCCESS) {
      api.cuGraphDestroy(dropped);
    }
    box.capturing = {};
    throw;
  }
}

void Graph::end_capture() {
  Box& box = *box_;
  KeptObjects released;  // dropped after the lock
  const std::lock_guard lock(box.mutex);
  if (!box.capturing) {
    throw CaptureError(format("{} captures nothing that could be ended", box.identify()),
                       CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  }
  const ContextGuard guard(box.device);
  const Stream stream = std::exchange(box.capturing, Stream());
  CUgraph recorded = nullptr;
  const CUresult result = box.device.driver().cuStreamEndCapture(stream.handle(), &recorded);
  const std::shared_ptr<Capture> capture = box.registration.capture();
  box.registration.end();
  GraphHandle owned(box.device, recorded);
  if (result != CUDA_SUCCESS) fail_capture(box.device, result, stream);
  box.finish_run();
  box.adopt(owned, capture->take(), released);
  box.trail.take_released(released);
  const CUresult uploaded = box.device.driver().cuGraphUpload(box.executable, stream.handle());
  // Uploading only brings the first launch's cost forward.
  if (uploaded != CUDA_SUCCESS) box.device.latch_if_sticky(uploaded, "cuGraphUpload");
}

void Graph::discard_capture() noexcept {
  Box& box = *box_;
  const std::lock_guard lock(box.mutex);
  if (!box.capturing) return;
  const Stream stream = std::exchange(box.capturing, Stream());
  {
    ReleaseGuard guard(box.device);
    CUgraph dropped = nullptr;
    // The end of a broken capture reports the break; here it is no failure.
    if (guard &&
        box.device.driver().cuStreamEndCapture(stream.handle(), &dropped) == CUDA_SUCCESS) {
      guard.report(box.device.driver().cuGraphDestroy(dropped), "cuGraphDestroy");
    }
  }
  box.registration.end();
}

bool Graph::is_capturing() const noexcept {
  const std::lock_guard lock(box_->mutex);
  return static_cast<bool>(box_->capturing);
}

bool Graph::is_ready() const noexcept {
  const std::lock_guard lock(box_->mutex);
  return box_->executable != nullptr;
}

std::size_t Graph::node_count() const {
  const std::lock_guard lock(box_->mutex);
  return box_->shape.nodes.size();
}

std::vector<GraphNode> Graph::nodes() const {
  const Box& box = *box_;
  const std::lock_guard lock(box.mutex);
  std::vector<GraphNode> list;
  for (const KernelNode& node : box.kernels) {
    const CUDA_KERNEL_NODE_PARAMS& p = node.parameters;
    list.push_back({.index = list.size(),
                    .name = node.name,
                    .grid = {p.gridDimX, p.gridDimY, p.gridDimZ},
                    .block = {p.blockDimX, p.blockDimY, p.blockDimZ},
                    .shared_bytes = p.sharedMemBytes,
                    .kernel = node.kernel,
                    .graph = box.id,
                    .structure = box.structure});
  }
  return list;
}

void Graph::launch(const Stream& stream, const LaunchSite& site) {
  Box& box = *box_;
  const Stream target = stream ? stream : Stream::legacy(box.device);
  if (&target.device() != &box.device) {
    throw InvalidArgument(format("{} cannot be launched on {}", box.identify(), target.identify()));
  }
  if (LaunchHook* const hook = current_launch_hook()) {  // with no lock held: it may wait
    const LaunchHookCall call;
    return hook->launch_graph(*this, target, site);
  }
  KeptObjects released;  // dropped after the lock
  const std::lock_guard lock(box.mutex);
  box.require_idle("launch()");
  box.require_ready();
  const ContextGuard guard(box.device);
  if (any_capture() || !target.is_owned()) {
    refuse_in_capture(box.device, target.handle(), "the launch of a graph",
                      "a graph cannot be part of another: launch it on a stream that runs");
  }
  box.trail.take_released(released);
  box.finish_run();
  if (box.was_cut) box.trail.order(target);  // the driver orders launches of one executable alone
  std::optional<GraphPool::Launch> in_pool;
  if (box.pool != nullptr) in_pool.emplace(*box.pool, target, box.id);
  box.queue(box.executable, target, site);
  if (in_pool) in_pool->queued();
  box.trail.note(target);
}

void Graph::update(const GraphNode& node, std::span<void* const> arguments,
                   std::vector<std::shared_ptr<const void>> keep) {
  Box& box = *box_;
  KeptObjects released;  // dropped after the lock
  const std::lock_guard lock(box.mutex);
  box.require_idle("update()");
  box.require_ready();
  KernelNode& target = box.find(node);
  if (!target.kernel) {
    throw InvalidArgument(
        format("kernel {} ({}) of {} is another library's: its arguments cannot "
               "be checked, so they cannot be updated",
               node.index, node.name, box.identify()));
  }
  const KernelSignature& signature = target.kernel->signature();
  if (arguments.size() != signature.parameters.size()) {
    throw ArgumentError(format("{}: {} arguments for {} parameters", signature.to_string(),
                               arguments.size(), signature.parameters.size()));
  }
  CUDA_KERNEL_NODE_PARAMS parameters = target.parameters;
  parameters.kernelParams = const_cast<void**>(arguments.data());
  // The driver takes values for a node of a partition in that context alone.
  const ContextGuard guard(box.device, parameters.ctx);
  box.finish_run();
  const CUresult result = box.device.driver().cuGraphExecKernelNodeSetParams(
      box.executable, box.shape.nodes[target.place], &parameters);
  if (result != CUDA_SUCCESS) {
    box.device.fail(result, "cuGraphExecKernelNodeSetParams",
                    format("kernel {} of {}", signature.name, box.identify()));
  }
  if (box.pieces != nullptr) box.pieces->set(target.place, parameters);
  std::vector<std::vector<std::byte>>& values = box.values[node.index];
  values.resize(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* const bytes = static_cast<const std::byte*>(arguments[i]);
    values[i].assign(bytes, bytes + signature.parameters[i].size);
  }
  KeptObjects gone;
  for (auto& object : std::exchange(box.arguments[node.index], keep)) {
    if (std::find(keep.begin(), keep.end(), object) == keep.end()) gone.push_back(object);
  }
  box.trail.hold(std::move(gone), released);
  box.trail.take_released(released);
}

void Graph::reset() {
  Box& box = *box_;
  KeptObjects released;  // dropped after the lock
  const std::lock_guard lock(box.mutex);
  box.require_idle("reset()");
  const ContextGuard guard(box.device);
  box.finish_run();
  box.destroy_handles();
  box.trail.hold(box.everything_kept(), released);
  box.trail.take_released(released);
  box.kernels.clear();
  box.shape = {};
}

}  // namespace kernwright
