// The ELF image that the compiler makes beside the PTX.
#include "fuzz/targets.h"
#include "sim/device/resources.h"

#include <string>

namespace kernwright::fuzz {

void cubin_resources(std::string_view bytes) {
  const std::string image(bytes);  // on the heap, so that a read beyond it is seen
  sim::read_cubin_resources(std::as_bytes(std::span(image)));
}

}  // namespace kernwright::fuzz
