// Driver functions of green contexts: splitting multiprocessors, contexts of some, their streams.
#include "sim/device/green_context.h"

#include "sim/device/sim_driver.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace kernwright::sim {
namespace {

constexpr unsigned kIgnoreCoscheduling = 1, kMaxClusterSize = 2;  // flags of a split
constexpr unsigned kFineSize = 2;  // least size and alignment of a group without coscheduling

/// Which multiprocessors a CUdevResource has, kept in its padding.
struct Hidden {
  static constexpr std::uint32_t kMark = 0x6b77534d;
  std::uint32_t mark = kMark;
  std::int32_t device = 0;
  std::uint64_t split = 0;  ///< the call that made a group; 0: of a device or green context
  std::array<std::uint64_t, 9> bits{};  ///< by %smid

  void add(std::uint32_t processor) {
    require(processor / 64 < bits.size(), CUDA_ERROR_NOT_SUPPORTED);
    bits[processor / 64] |= std::uint64_t{1} << processor % 64;
  }
  std::vector<std::uint32_t> list() const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < bits.size() * 64; ++i) {
      if ((bits[i / 64] >> i % 64 & 1) != 0) found.push_back(i);
    }
    return found;
  }
};
static_assert(sizeof(Hidden) <= sizeof(CUdevResource::_internal_padding));

/// NOTE: the driver's guideline: at 8.x at least 4 and multiples of 2, at 9.0 and above 8 and 8.
CUdevSmResource rules(unsigned count) {
  if (device_profile().is_90) return {count, 8, 8};
  return {count, 4, 2};
}

CUdevResource make_resource(const Hidden& hidden) {
  CUdevResource resource{};
  unsigned count = 0;
  for (const std::uint64_t word : hidden.bits) count += static_cast<unsigned>(std::popcount(word));
  resource.type = count == 0 ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource._internal_padding, &hidden, sizeof hidden);
  resource.sm = rules(count);
  return resource;
}

Hidden read_hidden(const CUdevResource& resource) {
  require(resource.type == CU_DEV_RESOURCE_TYPE_SM, CUDA_ERROR_INVALID_RESOURCE_TYPE);
  Hidden hidden;
  std::memcpy(&hidden, resource._internal_padding, sizeof hidden);
  require(hidden.mark == Hidden::kMark, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  return hidden;
}

std::shared_ptr<GreenContext> find_green(CUgreenCtx handle) {
  auto green = sim_driver().green_contexts.find(handle);
  require(green != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return green;
}

/// Multiprocessors of one group of a split. Throws Failure where no group can have them.
unsigned group_size(unsigned total, unsigned flags, unsigned least) {
  require((flags & ~(kIgnoreCoscheduling | kMaxClusterSize)) == 0);
  const bool fine = (flags & kIgnoreCoscheduling) != 0;
  const unsigned minimum = fine ? kFineSize : rules(total).minSmPartitionSize;
  const unsigned alignment = fine ? kFineSize : rules(total).smCoscheduledAlignment;
  const unsigned rounded = (least + alignment - 1) / alignment * alignment;
  const unsigned size = std::max(minimum, rounded);
  require(least <= total && size <= total, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  return size;
}

}  // namespace

int processor_count(const GreenContext* green) {
  return green != nullptr ? static_cast<int>(green->processors.size())
                          : device_profile().required(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

void calls::cuDeviceGetDevResource(CUdevice ordinal, CUdevResource* resource,
                                   CUdevResourceType type) {
  require(resource != nullptr);
  const SimDevice& device = sim_driver().device(ordinal);
  require(type == CU_DEV_RESOURCE_TYPE_SM, CUDA_ERROR_INVALID_RESOURCE_TYPE);
  Hidden hidden;
  hidden.device = device.ordinal;
  const int count = processor_count(nullptr);
  for (int i = 0; i < count; ++i) hidden.add(static_cast<std::uint32_t>(i));
  *resource = make_resource(hidden);
}

/// NOTE: groups are runs of %smid. A GPU deals them out by processing clusters, and may have room
/// for fewer groups than a division says.
void calls::cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned int* count,
                                        const CUdevResource* whole, CUdevResource* remainder,
                                        unsigned int flags, unsigned int least) {
  require(count != nullptr && whole != nullptr);
  const Hidden from = read_hidden(*whole);
  require(from.split == 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  const std::vector<std::uint32_t> all = from.list();
  const auto total = static_cast<unsigned>(all.size());
  const unsigned size = group_size(total, flags, least);
  const unsigned fitting = total / size;
  if (groups == nullptr) {
    *count = fitting;
    return;
  }
  *count = std::min(*count, fitting);
  Hidden part;
  part.device = from.device;
  part.split = sim_driver().next_id();
  std::size_t next = 0;
  for (unsigned group = 0; group < *count; ++group) {
    part.bits = {};
    for (unsigned i = 0; i < size; ++i) part.add(all[next++]);
    groups[group] = make_resource(part);
  }
  if (remainder == nullptr) return;
  part.bits = {};
  while (next < all.size()) part.add(all[next++]);
  *remainder = make_resource(part);
}

void calls::cuDevResourceGenerateDesc(CUdevResourceDesc* descriptor, CUdevResource* resources,
                                      unsigned int count) {
  require(descriptor != nullptr && resources != nullptr && count != 0);
  Hidden all = read_hidden(resources[0]);
  require(count == 1 || all.split != 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  for (unsigned i = 1; i < count; ++i) {
    const Hidden next = read_hidden(resources[i]);
    require(next.split == all.split && next.device == all.device,
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    for (std::size_t word = 0; word < all.bits.size(); ++word) {
      require((all.bits[word] & next.bits[word]) == 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
      all.bits[word] |= next.bits[word];
    }
  }
  auto made = std::make_shared<ResourceDescriptor>();
  made->device = all.device;
  made->processors = all.list();
  *descriptor = sim_driver().descriptors.insert(std::move(made));
}

void calls::cuGreenCtxCreate(CUgreenCtx* handle, CUdevResourceDesc descriptor, CUdevice ordinal,
                             unsigned int flags) {
  require(handle != nullptr && flags == CU_GREEN_CTX_DEFAULT_STREAM);
  SimDevice& device = sim_driver().device(ordinal);
  const auto resources = sim_driver().descriptors.find(descriptor);
  require(resources != nullptr);
  require(resources->device == ordinal, CUDA_ERROR_INVALID_DEVICE);
  sim_driver().captures.forbid_unsafe();
  CUcontext primary = nullptr;
  cuDevicePrimaryCtxRetain(&primary, ordinal);
  auto green = std::make_shared<GreenContext>();
  {
    const std::lock_guard lock(device.context_mutex);
    green->context = device.primary;
  }
  green->processors = resources->processors;
  green->handle = sim_driver().green_contexts.insert(green);
  *handle = green->handle;
}

void calls::cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx handle) {
  require(context != nullptr);
  const auto green = find_green(handle);
  green->is_context = true;
  *context = green->as_context();
}

/// Work of its streams is finished first. The streams stay, and every use of one fails.
void calls::cuGreenCtxDestroy(CUgreenCtx handle) {
  const auto green = find_green(handle);
  sim_driver().captures.forbid_unsafe();
  sim_driver().queues.finish(*green->context);
  sim_driver().green_contexts.remove(handle);
  green->destroyed = true;
  cuDevicePrimaryCtxRelease(green->context->device.ordinal);
}

void calls::cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* resource,
                                     CUdevResourceType type) {
  require(resource != nullptr);
  const auto green = find_green(handle);
  require(type == CU_DEV_RESOURCE_TYPE_SM, CUDA_ERROR_INVALID_RESOURCE_TYPE);
  Hidden hidden;
  hidden.device = green->context->device.ordinal;
  for (const std::uint32_t processor : green->processors) hidden.add(processor);
  *resource = make_resource(hidden);
}

void calls::cuGreenCtxStreamCreate(CUstream* handle, CUgreenCtx green_handle, unsigned int flags,
                                   int priority) {
  require(handle != nullptr && flags == CU_STREAM_NON_BLOCKING);
  auto green = find_green(green_handle);
  auto stream = std::make_shared<Stream>();
  stream->context = green->context;
  stream->green = std::move(green);
  stream->id = sim_driver().next_id();
  stream->flags = flags;
  stream->priority =
      std::clamp(priority, device_profile().priority_greatest, device_profile().priority_least);
  *handle = sim_driver().streams.insert(std::move(stream));
}

void calls::cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* handle) {
  require(handle != nullptr);
  const auto green = use_stream(stream).stream->green;
  *handle = green == nullptr ? nullptr : green->handle;
}

}  // namespace kernwright::sim
