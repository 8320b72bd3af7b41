// Object code, and the layer it came from.
#pragma once

#include "jit/object_code.h"

#include <memory>

namespace kernwright {

/// The origin of requested code: a layer of the cache, or the compiler. `none` is code given to the
/// program's constructor.
enum class CodeLayer { memory, disk, pack, compiler, none };

/// "memory", "disk", "pack", "compiled" or "object code".
const char* code_layer_name(CodeLayer layer) noexcept;

struct FoundCode {
  std::shared_ptr<const ObjectCode> code;
  CodeLayer layer = CodeLayer::none;
};

}  // namespace kernwright
