// Loading object code, and messages that say why a driver refused it.
#include "core/module.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/image/image_info.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

namespace kernwright {
namespace {

constexpr std::size_t kLogBytes = 16384;

/// Buffers for the messages of the driver's compiler and linker, and the options with their
/// addresses. Of the buffers only the ends are cleared: most loads have no message.
struct LoadLog {
  LoadLog() { error[0] = info[0] = error[kLogBytes] = info[kLogBytes] = '\0'; }

  std::unique_ptr<char[]> error = std::make_unique_for_overwrite<char[]>(kLogBytes + 1);
  std::unique_ptr<char[]> info = std::make_unique_for_overwrite<char[]>(kLogBytes + 1);
  std::array<CUjit_option, 4> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                      CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  // NOTE: the driver reads the sizes from the pointers themselves and writes the used sizes there.
  std::array<void*, 4> values{error.get(), reinterpret_cast<void*>(kLogBytes), info.get(),
                              reinterpret_cast<void*>(kLogBytes)};

  std::string text() const {
    std::string log(error.get());
    if (info[0] != '\0') log += (log.empty() ? "" : "\n") + std::string(info.get());
    while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
    return log;
  }
};

std::string explain_refusal(const Device& device, CUresult result) {
  const int capability = device.compute_capability().number();
  const int version = device.driver_version();
  const std::string driver = format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  switch (result) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return format(
          "{} has compute capability {}.{}: compile for sm_{}, or leave the "
          "architecture out",
          device.identify(), capability / 10, capability % 10, capability);
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION: {
      const std::string newest = newest_driver_ptx(version);
      return format(
          "the driver ({}) reads PTX up to {}: compile to a cubin (sm_{}) instead, use "
          "an NVRTC no newer than the driver, or update the driver",
          driver, newest.empty() ? "an older version" : newest, capability);
    }
    case CUDA_ERROR_INVALID_PTX:
      return format(
          "the driver's PTX compiler ({}) does not accept it: see the log, and compile "
          "to a cubin (sm_{}) to get the compiler's own message",
          driver, capability);
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_SOURCE:
      return format(
          "the driver ({}) cannot read it: the bytes are damaged, of another kind, or of "
          "a newer format; compile again for sm_{}, or update the driver",
          driver, capability);
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
      return format(
          "the driver ({}) comes without its PTX compiler (libnvidia-ptxjitcompiler): "
          "compile to a cubin (sm_{}) instead, or install the whole driver",
          driver, capability);
    default:
      return {};
  }
}

[[noreturn]] void throw_load_error(Device& device, CUresult result, std::string_view image,
                                   const std::string& log, const SourceOrigin& origin) {
  const ImageInfo info = describe_image(image);
  const std::string advice = explain_refusal(device, result);
  // Other errors may be a report of the simulated device, a sticky error or lack of memory: check()
  // knows. It also comes first on the simulated device.
  if (advice.empty() || device.is_simulated()) {
    device.fail(result, "cuModuleLoadDataEx",
                info.to_string() + (log.empty() ? "" : "; log: " + log), origin);
  }
  const char* name = result_name(result);
  throw DriverError(format("{} refused {} of {} bytes: {}; {}{}{}", device.identify(),
                           info.to_string(), image.size(), describe_result(device.driver(), result),
                           advice, log.empty() ? "" : "\nThe driver's log:\n", log),
                    result, name != nullptr ? name : "");
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

struct Module::Box {
  Box(Device& d, SourceOrigin o) : device(d), origin(std::move(o)) {}
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  ~Box() {
    if (handle == nullptr) return;
    ReleaseGuard guard(device);
    const RelaxedCapture relaxed(device);
    if (guard) guard.report(device.driver().cuModuleUnload(handle), "cuModuleUnload");
  }

  /// Without the driver's answer: a simulated device that refuses keeps its estimates.
  void set_resources(std::string_view cubin) const {
    device.driver().kwSetModuleResources(handle, cubin.data(), cubin.size());
  }

  Device& device;
  const SourceOrigin origin;
  CUmodule handle = nullptr;
  std::size_t bytes = 0;
  ResourceCubin make_cubin;  ///< null: the kernels' resources are known
  mutable std::once_flag cubin_made;
};

Module Module::load(Device& device, std::string_view image, std::string_view resource_cubin,
                    SourceOrigin origin, ResourceCubin make_cubin) {
  if (image.empty()) throw InvalidArgument("cannot load an empty image");
  const bool is_binary = is_cubin(image);
  const std::string terminated = is_binary ? std::string() : std::string(image);
  auto box = std::make_shared<Box>(device, std::move(origin));
  LoadLog log;
  const ContextGuard guard(device);
  const RelaxedCapture relaxed(device);
  CUmodule loaded = nullptr;
  const CUresult result = device.driver().cuModuleLoadDataEx(
      &loaded, is_binary ? image.data() : terminated.c_str(),
      static_cast<unsigned>(log.options.size()), log.options.data(), log.values.data());
  if (result != CUDA_SUCCESS) {
    throw_load_error(device, result, image, log.text(), box->origin);
  }
  box->handle = loaded;
  box->bytes = image.size();
  if (device.is_simulated() && (make_cubin || !resource_cubin.empty())) {
    box->set_resources(resource_cubin);
    if (resource_cubin.empty()) box->make_cubin = std::move(make_cubin);
  }
  return Module(std::move(box));
}

bool Module::makes_cubin() const noexcept { return box_->make_cubin != nullptr; }

void Module::complete_resources() const {
  if (!makes_cubin()) return;
  std::call_once(box_->cubin_made, [&] {
    const std::string cubin = box_->make_cubin();
    const ContextGuard guard(box_->device);
    box_->set_resources(cubin);
  });
}

Device& Module::device() const { return box_->device; }

CUmodule Module::handle() const noexcept { return box_->handle; }

std::size_t Module::bytes() const noexcept { return box_->bytes; }

const SourceOrigin& Module::origin() const noexcept { return box_->origin; }

CUfunction Module::function(const std::string& name) const {
  Device& device = box_->device;
  const ContextGuard guard(device);
  CUfunction found = nullptr;
  const CUresult result = device.driver().cuModuleGetFunction(&found, box_->handle, name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) {
    const std::vector<std::string> names = function_names();
    throw NameNotFound(format("the module has no kernel named '{}'{}{}", name,
                              names.empty() ? "" : "; it has ", join(names)));
  }
  device.check(result, "cuModuleGetFunction", name);
  return found;
}

ModuleSymbol Module::symbol(const std::string& name) const {
  Device& device = box_->device;
  const ContextGuard guard(device);
  ModuleSymbol found;
  const CUresult result =
      device.driver().cuModuleGetGlobal(&found.address, &found.size, box_->handle, name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) {
    throw NameNotFound(
        format("the module has no variable named '{}': it must be declared __device__ or "
               "__constant__, and a name without extern \"C\" is mangled",
               name));
  }
  device.check(result, "cuModuleGetGlobal", name);
  return found;
}

std::vector<std::string> Module::function_names() const {
  Device& device = box_->device;
  const DriverApi& api = device.driver();
  const ContextGuard guard(device);
  unsigned count = 0;
  if (api.cuModuleGetFunctionCount(&count, box_->handle) != CUDA_SUCCESS) return {};
  std::vector<CUfunction> functions(count);
  if (count == 0 ||
      api.cuModuleEnumerateFunctions(functions.data(), count, box_->handle) != CUDA_SUCCESS) {
    return {};
  }
  std::vector<std::string> names;
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    if (api.cuFuncGetName(&name, function) == CUDA_SUCCESS) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kernwright
