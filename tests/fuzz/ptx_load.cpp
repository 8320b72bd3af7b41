// What cuModuleLoadDataEx does with an image and options, and what is asked of a module then. The
// image ends at the first zero byte, as for the driver; the options stand behind it.
#include "fuzz/targets.h"
#include "sim/device.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kernwright::fuzz {
namespace {

/// Retains the primary context once, for as long as the process lives.
bool started() {
  CUcontext context = nullptr;
  const DriverApi& api = sim::driver_api();
  return api.cuInit(0) == CUDA_SUCCESS && api.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS;
}

const DriverApi& device() {
  static const bool is_started = started();
  if (!is_started) throw std::logic_error("there is no simulated device");
  const DriverApi& api = sim::driver_api();
  CUcontext context = nullptr;
  api.cuCtxGetCurrent(&context);
  if (context == nullptr) {
    api.cuDevicePrimaryCtxRetain(&context, 0);
    api.cuCtxSetCurrent(context);
  }
  return api;
}

/// Takes numbers off the front; zeros when nothing is left.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

constexpr std::size_t kMaxOptions = 8;
constexpr int kAttributes = 20;  ///< of functions: some more than there are

/// Options with log buffers of just the size that the options state.
struct Options {
  explicit Options(Reader& reader) {
    const std::size_t count = reader.byte() % (kMaxOptions + 1);
    error_log.resize(reader.byte());
    info_log.resize(reader.byte());
    for (std::size_t i = 0; i < count; ++i) {
      const auto option = static_cast<CUjit_option>(static_cast<std::int8_t>(reader.byte()));
      keys.push_back(option);
      values.push_back(value_of(option, reader));
    }
  }
  void* value_of(CUjit_option option, Reader& reader) {
    switch (option) {
      case CU_JIT_ERROR_LOG_BUFFER:
        return error_log.data();
      case CU_JIT_INFO_LOG_BUFFER:
        return info_log.data();
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        return as_value(error_log.size());
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        return as_value(info_log.size());
      default:
        return as_value(reader.byte());
    }
  }
  static void* as_value(std::size_t number) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  }

  std::vector<char> error_log, info_log;
  std::vector<CUjit_option> keys;
  std::vector<void*> values;
};

void require(bool good, const char* what) {
  if (!good) throw std::logic_error(what);
}

/// Every question that the names of the module's functions lead to.
void ask(const DriverApi& api, CUmodule module, unsigned int block) {
  unsigned int count = 0;
  require(api.cuModuleGetFunctionCount(&count, module) == CUDA_SUCCESS, "no count of functions");
  std::vector<CUfunction> functions(count);
  if (count == 0) return;
  require(api.cuModuleEnumerateFunctions(functions.data(), count, module) == CUDA_SUCCESS,
          "no functions");
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    require(api.cuFuncGetName(&name, function) == CUDA_SUCCESS && name != nullptr, "no name");
    for (int which = 0; which < kAttributes; ++which) {
      int value = 0;
      const CUresult result =
          api.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(which), function);
      require(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE, "no attribute");
    }
    int blocks = 0;
    const CUresult result = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, function, static_cast<int>(block), 0);
    require(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE, "no occupancy");
  }
}

}  // namespace

void ptx_load(std::string_view bytes) {
  const DriverApi& api = device();
  const std::string image(bytes.substr(0, bytes.find('\0')));
  Reader reader(bytes.substr(std::min(bytes.size(), image.size() + 1)));
  const unsigned int block = reader.byte() * 8u;
  Options options(reader);
  const std::string cubin(reader.rest());
  CUmodule module = nullptr;
  const CUresult result =
      api.cuModuleLoadDataEx(&module, image.c_str(), static_cast<unsigned int>(options.keys.size()),
                             options.keys.data(), options.values.data());
  if (result == CUDA_SUCCESS) {
    api.kwSetModuleResources(module, cubin.data(), cubin.size());
    ask(api, module, block);
    require(api.cuModuleUnload(module) == CUDA_SUCCESS, "a module stays loaded");
    return;
  }
  constexpr std::array kRefusals{CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_IMAGE,
                                 CUDA_ERROR_INVALID_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU,
                                 CUDA_ERROR_OUT_OF_MEMORY};
  require(std::find(kRefusals.begin(), kRefusals.end(), result) != kRefusals.end(),
          "a module is refused with an error that does not say why");
}

}  // namespace kernwright::fuzz
