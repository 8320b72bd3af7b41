// Object code, and which layer had it.
#pragma once

#include "jit/object_code.h"

#include <memory>

namespace kernwright {

/// Who answers a request for code: a layer of the cache, or the compiler. `none` is code that the
/// program was made from.
enum class CodeLayer { memory, disk, pack, compiler, none };

/// "memory", "disk", "pack", "compiled" or "object code".
const char* code_layer_name(CodeLayer layer) noexcept;

struct FoundCode {
  std::shared_ptr<const ObjectCode> code;
  CodeLayer layer = CodeLayer::none;
};

}  // namespace kernwright
