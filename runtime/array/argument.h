// Arrays as arguments of a typed launch (core/arguments.h).
#pragma once

#include "array/array.h"
#include "core/arguments.h"

namespace kernwright {

/// The address of element 0; a view with gaps is refused, since a kernel sees only a pointer.
template <>
struct KernelArgument<Array> {
  static ArgumentView view(const Array& array) {
    return {.kind = ArgumentView::Kind::pointer,
            .scalar = array.type(),
            .address = array.address(),
            .memory_bytes = array.nbytes(),
            .device = &array.device(),
            .read_only = array.read_only(),
            .problem = array.is_contiguous()
                           ? nullptr
                           : "got an array that is not contiguous: pass a copy of it"};
  }
};

}  // namespace kernwright
