// A device's properties, its primary context, and what the driver's results mean on it.
#include "core/device.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device_state.h"
#include "core/graph/capture.h"

#include <exception>
#include <future>
#include <thread>
#include <utility>

namespace kernwright {

Device::Device(DeviceRegistry& registry, const DriverApi& api, bool simulated, int ordinal,
               CUdevice device, int generation)
    : registry_(registry),
      api_(api),
      simulated_(simulated),
      ordinal_(ordinal),
      device_(device),
      generation_(generation),
      state_(std::make_unique<State>()) {
  for (auto& value : state_->attributes) value.store(kUnknownAttribute, std::memory_order_relaxed);
  std::array<char, 256> text{};
  check(api_.cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device_),
        "cuDeviceGetName");
  name_ = text.data();
}

Device::~Device() = default;

CUcontext Device::context() {
  const CUcontext ready = state_->context.load(std::memory_order_acquire);
  if (ready != nullptr) return ready;
  require_usable();
  const std::lock_guard lock(state_->mutex);
  CUcontext made = state_->context.load(std::memory_order_relaxed);
  if (made == nullptr) {
    const CUresult result = api_.cuDevicePrimaryCtxRetain(&made, device_);
    if (result != CUDA_SUCCESS) {
      throw DriverError(format("cannot create a context on {}: cuDevicePrimaryCtxRetain: {}",
                               identify(), describe_result(api_, result)),
                        result, result_name(result) != nullptr ? result_name(result) : "");
    }
    state_->context.store(made, std::memory_order_release);
  }
  return made;
}

std::string Device::label() const { return format("{}:{}", simulated_ ? "sim" : "cuda", ordinal_); }

std::string Device::identify() const {
  return simulated_ ? label() : format("{} ({})", label(), name_);
}

std::string Device::uuid() const {
  CUuuid uuid{};
  const CUresult result = api_.cuDeviceGetUuid(&uuid, device_);
  if (result != CUDA_SUCCESS) const_cast<Device*>(this)->fail(result, "cuDeviceGetUuid");
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string Device::pci_bus_id() const {
  std::array<char, 64> text{};
  const CUresult result =
      api_.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()) - 1, device_);
  if (result != CUDA_SUCCESS) const_cast<Device*>(this)->fail(result, "cuDeviceGetPCIBusId");
  return text.data();
}

ComputeCapability Device::compute_capability() const {
  return {attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
          attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
}

int Device::attribute(CUdevice_attribute which) const {
  const bool cached = which >= 0 && which < kCachedAttributes;
  if (cached) {
    const int known = state_->attributes[which].load(std::memory_order_relaxed);
    if (known != kUnknownAttribute) return known;
  }
  require_usable();
  int value = 0;
  const CUresult result = api_.cuDeviceGetAttribute(&value, which, device_);
  if (result != CUDA_SUCCESS) {
    const_cast<Device*>(this)->fail(result, "cuDeviceGetAttribute",
                                    format("attribute {}", static_cast<int>(which)));
  }
  if (cached) state_->attributes[which].store(value, std::memory_order_relaxed);
  return value;
}

int Device::driver_version() const {
  int version = 0;
  const CUresult result = api_.cuDriverGetVersion(&version);
  if (result != CUDA_SUCCESS) const_cast<Device*>(this)->fail(result, "cuDriverGetVersion");
  return version;
}

MemoryInfo Device::memory_info() {
  const ContextGuard guard(*this);
  const RelaxedCapture relaxed(*this);
  std::size_t free = 0;
  std::size_t total = 0;
  check(api_.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return {free, total};
}

void Device::synchronize(std::optional<std::chrono::nanoseconds> timeout) {
  refuse_during_capture(*this, "synchronize()");
  const std::uint64_t launched = history_.position();
  if (!timeout) {
    const ContextGuard guard(*this);
    check(api_.cuCtxSynchronize(), "cuCtxSynchronize");
  } else {
    check(synchronize_within(*timeout), "cuCtxSynchronize");
  }
  history_.forget_until(launched);
  raise_kept_fault();
}

void Device::keep_fault(std::exception_ptr fault) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->kept_fault == nullptr) state_->kept_fault = std::move(fault);
  keeps_fault_.store(true, std::memory_order_relaxed);
}

void Device::throw_kept_fault() {
  std::exception_ptr fault;
  {
    const std::lock_guard lock(state_->mutex);
    fault = std::exchange(state_->kept_fault, nullptr);
    keeps_fault_.store(false, std::memory_order_relaxed);
  }
  if (fault != nullptr) std::rethrow_exception(fault);
}

CUresult Device::synchronize_within(std::chrono::nanoseconds timeout) {
  require_usable();
  context();
  // The driver offers no bounded wait for a whole context: a helper thread waits, and is left
  // behind when the time is up. It holds nothing but the device, which lives as long as the
  // process.
  struct End {
    CUresult result = CUDA_SUCCESS;
    std::exception_ptr failure;
  };
  auto done = std::make_shared<std::promise<End>>();
  std::future<End> outcome = done->get_future();
  std::thread([this, done] {
    End end;
    try {
      const ContextGuard guard(*this);
      end.result = api_.cuCtxSynchronize();
    } catch (...) {
      end.failure = std::current_exception();
    }
    done->set_value(std::move(end));  // the last thing: whoever waits may be about to exit
  }).detach();
  if (outcome.wait_for(timeout) == std::future_status::ready) {
    End end = outcome.get();
    if (end.failure) std::rethrow_exception(std::move(end.failure));
    return end.result;
  }
  const std::string launches = history_.describe();
  throw Timeout(format("{} is not done after {} s{}{}", identify(),
                       std::chrono::duration<double>(timeout).count(),
                       launches.empty() ? "" : "; last launches: ", launches));
}

void Device::throw_fault(Fault report) {
  for (const LaunchHistory::Entry& entry : history_.entries()) {
    if (entry.kernel.lowered_hash != KernelTag::hash(report.kernel)) continue;
    report.place_texts([&](const std::string& file) {
      const bool is_text = entry.kernel.file_hash == KernelTag::hash(file);
      return is_text ? static_cast<int>(entry.kernel.first_line) : 1;
    });
    const std::string place = entry.site.to_string();
    if (!report.details.empty() && report.details.back() != '\n') report.details += '\n';
    report.details +=
        format("launched as {}{}{}", entry.kernel.name(), place.empty() ? "" : " at ", place);
    break;
  }
  const std::string text = report.to_string();
  switch (report.kind) {
    case FaultKind::timeout:
      throw Timeout(text);
    case FaultKind::interrupted:
      throw Interrupted(text);
    case FaultKind::unsupported:
      throw UnsupportedInstruction(text, report.opcode,
                                   report.line != 0 ? report.line : report.ptx_line);
    case FaultKind::invalid_ptx:
      throw DriverError(text, CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX");
    default:
      throw DeviceFault(std::move(report));
  }
}

void Device::fail(CUresult result, const char* call, const std::string& object,
                  const SourceOrigin& origin) {
  if (lost()) throw_lost();  // what a call still in progress says is of no interest any more
  if (simulated_) {
    Fault report;
    if (api_.kwTakeReport(state_->context.load(std::memory_order_relaxed), &report) ==
        CUDA_SUCCESS) {
      report.place_texts(
          [&](const std::string& file) { return file == origin.file ? origin.first_line : 1; });
      throw_fault(std::move(report));
    }
  }
  if (latch_if_sticky(result, call)) throw_lost();
  const std::string text =
      format("{} on {}{}{} failed: {}", call, identify(), object.empty() ? "" : ", ", object,
             describe_result(api_, result));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0;
    std::size_t total = 0;
    if (api_.cuMemGetInfo(&free, &total) != CUDA_SUCCESS) free = total = 0;
    throw OutOfMemory(format("{}; {} of {} bytes are free", text, free, total), 0, total - free,
                      total - free, free);
  }
  const char* name = result_name(result);
  throw DriverError(text, result, name != nullptr ? name : "");
}

std::string describe_result(const DriverApi& api, CUresult result) {
  const char* name = result_name(result);
  const char* text = nullptr;
  if (api.cuGetErrorString(result, &text) != CUDA_SUCCESS) text = nullptr;
  return format("{} ({}){}{}", name != nullptr ? name : "unknown result", static_cast<int>(result),
                text != nullptr ? ": " : "", text != nullptr ? text : "");
}

}  // namespace kernwright
