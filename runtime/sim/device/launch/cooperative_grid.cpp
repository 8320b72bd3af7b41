// Cooperative launches: the workspace of their barriers.
#include "sim/check/checked_launch.h"
#include "sim/device/launch/grid.h"
#include "sim/exec/warp/access_log.h"

#include <cstring>
#include <new>

namespace kernwright::sim {
namespace {

/// The data expected by the cooperative groups headers behind %envreg1 and %envreg2: the size of
/// the whole and the barrier's counter, two words of 32 bits. The rest is reserve.
constexpr std::uint32_t kWorkspaceBytes = 256;

class Workspace {
 public:
  explicit Workspace(Memory& memory) : memory_(memory) {
    const auto address =
        memory.allocate(kWorkspaceBytes, AllocationKind::device, "workspace of a cooperative grid");
    if (!address) throw std::bad_alloc();
    address_ = *address;
    std::memcpy(host_pointer(address_), &kWorkspaceBytes, sizeof kWorkspaceBytes);
  }
  ~Workspace() { memory_.free(address_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  std::uint64_t address() const noexcept { return address_; }

 private:
  Memory& memory_;
  std::uint64_t address_ = 0;
};

}  // namespace

GridResult run_cooperative_grid(const LaunchContext& launch, int width,
                                std::span<const std::uint32_t> processors) {
  const Workspace workspace(*launch.memory);
  LaunchContext request = launch;
  AccessLog touched;
  request.grid_workspace = workspace.address();
  if (launch.accesses != nullptr) request.accesses = &touched;
  const std::uint64_t seed = launch.checks == nullptr ? 0 : launch.checks->seed;
  GridResult result = seed != 0 ? run_scheduled_grid(request, seed, true, processors)
                                : run_grid_together(request, width, processors);
  if (launch.accesses != nullptr) {
    touched.drop(workspace.address(), kWorkspaceBytes);
    launch.accesses->merge(touched);
  }
  return result;
}

}  // namespace kernwright::sim
