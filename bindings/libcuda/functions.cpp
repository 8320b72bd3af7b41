// Functions by exported name, and by name and version.
#include "libcuda/functions.h"

#include "libcuda/entry.h"

#include "base/log.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernwright::libcuda {
namespace {

using namespace std::string_view_literals;

/// This library's own come first, in front of those they replace.
std::vector<Function> all_functions() {
  std::vector<Function> all;
  for (const auto& list :
       {lookup_functions(), context_functions(), composed_functions(), graph_functions(),
        library_functions(), link_functions(), pool_functions(), user_object_functions()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
#define KW_DRIVER(name, symbol, since, need, parameters)                        \
  all.push_back({#name, #symbol, since,                                         \
                 Adapted<&DriverApi::name, decltype(DriverApi::name)>::plain(), \
                 Adapted<&DriverApi::name, decltype(DriverApi::name)>::per_thread()});
#define KW_DRIVER_EXTENSION(name, parameters)
#include "driver/driver_api.def"
  return all;
}

const std::vector<Function>& functions() {
  static const auto* const instance = new std::vector<Function>(all_functions());
  return *instance;
}

CUresult get_proc_address_1(const char* name, void** function, int cuda_version, cuuint64_t flags) {
  return get_proc_address(name, function, cuda_version, flags, nullptr);
}

CUresult get_proc_address_per_thread(const char* name, void** function, int cuda_version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (flags == CU_GET_PROC_ADDRESS_DEFAULT) flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  return get_proc_address(name, function, cuda_version, flags, status);
}

}  // namespace

std::span<const Function> lookup_functions() {
  static const Function rows[] = {
      {"cuGetProcAddress", "cuGetProcAddress", 11030, address(get_proc_address_1),
       address(get_proc_address_1)},
      {"cuGetProcAddress", "cuGetProcAddress_v2", 12000, address(get_proc_address),
       address(get_proc_address_per_thread)},
  };
  return rows;
}

void* find_symbol(const char* symbol) {
  std::string_view wanted = symbol;
  const bool per_thread = wanted.ends_with("_ptsz"sv) || wanted.ends_with("_ptds"sv);
  if (per_thread) wanted.remove_suffix(5);
  const Function* oldest = nullptr;
  for (const Function& function : functions()) {
    if (wanted == function.symbol) return per_thread ? function.per_thread : function.plain;
    if (wanted != function.name) continue;
    if (oldest == nullptr || function.since < oldest->since) oldest = &function;
  }
  if (oldest == nullptr) return nullptr;
  return per_thread ? oldest->per_thread : oldest->plain;
}

CUresult get_proc_address(const char* name, void** function, int cuda_version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  const Function* newest = nullptr;
  bool is_newer = false;
  for (const Function& candidate : functions()) {
    if (std::string_view(candidate.name) != name) continue;
    if (candidate.since > cuda_version) {
      is_newer = true;
    } else if (newest == nullptr || newest->since < candidate.since) {
      newest = &candidate;
    }
  }
  *function = nullptr;
  if (newest != nullptr) {
    const bool thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    *function = thread ? newest->per_thread : newest->plain;
  }
  if (status != nullptr) {
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : is_newer           ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace kernwright::libcuda

extern "C" {

void* kw_libcuda_find(const char* symbol) {
  using namespace kernwright;
  sim::set_report_log(true);  // such a program sees codes alone
  try {
    return libcuda::find_symbol(symbol);
  } catch (...) {
    return nullptr;
  }
}

int kw_libcuda_refuse(const char* symbol) {
  using namespace kernwright;
  log(LogLevel::error, "the simulated device has no {}: it returns CUDA_ERROR_NOT_SUPPORTED",
      symbol);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // extern "C"
