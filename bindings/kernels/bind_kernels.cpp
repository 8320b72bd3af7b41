// All families in turn.
#include "bindings/kernels/bind_kernels.h"

namespace kernwright::python {

void bind_kernels(py::module_& m) {
  bind_norm(m);
  bind_softmax(m);
}

}  // namespace kernwright::python
