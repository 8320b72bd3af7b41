// All families in turn.
#include "bindings/kernels/bind_kernels.h"

namespace kernwright::python {

void bind_kernels(py::module_& m) {
  bind_optim(m);
  bind_quantize(m);
  bind_random(m);
  bind_sampling(m);
}

}  // namespace kernwright::python
