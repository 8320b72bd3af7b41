// All families in turn.
#include "bindings/kernels/bind_kernels.h"

namespace kernwright::python {

void bind_kernels(py::module_& m) {
  bind_activations(m);
  bind_embedding(m);
  bind_loss(m);
  bind_rope(m);
}

}  // namespace kernwright::python
