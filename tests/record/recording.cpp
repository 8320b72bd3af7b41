// Files, contexts and launches of the recording programs.
#include "record/recording.h"

#include "base/format.h"
#include "driver/driver_loader.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kernwright::sim {

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_whole(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void require(const DriverApi& api, CUresult result, std::string_view what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  api.cuGetErrorString(result, &text);
  throw std::runtime_error(format("{}: {}", what, text != nullptr ? text : "unknown"));
}

const DriverApi& real_driver() {
  std::string reason;
  const DriverApi* const api = load_cuda_driver(&reason);
  if (api == nullptr) throw std::runtime_error(reason);
  return *api;
}

void make_current(const DriverApi& api) {
  CUcontext context = nullptr;
  require(api, api.cuInit(0), "cuInit");
  require(api, api.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(api, api.cuCtxPushCurrent(context), "cuCtxPushCurrent");
}

std::string device_name(const DriverApi& api) {
  char name[128] = "";
  require(api, api.cuDeviceGetName(name, sizeof name, 0), "cuDeviceGetName");
  return name;
}

RecordedModule::RecordedModule(const DriverApi& api, const void* image,
                               std::span<const std::byte> input, std::size_t output_bytes)
    : api_(api), output_bytes_(output_bytes) {
  try {
    require(api, api.cuModuleLoadData(&module_, image), "cuModuleLoadData");
    require(api, api.cuMemAlloc(&in_, input.size()), "cuMemAlloc");
    require(api, api.cuMemAlloc(&out_, output_bytes), "cuMemAlloc");
    require(api, api.cuMemcpyHtoD(in_, input.data(), input.size()), "cuMemcpyHtoD");
  } catch (...) {
    release();
    throw;
  }
}

RecordedModule::~RecordedModule() { release(); }

void RecordedModule::release() noexcept {
  if (in_ != 0) api_.cuMemFree(in_);
  if (out_ != 0) api_.cuMemFree(out_);
  if (module_ != nullptr) api_.cuModuleUnload(module_);
}

std::vector<std::byte> RecordedModule::run(const std::string& kernel, unsigned grid,
                                           unsigned block) {
  CUfunction function = nullptr;
  require(api_, api_.cuModuleGetFunction(&function, module_, kernel.c_str()), kernel);
  require(api_, api_.cuMemsetD8(out_, 0, output_bytes_), "cuMemsetD8");
  void* parameters[] = {&in_, &out_};
  require(api_,
          api_.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr),
          kernel);
  std::vector<std::byte> result(output_bytes_);
  require(api_, api_.cuMemcpyDtoH(result.data(), out_, output_bytes_), "result of " + kernel);
  return result;
}

}  // namespace kernwright::sim
