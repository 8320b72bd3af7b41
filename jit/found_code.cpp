// Names of the layers that answer code requests.
#include "jit/found_code.h"

namespace kernwright {

const char* code_layer_name(CodeLayer layer) noexcept {
  switch (layer) {
    case CodeLayer::memory:
      return "memory";
    case CodeLayer::disk:
      return "disk";
    case CodeLayer::pack:
      return "pack";
    case CodeLayer::compiler:
      return "compiled";
    case CodeLayer::none:
      break;
  }
  return "object code";
}

}  // namespace kernwright
