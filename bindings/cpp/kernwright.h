// Everything of Kernwright for a C++ program; the includes are the table of contents.
#pragma once

#include "array/argument.h"
#include "array/array.h"
#include "array/tensor_layout.h"
#include "base/errors.h"
#include "base/log_sink.h"
#include "core/arguments.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/graph.h"
#include "core/image/cuda_array.h"
#include "core/image/tensor_map.h"
#include "core/image/texture.h"
#include "core/kernel.h"
#include "core/launch/launch_config.h"
#include "core/module.h"
#include "core/partition.h"
#include "core/peers.h"
#include "core/runtime.h"
#include "core/stream.h"
#include "jit/program.h"
#include "jit/sliced_launch.h"
#include "jit/slicing.h"
#include "kernels_src/device_headers.h"
#include "memory/buffer.h"
#include "memory/evictable_buffer.h"
#include "memory/failing_adaptor.h"
#include "memory/limiting_adaptor.h"
#include "memory/managed_resource.h"
#include "memory/pinned_resource.h"
#include "memory/pool/pool_resource.h"
#include "memory/tracking_adaptor.h"
#include "memory/transfer_engine.h"
#include "schedule/scheduler.h"
#include "schedule/task_here.h"
#include "sim/checks.h"
#include "sim/device.h"
#include "sim/line_profile.h"
#include "sim/trace.h"
#include "tune/judge/judge.h"
#include "tune/measure/pareto.h"
#include "tune/measure/race.h"
#include "tune/measure/timer.h"
#include "tune/search/strategy.h"
#include "tune/session/journal.h"
#include "tune/session/kernel_backend.h"
#include "tune/session/launch_rule.h"
#include "tune/session/session.h"
#include "tune/space.h"
#include "worker/compile_workers.h"
#include "worker/device/device_pool.h"
#include "worker/device/remote_device.h"

namespace kernwright {

/// Makes the simulated device available and returns the current device: the first GPU, else the
/// simulated one, or what KERNWRIGHT_DEVICE names. Call it first; calling it again does no harm.
inline Device& initialise() {
  Runtime::register_sim(&sim::driver_api);
  kernels::register_device_headers();
  return Runtime::get().current_device();
}

}  // namespace kernwright
