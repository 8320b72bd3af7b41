// Driver functions of kernels: attributes and parameters.
#include "sim/device/module/function.h"

#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {

std::shared_ptr<Function> find_function(CUfunction handle) {
  auto function = sim_driver().functions.find(handle);
  require(function != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return function;
}

std::shared_ptr<const FunctionInfo> get_info(const Function& function) {
  auto module = function.module.lock();
  require(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const FunctionInfo& info = module->code->program().functions[function.index];
  return {std::move(module), &info};
}

int max_block_threads(const Function& function) {
  const int most = max_block_threads(function.registers);
  const auto bound = static_cast<int>(function.max_threads);
  return bound == 0 ? most : std::min(most, bound);
}

int resident_blocks(const Function& function, int block_threads, std::size_t dynamic_shared) {
  if (block_threads > max_block_threads(function)) return 0;
  return resident_blocks({.block_threads = block_threads,
                          .registers = function.registers,
                          .static_shared = function.shared_bytes,
                          .dynamic_shared = dynamic_shared});
}

namespace {

/// Blocks requested by .reqnctapercluster; 0 without it.
int required_cluster(const Function& function, std::size_t axis) {
  return static_cast<int>(get_info(function)->required_cluster[axis]);
}

int read_attribute(const Function& function, CUfunction_attribute attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return max_block_threads(function);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(function.shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return static_cast<int>(function.constant_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return static_cast<int>(function.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return function.registers;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return device_profile().capability();
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return function.max_dynamic_shared;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return function.carveout;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return get_info(function)->explicit_cluster;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return required_cluster(function, 0);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return required_cluster(function, 1);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return required_cluster(function, 2);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return function.large_clusters ? 1 : 0;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return 0;
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

void set_max_dynamic_shared(Function& function, int value) {
  const int most =
      device_profile().required(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) -
      static_cast<int>(function.shared_bytes);
  require(value >= 0 && value <= most);
  function.max_dynamic_shared = value;
}

}  // namespace

void calls::cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  require(value != nullptr);
  *value = read_attribute(*find_function(handle), attribute);
}

void calls::cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  const auto function = find_function(handle);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      set_max_dynamic_shared(*function, value);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= CU_SHAREDMEM_CARVEOUT_DEFAULT && value <= CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
      function->carveout = value;
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      require(device_profile().is_90 && (value == 0 || value == 1));
      function->large_clusters = value != 0;
      break;
    default: fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void calls::cuFuncGetModule(CUmodule* module, CUfunction handle) {
  require(module != nullptr);
  *module = find_function(handle)->module_handle;
}

/// The text lives as long as the module.
void calls::cuFuncGetName(const char** name, CUfunction handle) {
  require(name != nullptr);
  *name = find_function(handle)->name.c_str();
}

void calls::cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset,
                               std::size_t* size) {
  const auto info = get_info(*find_function(handle));
  const auto& parameters = info->parameters;
  require(index < parameters.size() && offset != nullptr);
  *offset = parameters[index].offset;
  if (size != nullptr) *size = parameters[index].bytes;
}

}  // namespace kernwright::sim
