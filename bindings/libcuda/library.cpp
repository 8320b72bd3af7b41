// Libraries of kernels: their modules in each context, and handles.
#include "libcuda/library.h"

#include "sim/device/handle_table.h"

namespace kernwright::libcuda {
namespace {

using sim::driver_api;

sim::HandleTable<CUlibrary, Library>& libraries() {
  static auto* const table = new sim::HandleTable<CUlibrary, Library>(11);
  return *table;
}
sim::HandleTable<CUkernel, Library::Kernel>& kernel_table() {
  static auto* const table = new sim::HandleTable<CUkernel, Library::Kernel>(12);
  return *table;
}

/// The kernels' names, in the module's order.
CUresult list_names(CUmodule module, std::vector<std::string>& names) {
  const DriverApi& api = driver_api();
  unsigned int count = 0;
  if (const CUresult result = api.cuModuleGetFunctionCount(&count, module); result != CUDA_SUCCESS)
    return result;
  std::vector<CUfunction> functions(count);
  if (count == 0) return CUDA_SUCCESS;
  const CUresult listed = api.cuModuleEnumerateFunctions(functions.data(), count, module);
  if (listed != CUDA_SUCCESS) return listed;
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    if (const CUresult result = api.cuFuncGetName(&name, function); result != CUDA_SUCCESS)
      return result;
    names.emplace_back(name);
  }
  return CUDA_SUCCESS;
}

}  // namespace

ContextScope::ContextScope() {
  CUcontext current = nullptr;
  result_ = driver_api().cuCtxGetCurrent(&current);
  if (result_ == CUDA_SUCCESS && current == nullptr) enter();
}

ContextScope::ContextScope(CUdevice device) : device_(device) { enter(); }

void ContextScope::enter() {
  CUcontext context = nullptr;
  result_ = driver_api().cuDevicePrimaryCtxRetain(&context, device_);
  if (result_ != CUDA_SUCCESS) return;
  result_ = driver_api().cuCtxPushCurrent(context);
  entered_ = result_ == CUDA_SUCCESS;
  if (!entered_) driver_api().cuDevicePrimaryCtxRelease(device_);
}

ContextScope::~ContextScope() {
  if (!entered_) return;
  driver_api().cuCtxPopCurrent(nullptr);
  driver_api().cuDevicePrimaryCtxRelease(device_);
}

CUresult Library::load(unsigned long long context, CUmodule* module) {
  if (const auto found = modules_.find(context); found != modules_.end()) {
    *module = found->second;
    return CUDA_SUCCESS;
  }
  const CUresult result = driver_api().cuModuleLoadData(module, text_.c_str());
  if (result == CUDA_SUCCESS) modules_[context] = *module;
  return result;
}

CUresult Library::module(CUmodule* module) {
  unsigned long long context = 0;
  const CUresult result = driver_api().cuCtxGetId(nullptr, &context);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  return load(context, module);
}

CUresult Library::adopt(CUmodule module) {
  unsigned long long context = 0;
  const CUresult result = driver_api().cuCtxGetId(nullptr, &context);
  if (result == CUDA_SUCCESS) modules_[context] = module;
  return result;
}

CUresult Library::function(Kernel& kernel, CUfunction* function) {
  const DriverApi& api = driver_api();
  unsigned long long context = 0;
  CUresult result = api.cuCtxGetId(nullptr, &context);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  if (const auto found = kernel.functions.find(context); found != kernel.functions.end()) {
    *function = found->second;
    return CUDA_SUCCESS;
  }
  CUmodule module = nullptr;
  CUdevice device = 0;
  result = load(context, &module);
  if (result == CUDA_SUCCESS)
    result = api.cuModuleGetFunction(function, module, kernel.name.c_str());
  if (result == CUDA_SUCCESS) result = api.cuCtxGetDevice(&device);
  if (result != CUDA_SUCCESS) return result;
  for (const auto& [key, value] : kernel.settings) {
    if (key.first == device) api.cuFuncSetAttribute(*function, key.second, value);
  }
  kernel.functions[context] = *function;
  return CUDA_SUCCESS;
}

CUresult Library::set(Kernel& kernel, CUdevice device, CUfunction_attribute attribute, int value) {
  const ContextScope scope(device);
  CUfunction loaded = nullptr;
  CUresult result = scope.result();
  if (result == CUDA_SUCCESS) result = function(kernel, &loaded);
  if (result == CUDA_SUCCESS) result = driver_api().cuFuncSetAttribute(loaded, attribute, value);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  kernel.settings[{device, attribute}] = value;
  return CUDA_SUCCESS;
}

/// Modules of dead contexts went with them.
void Library::unload() {
  const ContextScope scope;
  const std::lock_guard lock(mutex_);
  for (const auto& [context, module] : modules_) driver_api().cuModuleUnload(module);
  modules_.clear();
}

CUresult make_library(std::string text, CUmodule module, CUlibrary* handle) {
  std::vector<std::string> names;
  const auto library = std::make_shared<Library>(std::move(text));
  CUresult result = list_names(module, names);
  if (result == CUDA_SUCCESS) result = library->adopt(module);
  if (result != CUDA_SUCCESS) return result;
  *handle = libraries().insert(library);
  for (std::string& name : names) {
    auto kernel = std::make_shared<Library::Kernel>();
    kernel->library = library;
    kernel->handle = *handle;
    kernel->name = name;
    library->kernels.emplace_back(std::move(name), kernel_table().insert(std::move(kernel)));
  }
  return CUDA_SUCCESS;
}

CUresult end_library(CUlibrary handle) {
  const auto library = libraries().remove(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, kernel] : library->kernels) kernel_table().remove(kernel);
  library->unload();
  return CUDA_SUCCESS;
}

std::shared_ptr<Library> find_library(CUlibrary handle) { return libraries().find(handle); }
std::shared_ptr<Library::Kernel> find_kernel(CUkernel handle) {
  return kernel_table().find(handle);
}

CUfunction kernel_function(CUfunction handle) {
  const auto kernel = find_kernel(reinterpret_cast<CUkernel>(handle));
  if (kernel == nullptr) return handle;
  const auto library = kernel->library.lock();
  CUfunction function = nullptr;
  if (library == nullptr || library->function(*kernel, &function) != CUDA_SUCCESS) return handle;
  return function;
}

}  // namespace kernwright::libcuda
