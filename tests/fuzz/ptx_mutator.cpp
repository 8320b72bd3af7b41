// libFuzzer's mutator of inputs that are PTX: every other one is changed as text.
#include "fuzz/ptx_mutation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t limit);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t limit, unsigned int seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, limit);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  std::string changed = kernwright::fuzz::mutate_ptx(bytes.substr(0, end), seed);
  changed += bytes.substr(end);
  const std::size_t length = std::min(changed.size(), limit);
  std::memcpy(data, changed.data(), length);
  return length;
}
