// A library that looks like libnvrtc to the loader. FAKE_NVRTC_VERSION=major.minor sets its
// version; built with FAKE_PARTIAL it lacks nvrtcGetLoweredName.
#include "driver/nvrtc_api.h"

#include <cstdio>
#include <cstdlib>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace kernwright;

FAKE_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  const char* const text = std::getenv("FAKE_NVRTC_VERSION");
  *major = 13;
  *minor = 5;
  if (text != nullptr) std::sscanf(text, "%d.%d", major, minor);
  return NVRTC_SUCCESS;
}

FAKE_EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return NVRTC_SUCCESS;
}

FAKE_EXPORT nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 80;
  archs[1] = 90;
  return NVRTC_SUCCESS;
}

// The rest: every REQUIRED function answers, no OPTIONAL one is there.
#define nvrtcVersion renamed_nvrtcVersion
#define nvrtcGetNumSupportedArchs renamed_nvrtcGetNumSupportedArchs
#define nvrtcGetSupportedArchs renamed_nvrtcGetSupportedArchs
#ifdef FAKE_PARTIAL
#define nvrtcGetLoweredName renamed_nvrtcGetLoweredName
#endif
#define FAKE_REQUIRED(result, name, parameters) \
  FAKE_EXPORT result name parameters { return static_cast<result>(0); }
#define FAKE_OPTIONAL(result, name, parameters)
#define KW_NVRTC(result, name, since, need, parameters) FAKE_##need(result, name, parameters)
#include "driver/nvrtc_api.def"
