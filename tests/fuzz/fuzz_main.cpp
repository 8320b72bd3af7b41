// The entry of libFuzzer; KW_FUZZ_TARGET names the function of targets.h.
#include "fuzz/targets.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kernwright::fuzz::KW_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
