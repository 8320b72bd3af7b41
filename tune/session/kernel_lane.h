// The state of KernelBackend: a configuration on its way, and a device with its buffers.
#pragma once

#include "tune/session/kernel_backend.h"

#include <utility>

namespace kernwright {

struct KernelBackend::Work final : TrialWork {
  Work(std::uint64_t its_id, KernelPlan its_plan) : id(its_id), plan(std::move(its_plan)) {}

  const std::uint64_t id;
  KernelPlan plan;
  std::shared_ptr<const ObjectCode> code;
  std::string name;
  std::vector<TuningArgument> arguments;
  std::vector<std::size_t> written;  ///< buffers, each once
  /// Buffers behind pointers to const alone, with the first argument that names each.
  std::vector<std::pair<std::size_t, std::string>> constant;
  unsigned turn = 0;       ///< verified launches so far
  bool was_right = false;  ///< one of them
};

struct KernelBackend::Lane {
  explicit Lane(RemoteDeviceOptions options) : device(std::move(options)) {}

  RemoteDevice device;
  std::uint64_t generation = 0;
  std::vector<RemoteBuffer> buffers;
  std::vector<std::optional<RemoteBuffer>> originals;  ///< of those that were written
  bool has_room = true;                                ///< for originals
  std::vector<bool> is_dirty;
  bool is_pristine = false;  ///< nothing was launched since all buffers got their contents
  std::vector<std::pair<std::uint64_t, RemoteKernel>> loaded;  ///< the last used one last
  std::vector<std::byte> outputs;
};

}  // namespace kernwright
