// Enumerating devices, and choosing one by index, by name or by KERNWRIGHT_DEVICE.
#include "core/device_registry.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "base/printable.h"
#include "core/device.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace kernwright {
namespace {

constexpr const char* kNoDriver = "CUDA driver not detected";
constexpr const char* kNoGpu = "no GPU devices found";

/// The part of a reason before its details.
std::string_view headline(std::string_view reason) { return reason.substr(0, reason.find(':')); }

std::optional<int> parse_index(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

constexpr std::string_view kUuidPrefix = "GPU-";

std::optional<unsigned> parse_hex(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A parsed device name: "auto", "cuda", "cuda:N", "sim" or "sim:N".
struct DeviceSelector {
  enum class Kind { automatic, cuda, sim };
  Kind kind = Kind::automatic;
  int index = -1;  ///< -1: the first one
};

std::optional<DeviceSelector> try_parse(std::string_view text) {
  if (text.empty() || text == "auto") return DeviceSelector{};
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  DeviceSelector request;
  if (word == "cuda") {
    request.kind = DeviceSelector::Kind::cuda;
  } else if (word == "sim") {
    request.kind = DeviceSelector::Kind::sim;
  } else {
    return std::nullopt;
  }
  if (colon == std::string_view::npos) return request;
  const std::optional<int> index = parse_index(text.substr(colon + 1));
  if (!index) return std::nullopt;
  request.index = *index;
  return request;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  const std::size_t last = text.rfind(':');
  if (dot == std::string_view::npos || last == std::string_view::npos || dot < last) {
    return std::nullopt;
  }
  const std::string_view front = text.substr(0, last);
  const std::size_t first = front.find(':');
  const auto domain = first == std::string_view::npos ? std::optional<unsigned>(0)
                                                      : parse_hex(front.substr(0, first));
  const auto bus = parse_hex(first == std::string_view::npos ? front : front.substr(first + 1));
  const auto slot = parse_hex(text.substr(last + 1, dot - last - 1));
  const auto function = parse_hex(text.substr(dot + 1));
  if (!domain || !bus || !slot || !function) return std::nullopt;
  return PciAddress{*domain, *bus, *slot, *function};
}

DeviceRegistry::DeviceRegistry(Options options) : options_(std::move(options)) {
  no_driver_ = options_.cuda == nullptr && headline(options_.cuda_reason) != kNoGpu;
  publish(cuda_, {});
  publish(sim_, {});
  if (options_.cuda != nullptr) {
    publish(cuda_, make_devices(*options_.cuda, false));
    options_.cuda_reason.clear();
    if (cuda_.load()->empty()) {
      options_.cuda_reason = format(
          "{}: the CUDA driver is installed but reports none; see what nvidia-smi says, and check "
          "CUDA_VISIBLE_DEVICES",
          kNoGpu);
    }
  } else if (options_.cuda_reason.empty()) {
    options_.cuda_reason = kNoDriver;
  }
}

DeviceRegistry::~DeviceRegistry() = default;

void DeviceRegistry::publish(std::atomic<const List*>& place, List list) {
  lists_.push_back(std::make_unique<const List>(std::move(list)));
  place.store(lists_.back().get(), std::memory_order_release);
}

Device& DeviceRegistry::replace(Device& old) {
  const std::lock_guard lock(mutex_);
  // An exception leaves the lists as they are, and at most a device unknown to all.
  owned_.push_back(std::unique_ptr<Device>(new Device(
      *this, old.driver(), old.is_simulated(), old.ordinal(), old.handle(), old.generation() + 1)));
  Device& made = *owned_.back();
  std::atomic<const List*>& place = old.is_simulated() ? sim_ : cuda_;
  List list = *place.load();
  std::replace(list.begin(), list.end(), &old, &made);
  publish(place, std::move(list));
  return made;
}

std::vector<Device*> DeviceRegistry::make_devices(const DriverApi& api, bool simulated) {
  int count = 0;
  const CUresult counted = api.cuDeviceGetCount(&count);
  if (counted == CUDA_ERROR_NO_DEVICE) return {};
  if (counted != CUDA_SUCCESS) {
    throw DriverError("cuDeviceGetCount failed: " + describe_result(api, counted), counted,
                      result_name(counted) != nullptr ? result_name(counted) : "");
  }
  std::vector<Device*> made;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice handle = 0;
    const CUresult result = api.cuDeviceGet(&handle, ordinal);
    if (result != CUDA_SUCCESS) {
      throw DriverError(format("cuDeviceGet({}) failed: {}", ordinal, describe_result(api, result)),
                        result, result_name(result) != nullptr ? result_name(result) : "");
    }
    owned_.push_back(std::unique_ptr<Device>(new Device(*this, api, simulated, ordinal, handle)));
    made.push_back(owned_.back().get());
  }
  return made;
}

namespace {

/// For the simulated device; its report names the wrong setting.
[[noreturn]] void refuse_start(const DriverApi& api, CUresult result) {
  Fault report;
  const bool told = api.kwTakeReport(nullptr, &report) == CUDA_SUCCESS && !report.message.empty();
  if (told && result == CUDA_ERROR_INVALID_VALUE) throw InvalidArgument(report.message);
  throw DriverError("the simulated device did not start: " + describe_result(api, result) +
                        (told ? ": " + report.message : ""),
                    result, result_name(result) != nullptr ? result_name(result) : "");
}

}  // namespace

const std::vector<Device*>& DeviceRegistry::simulated() {
  const std::lock_guard lock(mutex_);
  if (!sim_made_) {
    if (options_.sim != nullptr) {
      const DriverApi& api = options_.sim();
      const CUresult result = api.cuInit(0);
      if (result != CUDA_SUCCESS) refuse_start(api, result);
      publish(sim_, make_devices(api, true));
    }
    sim_made_ = true;
  }
  return *sim_.load();
}

const std::vector<Device*>& DeviceRegistry::devices() {
  const auto request = try_parse(options_.wanted);
  const auto kind = request ? request->kind : DeviceSelector::Kind::automatic;
  const List& cuda = *cuda_.load();
  if (kind == DeviceSelector::Kind::cuda) return cuda;
  if (kind == DeviceSelector::Kind::automatic && !cuda.empty()) return cuda;
  if (kind == DeviceSelector::Kind::automatic) log_fallback();
  return simulated();
}

const std::vector<Device*>& DeviceRegistry::require_cuda() {
  if (const List& cuda = *cuda_.load(); !cuda.empty()) return cuda;
  const std::string what = format(
      "{}. A GPU was asked for: install the NVIDIA driver and make a GPU visible, or use the "
      "simulated device (KERNWRIGHT_DEVICE=sim)",
      options_.cuda_reason);
  if (no_driver_) throw DriverNotFound(what);
  throw DeviceNotFound(what);
}

std::vector<Device*> DeviceRegistry::everything() {
  List list = *cuda_.load();
  const std::vector<Device*>& sim = simulated();
  list.insert(list.end(), sim.begin(), sim.end());
  return list;
}

std::string DeviceRegistry::list_devices() {
  std::string text;
  for (const Device* device : everything()) text += (text.empty() ? "" : ", ") + device->identify();
  return text.empty() ? "none" : text;
}

Device& DeviceRegistry::at(const std::vector<Device*>& list, int index, std::string_view asked) {
  if (index >= 0 && static_cast<std::size_t>(index) < list.size()) return *list[index];
  throw DeviceNotFound(format("no device {}: there {} {} of that kind; all devices: {}", asked,
                              list.size() == 1 ? "is" : "are", list.size(), list_devices()));
}

Device& DeviceRegistry::by_index(int index) {
  const std::vector<Device*>& list = devices();
  if (list.empty()) {
    const auto request = try_parse(options_.wanted);
    if (request && request->kind == DeviceSelector::Kind::cuda) require_cuda();
  }
  return at(list, index, std::to_string(index));
}

Device* DeviceRegistry::find_by_identity(std::string_view name) {
  if (name.starts_with(kUuidPrefix)) return find_by_uuid(name);
  const std::optional<PciAddress> wanted = parse_pci_address(name);
  if (!wanted) return nullptr;
  for (Device* device : everything()) {
    if (parse_pci_address(device->pci_bus_id()) == wanted) return device;
  }
  return nullptr;
}

/// The first digits are enough when they mean one device, as for CUDA_VISIBLE_DEVICES.
Device* DeviceRegistry::find_by_uuid(std::string_view name) {
  Device* found = nullptr;
  std::string matching;
  int count = 0;
  for (Device* device : everything()) {
    const std::string uuid = device->uuid();
    if (uuid == name) return device;
    if (name.size() <= kUuidPrefix.size() || !uuid.starts_with(name)) continue;
    found = device;
    ++count;
    matching += (matching.empty() ? "" : ", ") + format("{} ({})", uuid, device->identify());
  }
  if (count < 2) return found;
  throw DeviceNotFound(
      format("'{}' begins the UUIDs of {} devices: {}; give more digits", name, count, matching));
}

Device& DeviceRegistry::by_name(std::string_view name) {
  const auto request = try_parse(name);
  if (!request) {
    if (Device* device = find_by_identity(name)) return *device;
    throw DeviceNotFound(format(
        "'{}' names no device: use cuda, cuda:N, sim, sim:N, a UUID or a PCI bus id; there is: {}",
        printable(name), list_devices()));
  }
  switch (request->kind) {
    case DeviceSelector::Kind::cuda:
      return at(require_cuda(), std::max(request->index, 0), name);
    case DeviceSelector::Kind::sim:
      return at(simulated(), std::max(request->index, 0), name);
    case DeviceSelector::Kind::automatic:
      break;
  }
  if (const List& cuda = *cuda_.load(); !cuda.empty()) return *cuda.front();
  log_fallback();
  return at(simulated(), 0, "auto");
}

Device& DeviceRegistry::preferred() {
  try {
    return by_name(options_.wanted);
  } catch (const DriverNotFound& error) {
    throw DriverNotFound(format("KERNWRIGHT_DEVICE={}: {}", options_.wanted, error.what()));
  } catch (const DeviceNotFound& error) {
    if (options_.wanted.empty() || options_.wanted == "auto") throw;
    throw DeviceNotFound(format("KERNWRIGHT_DEVICE={}: {}", options_.wanted, error.what()));
  }
}

void DeviceRegistry::log_fallback() {
  if (options_.sim == nullptr || fallback_logged_.exchange(true)) return;
  log(LogLevel::warning, "{}: running on the simulated device", headline(options_.cuda_reason));
}

}  // namespace kernwright
