// All families in turn.
#include "bindings/kernels/bind_kernels.h"

namespace kernwright::python {

void bind_kernels(py::module_& m) { bind_sort(m); }

}  // namespace kernwright::python
