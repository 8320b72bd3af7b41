// The functions of the fake table.
#include "unit/jit/fake_nvrtc.h"

#include <cstring>
#include <thread>

namespace kernwright::testing {
namespace {

int (*the_callback)(void*, void*) = nullptr;
void* the_payload = nullptr;

FakeNvrtc& fake() { return FakeNvrtc::get(); }

nvrtcResult create(nvrtcProgram* program, const char* source, const char* name, int header_count,
                   const char* const*, const char* const* include_names) {
  if (fake().create_result != NVRTC_SUCCESS) return fake().create_result;
  fake().source = source;
  fake().name = name;
  fake().headers.assign(include_names, include_names + header_count);
  ++fake().created;
  the_callback = nullptr;
  *program = reinterpret_cast<nvrtcProgram>(&fake());
  return NVRTC_SUCCESS;
}

nvrtcResult destroy(nvrtcProgram* program) {
  ++fake().destroyed;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult compile(nvrtcProgram, int count, const char* const* options) {
  const int number = fake().compiled++;
  fake().options.assign(options, options + count);
  const auto end = std::chrono::steady_clock::now() + fake().compile_time;
  while (std::chrono::steady_clock::now() < end) {
    if (the_callback != nullptr && the_callback(the_payload, nullptr) == 1) {
      return NVRTC_ERROR_CANCELLED;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return fake().failing.contains(number) ? NVRTC_ERROR_COMPILATION : fake().compile_result;
}

nvrtcResult set_callback(nvrtcProgram, int (*callback)(void*, void*), void* payload) {
  if (!fake().can_cancel) return kNvrtcNotSupported;
  the_callback = callback;
  the_payload = payload;
  return NVRTC_SUCCESS;
}

template <std::string FakeNvrtc::*Text, std::size_t Extra>
nvrtcResult size_of(nvrtcProgram, std::size_t* size) {
  *size = (fake().*Text).size() + Extra;
  return NVRTC_SUCCESS;
}

template <std::string FakeNvrtc::*Text, std::size_t Extra>
nvrtcResult read(nvrtcProgram, char* into) {
  std::memcpy(into, (fake().*Text).c_str(), (fake().*Text).size() + Extra);
  return NVRTC_SUCCESS;
}

nvrtcResult add_name(nvrtcProgram, const char*) { return NVRTC_SUCCESS; }

nvrtcResult lowered_name(nvrtcProgram, const char* expression, const char** lowered) {
  auto [place, inserted] = fake().lowered.emplace(expression, expression);
  *lowered = place->second.c_str();
  return NVRTC_SUCCESS;
}

const char* error_string(nvrtcResult) { return "NVRTC_ERROR_OF_A_TEST"; }

}  // namespace

FakeNvrtc& FakeNvrtc::get() {
  static FakeNvrtc instance;
  return instance;
}

LoadedNvrtc FakeNvrtc::reset() {
  create_result = compile_result = NVRTC_SUCCESS;
  log.clear();
  failing.clear();
  ptx = ".visible .entry k(){ ret; }\n";
  lowered.clear();
  compile_time = std::chrono::milliseconds(0);
  can_cancel = true;
  created = destroyed = compiled = 0;
  LoadedNvrtc nvrtc;
  nvrtc.major = 13;
  nvrtc.minor = 1;
  nvrtc.path = "/fake/libnvrtc.so.13";
  nvrtc.archs = {80, 90, 120};
  nvrtc.api.nvrtcGetErrorString = error_string;
  nvrtc.api.nvrtcCreateProgram = create;
  nvrtc.api.nvrtcDestroyProgram = destroy;
  nvrtc.api.nvrtcCompileProgram = compile;
  nvrtc.api.nvrtcSetFlowCallback = set_callback;
  nvrtc.api.nvrtcAddNameExpression = add_name;
  nvrtc.api.nvrtcGetLoweredName = lowered_name;
  nvrtc.api.nvrtcGetProgramLogSize = size_of<&FakeNvrtc::log, 1>;
  nvrtc.api.nvrtcGetProgramLog = read<&FakeNvrtc::log, 1>;
  nvrtc.api.nvrtcGetPTXSize = size_of<&FakeNvrtc::ptx, 1>;
  nvrtc.api.nvrtcGetPTX = read<&FakeNvrtc::ptx, 1>;
  nvrtc.api.nvrtcGetCUBINSize = size_of<&FakeNvrtc::cubin, 0>;
  nvrtc.api.nvrtcGetCUBIN = read<&FakeNvrtc::cubin, 0>;
  return nvrtc;
}

}  // namespace kernwright::testing
