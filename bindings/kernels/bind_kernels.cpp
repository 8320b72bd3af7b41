// All families in turn.
#include "bindings/kernels/bind_kernels.h"

namespace kernwright::python {

void bind_kernels(py::module_& m) {
  bind_activations(m);
  bind_attention(m);
  bind_choices(m);
  bind_conv(m);
  bind_elementwise(m);
  bind_embedding(m);
  bind_experts(m);
  bind_formats(m);
  bind_gemm(m);
  bind_gemv(m);
  bind_index(m);
  bind_linalg(m);
  bind_loss(m);
  bind_matmul(m);
  bind_movement(m);
  bind_norm(m);
  bind_products(m);
  bind_operators(m);
  bind_optim(m);
  bind_packed(m);
  bind_quantize(m);
  bind_random(m);
  bind_recurrent(m);
  bind_reduce(m);
  bind_rope(m);
  bind_sampling(m);
  bind_scan(m);
  bind_softmax(m);
  bind_sort(m);
  bind_spatial(m);
}

}  // namespace kernwright::python
