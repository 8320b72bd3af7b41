// The driver's functions of libraries and their kernels: cuLibrary..., cuKernel...
#include "libcuda/functions.h"
#include "libcuda/image_file.h"
#include "libcuda/library.h"

#include <algorithm>

namespace kernwright::libcuda {
namespace {

using sim::driver_api;

/// Options of libraries tell the parts to share with the caller; all is copied here.
CUresult load_data(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                   unsigned int count, int*, void**, unsigned int) {
  if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const DriverApi& api = driver_api();
  const ContextScope scope;
  if (scope.result() != CUDA_SUCCESS) return scope.result();
  CUmodule module = nullptr;
  CUresult result = api.cuModuleLoadDataEx(&module, code, count, options, values);
  if (result != CUDA_SUCCESS) return result;
  // The loaded PTX text, with a zero at its end.
  result = make_library(static_cast<const char*>(code), module, library);
  if (result != CUDA_SUCCESS) api.cuModuleUnload(module);
  return result;
}

CUresult load_file(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                   unsigned int count, int* library_options, void** library_values,
                   unsigned int library_count) {
  if (library == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string code;
  if (const CUresult result = read_image(path, code); result != CUDA_SUCCESS) return result;
  return load_data(library, code.c_str(), options, values, count, library_options, library_values,
                   library_count);
}

CUresult get_kernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  const auto library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [known, known_kernel] : library->kernels) {
    if (known != name) continue;
    *kernel = known_kernel;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult kernel_count(unsigned int* count, CUlibrary handle) {
  const auto library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned int>(library->kernels.size());
  return CUDA_SUCCESS;
}

CUresult enumerate(CUkernel* kernels, unsigned int count, CUlibrary handle) {
  const auto library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (kernels == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t number = std::min<std::size_t>(count, library->kernels.size());
  for (std::size_t i = 0; i < number; ++i) kernels[i] = library->kernels[i].second;
  return CUDA_SUCCESS;
}

CUresult get_module(CUmodule* module, CUlibrary handle) {
  const auto library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return module == nullptr ? CUDA_ERROR_INVALID_VALUE : library->module(module);
}

CUresult get_global(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
  CUmodule module = nullptr;
  const CUresult result = get_module(&module, handle);
  if (result != CUDA_SUCCESS) return result;
  return driver_api().cuModuleGetGlobal(address, bytes, module, name);
}

CUresult get_managed(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  unsigned int managed = 0;
  CUresult result = get_global(&begin, &size, handle, name);
  if (result != CUDA_SUCCESS) return result;
  result = driver_api().cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, begin);
  if (result != CUDA_SUCCESS || managed == 0) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = begin;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

/// The kernel's function in the current context.
CUresult get_function(CUfunction* function, CUkernel handle) {
  const auto kernel = find_kernel(handle);
  const auto library = kernel == nullptr ? nullptr : kernel->library.lock();
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return function == nullptr ? CUDA_ERROR_INVALID_VALUE : library->function(*kernel, function);
}

CUresult get_library(CUlibrary* library, CUkernel handle) {
  const auto kernel = find_kernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = kernel->handle;
  return CUDA_SUCCESS;
}

/// The text lives as long as the library.
CUresult get_name(const char** name, CUkernel handle) {
  const auto kernel = find_kernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult get_attribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                       CUdevice device) {
  const ContextScope scope(device);
  CUfunction function = nullptr;
  CUresult result = scope.result();
  if (result == CUDA_SUCCESS) result = get_function(&function, kernel);
  if (result != CUDA_SUCCESS) return result;
  return driver_api().cuFuncGetAttribute(value, attribute, function);
}

CUresult set_attribute(CUfunction_attribute attribute, int value, CUkernel handle,
                       CUdevice device) {
  const auto kernel = find_kernel(handle);
  const auto library = kernel == nullptr ? nullptr : kernel->library.lock();
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return library->set(*kernel, device, attribute, value);
}

CUresult set_cache_config(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  int threads = 0;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
    return CUDA_ERROR_INVALID_VALUE;
  return get_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device);
}

CUresult parameter_info(CUkernel kernel, std::size_t index, std::size_t* offset,
                        std::size_t* bytes) {
  const ContextScope scope;
  CUfunction function = nullptr;
  CUresult result = scope.result();
  if (result == CUDA_SUCCESS) result = get_function(&function, kernel);
  if (result != CUDA_SUCCESS) return result;
  return driver_api().cuFuncGetParamInfo(function, index, offset, bytes);
}

CUresult kernel_parameter_count(CUkernel kernel, std::size_t* count) {
  CUlibrary library = nullptr;
  if (const CUresult result = get_library(&library, kernel); result != CUDA_SUCCESS) return result;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::size_t offset = 0;
  *count = 0;
  while (parameter_info(kernel, *count, &offset, nullptr) == CUDA_SUCCESS) ++*count;
  return CUDA_SUCCESS;
}

}  // namespace

std::span<const Function> library_functions() {
  static const Function rows[] = {
      provide<load_data>("cuLibraryLoadData", "cuLibraryLoadData", 12000),
      provide<load_file>("cuLibraryLoadFromFile", "cuLibraryLoadFromFile", 12000),
      provide<end_library>("cuLibraryUnload", "cuLibraryUnload", 12000),
      provide<get_kernel>("cuLibraryGetKernel", "cuLibraryGetKernel", 12000),
      provide<kernel_count>("cuLibraryGetKernelCount", "cuLibraryGetKernelCount", 12040),
      provide<enumerate>("cuLibraryEnumerateKernels", "cuLibraryEnumerateKernels", 12040),
      provide<get_module>("cuLibraryGetModule", "cuLibraryGetModule", 12000),
      provide<get_global>("cuLibraryGetGlobal", "cuLibraryGetGlobal", 12000),
      provide<get_managed>("cuLibraryGetManaged", "cuLibraryGetManaged", 12000),
      provide<get_function>("cuKernelGetFunction", "cuKernelGetFunction", 12000),
      provide<get_library>("cuKernelGetLibrary", "cuKernelGetLibrary", 12050),
      provide<get_name>("cuKernelGetName", "cuKernelGetName", 12030),
      provide<get_attribute>("cuKernelGetAttribute", "cuKernelGetAttribute", 12000),
      provide<set_attribute>("cuKernelSetAttribute", "cuKernelSetAttribute", 12000),
      provide<set_cache_config>("cuKernelSetCacheConfig", "cuKernelSetCacheConfig", 12000),
      provide<parameter_info>("cuKernelGetParamInfo", "cuKernelGetParamInfo", 12040),
      provide<kernel_parameter_count>("cuKernelGetParamCount", "cuKernelGetParamCount", 13010),
  };
  return rows;
}

}  // namespace kernwright::libcuda
