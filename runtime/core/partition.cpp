// One split of each device's multiprocessors, and partitions made of its groups.
#include "core/partition.h"

#include "base/format.h"
#include "base/log_sink.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "core/per_device.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

namespace kernwright {
namespace {

/// Parts of a device's split: places in its list of groups, and perhaps the remainder.
struct Parts {
  std::vector<std::size_t> groups;
  bool remainder = false;
};

/// The device's multiprocessors in equal groups of the smallest size, and a remainder. Parts are
/// taken and given back; the split itself stays. Thread-safe.
class SplitDevice {
 public:
  /// Splits at the first call that succeeds.
  void prepare(Device& device);
  PartitionRules rules() const;
  /// Parts for each request, all of them or none.
  std::vector<Parts> take(const Device& device, std::span<const PartitionRequest> requests);
  void give_back(const Parts& parts) noexcept;
  std::vector<CUdevResource> resources(const Parts& parts) const;

 private:
  int remainder_size() const { return has_remainder_ ? multiprocessor_count(remainder_) : 0; }
  int free_locked() const;
  [[noreturn]] void refuse(const Device& device, std::span<const PartitionRequest> requests) const;
  static int multiprocessor_count(const CUdevResource& resource) {
    return static_cast<int>(resource.sm.smCount);
  }

  mutable std::mutex mutex_;
  CUdevResource whole_{};
  std::vector<CUdevResource> groups_;
  CUdevResource remainder_{};
  bool has_remainder_ = false;
  int unit_ = 0;  ///< multiprocessors of a group
  std::vector<bool> taken_;
  bool remainder_taken_ = false;
};

PerDevice<SplitDevice>& split_devices() {
  static auto* const all = new PerDevice<SplitDevice>;  // devices live for good
  return *all;
}

[[noreturn]] void fail_split(Device& device, CUresult result, const char* call) {
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    throw DriverError(
        format("{} cannot be partitioned: its driver, of CUDA {}.{}, has no green contexts ({}); "
               "they need CUDA 12.5 and driver 555 or newer. Priorities of streams work without",
               device.identify(), device.driver_version() / 1000,
               device.driver_version() % 1000 / 10, call),
        result, "CUDA_ERROR_NOT_SUPPORTED");
  }
  device.fail(result, call);
}

void SplitDevice::prepare(Device& device) {
  const std::lock_guard lock(mutex_);
  if (unit_ != 0) return;
  const DriverApi& api = device.driver();
  const ContextGuard guard(device);
  CUdevResource whole{};
  CUresult result = api.cuDeviceGetDevResource(device.handle(), &whole, CU_DEV_RESOURCE_TYPE_SM);
  if (result != CUDA_SUCCESS) fail_split(device, result, "cuDeviceGetDevResource");
  const unsigned least = std::max(1u, whole.sm.minSmPartitionSize);
  unsigned count = 0;
  result = api.cuDevSmResourceSplitByCount(nullptr, &count, &whole, nullptr, 0, least);
  if (result != CUDA_SUCCESS) fail_split(device, result, "cuDevSmResourceSplitByCount");
  std::vector<CUdevResource> groups(count);
  CUdevResource remainder{};
  result = api.cuDevSmResourceSplitByCount(groups.data(), &count, &whole, &remainder, 0, least);
  if (result != CUDA_SUCCESS) fail_split(device, result, "cuDevSmResourceSplitByCount");
  groups.resize(count);
  if (groups.empty()) fail_split(device, CUDA_ERROR_NOT_SUPPORTED, "cuDevSmResourceSplitByCount");
  whole_ = whole;
  remainder_ = remainder;
  has_remainder_ = remainder.type == CU_DEV_RESOURCE_TYPE_SM && remainder.sm.smCount != 0;
  taken_.assign(groups.size(), false);
  unit_ = multiprocessor_count(groups.front());
  groups_ = std::move(groups);
}

int SplitDevice::free_locked() const {
  const auto groups = std::count(taken_.begin(), taken_.end(), false);
  return static_cast<int>(groups) * unit_ + (remainder_taken_ ? 0 : remainder_size());
}

PartitionRules SplitDevice::rules() const {
  const std::lock_guard lock(mutex_);
  return {.supported = true,
          .multiprocessors = multiprocessor_count(whole_),
          .minimum = unit_,
          .alignment = unit_,
          .free = free_locked()};
}

void SplitDevice::refuse(const Device& device, std::span<const PartitionRequest> requests) const {
  std::string sizes;
  int needed = 0;
  for (const PartitionRequest& request : requests) {
    const int rounded = (request.multiprocessors + unit_ - 1) / unit_ * unit_;
    needed += std::max(rounded, unit_);
    sizes += format("{}{}", sizes.empty() ? "" : ", ",
                    request.multiprocessors == 0
                        ? "all that are left"
                        : format("{} (rounded to {})", request.multiprocessors, rounded));
  }
  const auto groups = std::count(taken_.begin(), taken_.end(), false);
  const int remainder = remainder_taken_ ? 0 : remainder_size();
  throw PartitionError(
      format("{} partition{} of {} multiprocessors need{} {}, and {} has {} free: {} group{} of {} "
             "and a remainder of {}, which one partition may take; a partition has at least {} "
             "and multiples of {}. Ask for less, or drop another partition",
             requests.size(), requests.size() == 1 ? "" : "s", sizes,
             requests.size() == 1 ? "s" : "", needed, device.identify(), free_locked(), groups,
             groups == 1 ? "" : "s", unit_, remainder, unit_, unit_),
      needed, free_locked(), unit_, unit_);
}

/// Groups for so many multiprocessors.
std::size_t groups_for(int multiprocessors, int unit) {
  return static_cast<std::size_t>(std::max(0, multiprocessors) + unit - 1) /
         static_cast<std::size_t>(unit);
}

std::vector<Parts> SplitDevice::take(const Device& device,
                                     std::span<const PartitionRequest> requests) {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i]) free.push_back(i);
  }
  const int remainder = remainder_taken_ ? 0 : remainder_size();
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> wanted(requests.size());  // groups of each
  std::size_t rest = kNone, saver = kNone, saved = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const int asked = requests[i].multiprocessors;
    if (asked == 0) rest = i;
    wanted[i] = groups_for(asked, unit_);
    const std::size_t fewer = wanted[i] - groups_for(asked - remainder, unit_);
    if (fewer <= saved) continue;  // with the remainder it needs so many groups less
    saved = fewer;
    saver = i;
  }
  std::size_t sum = std::accumulate(wanted.begin(), wanted.end(), std::size_t{0});
  const auto fits = [&](bool is_remainder_left) {
    const bool is_some_left = sum < free.size() || (is_remainder_left && remainder != 0);
    return sum <= free.size() && (rest == kNone || is_some_left);
  };
  std::size_t holder = rest;  // who gets the remainder; without need for it, it stays for later
  if (!fits(true)) {
    if (saver == kNone) refuse(device, requests);
    wanted[saver] -= saved;
    sum -= saved;
    holder = saver;
    if (!fits(false)) refuse(device, requests);
  }
  if (rest != kNone) wanted[rest] = free.size() - sum;
  std::vector<Parts> parts(requests.size());
  auto next = free.begin();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (std::size_t group = 0; group < wanted[i]; ++group) parts[i].groups.push_back(*next++);
    parts[i].remainder = i == holder && remainder != 0;
    for (const std::size_t group : parts[i].groups) taken_[group] = true;
    remainder_taken_ = remainder_taken_ || parts[i].remainder;
  }
  return parts;
}

void SplitDevice::give_back(const Parts& parts) noexcept {
  const std::lock_guard lock(mutex_);
  for (const std::size_t group : parts.groups) taken_[group] = false;
  if (parts.remainder) remainder_taken_ = false;
}

std::vector<CUdevResource> SplitDevice::resources(const Parts& parts) const {
  std::vector<CUdevResource> list;
  for (const std::size_t group : parts.groups) list.push_back(groups_[group]);
  if (parts.remainder) list.push_back(remainder_);
  return list;
}

void require_valid(std::span<const PartitionRequest> requests) {
  if (requests.empty()) throw InvalidArgument("partitions of nothing: name a size for each");
  int rests = 0;
  for (const PartitionRequest& request : requests) {
    if (request.multiprocessors < 0) {
      throw InvalidArgument(
          format("a partition of {} multiprocessors: name a positive number, or 0 "
                 "for all that are left",
                 request.multiprocessors));
    }
    if (!(request.share > 0 && request.share <= 1)) {
      throw InvalidArgument(
          format("a partition with a share of {}: above 0 and at most 1", request.share));
    }
    if (request.streams < 0) {
      throw InvalidArgument(
          format("a partition with at most {} streams: name a positive number, or "
                 "0 for no limit",
                 request.streams));
    }
    if (request.multiprocessors == 0 && ++rests == 2) {
      throw InvalidArgument("two partitions of all multiprocessors that are left: only one can be");
    }
  }
}

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

struct Partition::Box {
  Box(Device& its_device, SplitDevice& its_split, Parts its_parts, PartitionRequest its_request)
      : device(its_device),
        split(its_split),
        parts(std::move(its_parts)),
        request(its_request),
        id(next_id()) {}
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  ~Box();

  std::string identify() const {
    return format("partition {} ({} multiprocessors) of {}", id, multiprocessors,
                  device.identify());
  }
  void create();
  bool wait_for_streams() noexcept;

  Device& device;
  SplitDevice& split;
  const Parts parts;
  const PartitionRequest request;
  const std::uint64_t id;
  CUgreenCtx handle = nullptr;
  int multiprocessors = 0;
  std::mutex mutex;          ///< guards the rest
  int streams = 0;           ///< alive
  std::vector<Event> tails;  ///< ends of the work of streams that are gone
};

void Partition::Box::create() {
  const ContextGuard guard(device);
  const RelaxedCapture relaxed(device);
  const DriverApi& api = device.driver();
  std::vector<CUdevResource> resources = split.resources(parts);
  for (const CUdevResource& resource : resources) {
    multiprocessors += static_cast<int>(resource.sm.smCount);
  }
  CUdevResourceDesc descriptor = nullptr;
  CUresult result = api.cuDevResourceGenerateDesc(&descriptor, resources.data(),
                                                  static_cast<unsigned>(resources.size()));
  if (result != CUDA_SUCCESS) fail_split(device, result, "cuDevResourceGenerateDesc");
  result = api.cuGreenCtxCreate(&handle, descriptor, device.handle(), CU_GREEN_CTX_DEFAULT_STREAM);
  if (result != CUDA_SUCCESS) fail_split(device, result, "cuGreenCtxCreate");
  // Until somebody asks for it, the driver refuses the context that nodes of its graphs tell.
  CUcontext context = nullptr;
  result = api.cuCtxFromGreenCtx(&context, handle);
  if (result != CUDA_SUCCESS) fail_split(device, result, "cuCtxFromGreenCtx");
  CUdevResource given{};
  result = api.cuGreenCtxGetDevResource(handle, &given, CU_DEV_RESOURCE_TYPE_SM);
  if (result != CUDA_SUCCESS) fail_split(device, result, "cuGreenCtxGetDevResource");
  multiprocessors = static_cast<int>(given.sm.smCount);
}

/// False when the work cannot be waited for, so that the context must not be destroyed.
bool Partition::Box::wait_for_streams() noexcept {
  try {
    for (const Event& tail : tails) tail.synchronize();
    tails.clear();
    return true;
  } catch (const DeviceFault&) {
    device.keep_fault(std::current_exception());
    return true;
  } catch (const std::exception& error) {
    log_release_failure("partition", error.what());
    return false;
  }
}

Partition::Box::~Box() {
  if (handle != nullptr) {
    ReleaseGuard guard(device);
    if (!guard || !wait_for_streams()) return;  // the multiprocessors stay taken
    const RelaxedCapture relaxed(device);
    const CUresult result = device.driver().cuGreenCtxDestroy(handle);
    guard.report(result, "cuGreenCtxDestroy");
    if (result != CUDA_SUCCESS) return;
  }
  split.give_back(parts);
}

PartitionRules partition_rules(Device& device) {
  SplitDevice& split = split_devices()[device];
  try {
    split.prepare(device);
    return split.rules();
  } catch (const DriverError& error) {
    if (error.code != CUDA_ERROR_NOT_SUPPORTED) throw;
    return {.multiprocessors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)};
  }
}

std::vector<Partition> Partition::make(Device& device, std::span<const PartitionRequest> requests) {
  require_valid(requests);
  device.require_usable();
  SplitDevice& split = split_devices()[device];
  split.prepare(device);
  std::vector<Parts> parts = split.take(device, requests);
  std::vector<std::shared_ptr<Box>> boxes;  // own the parts, also where one of them fails
  for (std::size_t i = 0; i < requests.size(); ++i) {
    boxes.push_back(std::make_shared<Box>(device, split, std::move(parts[i]), requests[i]));
  }
  std::vector<Partition> made;
  for (const std::shared_ptr<Box>& box : boxes) {
    box->create();
    made.push_back(Partition(box));
  }
  return made;
}

Partition::Box& Partition::box() const {
  if (box_ == nullptr) {
    throw InvalidArgument("an empty partition has no device: make one with Partition::make()");
  }
  return *box_;
}

Device& Partition::device() const { return box().device; }

std::uint64_t Partition::id() const noexcept { return box_ == nullptr ? 0 : box_->id; }

std::string Partition::identify() const { return box().identify(); }

int Partition::multiprocessors() const { return box().multiprocessors; }

const PartitionRequest& Partition::request() const { return box().request; }

int Partition::live_streams() const {
  Box& self = box();
  const std::lock_guard lock(self.mutex);
  return self.streams;
}

Stream Partition::stream(int priority) const { return Stream::create(*this, priority); }

CUstream Partition::open_stream(int priority) const {
  Box& self = box();
  const std::lock_guard lock(self.mutex);
  if (self.request.streams != 0 && self.streams >= self.request.streams) {
    throw PartitionError(format("{} has {} streams alive, and at most {} were asked for: drop one",
                                self.identify(), self.streams, self.request.streams),
                         0, 0, 0, 0);
  }
  CUstream handle = nullptr;
  const CUresult result = self.device.driver().cuGreenCtxStreamCreate(
      &handle, self.handle, CU_STREAM_NON_BLOCKING, priority);
  if (result != CUDA_SUCCESS) fail_split(self.device, result, "cuGreenCtxStreamCreate");
  ++self.streams;
  return handle;
}

void Partition::close_stream(CUstream handle) const noexcept {
  Box& self = *box_;
  std::vector<Event> done;  // dropped after the lock
  {
    const std::lock_guard lock(self.mutex);
    --self.streams;
  }
  try {
    Event tail(self.device, false);
    tail.record(Stream::borrow(self.device, handle, std::make_shared<int>()));
    const std::lock_guard lock(self.mutex);
    const auto over = std::stable_partition(self.tails.begin(), self.tails.end(),
                                            [](const Event& event) { return !event.done(); });
    done.assign(over, self.tails.end());
    self.tails.erase(over, self.tails.end());
    self.tails.push_back(std::move(tail));
  } catch (const std::exception& error) {
    log_release_failure("the end of a partition's stream", error.what());
    self.device.driver().cuStreamSynchronize(handle);  // what fails there has been told
  }
}

}  // namespace kernwright
