// The driver's linker, as far as one PTX text needs none: the result is the text.
#include "libcuda/functions.h"
#include "libcuda/image_file.h"

#include "base/log.h"
#include "sim/device/handle_table.h"

#include <string>
#include <string_view>

namespace kernwright::libcuda {
namespace {

using CUlinkState = struct CUlinkState_st*;
constexpr int kInputPtx = 1;  // CUjitInputType

struct LinkState {
  std::string text;
  bool has_text = false;
};

sim::HandleTable<CUlinkState, LinkState>& states() {
  static auto* const table = new sim::HandleTable<CUlinkState, LinkState>(13);
  return *table;
}

CUresult link_create(unsigned int, CUjit_option*, void**, CUlinkState* state) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int version = 0;
  if (const CUresult result = sim::driver_api().cuDeviceGetCount(&version); result != CUDA_SUCCESS)
    return result;  // before cuInit
  *state = states().insert(std::make_shared<LinkState>());
  return CUDA_SUCCESS;
}

CUresult add(CUlinkState handle, int type, std::string text) {
  const auto state = states().find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (type != kInputPtx) {
    log(LogLevel::error,
        "the simulated device links PTX alone: compile for a virtual architecture");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (state->has_text) {
    log(LogLevel::error, "the simulated device links one PTX text: compile the sources as one");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  state->text = std::move(text);
  state->has_text = true;
  return CUDA_SUCCESS;
}

CUresult add_data(CUlinkState state, int type, void* data, std::size_t bytes, const char*,
                  unsigned int, CUjit_option*, void**) {
  if (data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::string_view text(static_cast<const char*>(data), bytes);
  return add(state, type, std::string(text.substr(0, text.find('\0'))));
}

CUresult add_file(CUlinkState state, int type, const char* path, unsigned int, CUjit_option*,
                  void**) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string text;
  if (const CUresult result = read_image(path, text); result != CUDA_SUCCESS) return result;
  return add(state, type, std::move(text));
}

/// The text stays until the state is destroyed.
CUresult complete(CUlinkState handle, void** image, std::size_t* bytes) {
  const auto state = states().find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (image == nullptr || !state->has_text) return CUDA_ERROR_INVALID_VALUE;
  *image = state->text.data();
  if (bytes != nullptr) *bytes = state->text.size() + 1;
  return CUDA_SUCCESS;
}

CUresult link_destroy(CUlinkState state) {
  return states().remove(state) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

std::span<const Function> link_functions() {
  static const Function rows[] = {
      provide<link_create>("cuLinkCreate", "cuLinkCreate_v2", 6050),
      provide<add_data>("cuLinkAddData", "cuLinkAddData_v2", 6050),
      provide<add_file>("cuLinkAddFile", "cuLinkAddFile_v2", 6050),
      provide<complete>("cuLinkComplete", "cuLinkComplete", 5050),
      provide<link_destroy>("cuLinkDestroy", "cuLinkDestroy", 5050),
  };
  return rows;
}

}  // namespace kernwright::libcuda
